import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { builtins } from '../config/load/builtin.ts';
import { codes, type ErrorCode, remedies } from '../core/error-codes.ts';
import { Kernel } from '../core/kernel.ts';
import { rulesFor } from '../core/lint/rule-sets.ts';
import { applyPlugin } from '../core/plugin.ts';
import { FIELD_TYPES } from '../core/schema/model.ts';
import { OPTIONS as cassandra } from '../plugins/dialects/cassandra/connection/settings.ts';
import { OPTIONS as dynamodb } from '../plugins/dialects/dynamodb/connection/settings.ts';
import { OPTIONS as mongodb } from '../plugins/dialects/mongodb/connection/settings.ts';
import { OPTIONS as mysql } from '../plugins/dialects/mysql/connection/settings.ts';
import { OPTIONS as postgresql } from '../plugins/dialects/postgresql/connection/settings.ts';
import type { Options } from '../plugins/dialects/shared/settings.ts';
import { documentedCommands, schemaPath, schemaText } from './output-schemas.ts';
import { speedPage } from './speed.ts';

/** What of these pages comes from the source. `npm run docs` writes it; a test sees that it was. */

type Row = readonly string[];

/** Its page, and the first words of its table, which is replaced. */
interface Table {
  readonly page: string;
  readonly head: Row;
  rows(): Promise<readonly Row[]> | readonly Row[];
}

const OPTIONS: Readonly<Record<string, Options>> = {
  'reference/postgresql.md': postgresql,
  'reference/mysql.md': mysql,
  'reference/mongodb.md': mongodb,
  'reference/dynamodb.md': dynamodb,
  'reference/cassandra.md': cassandra,
};

const TABLES: readonly Table[] = [
  ...Object.entries(OPTIONS).map(
    ([page, options]): Table => ({
      page,
      head: ['option', 'what it is', 'default'],
      rows: () =>
        Object.entries(options).map(([name, { description, defaultValue }]) => [
          `\`${name}\``,
          description,
          shown(defaultValue),
        ]),
    }),
  ),
  {
    page: 'reference/errors.md',
    head: ['code', 'meaning', 'what to do'],
    rows: () => (Object.keys(codes) as ErrorCode[]).map((code) => [`\`${code}\``, codes[code], remedies[code]]),
  },
  {
    page: 'reference/types.md',
    head: ['type', ...Object.keys(builtins.dialects).sort()],
    async rows() {
      const kernel = await builtinKernel();
      const dialects = Object.keys(builtins.dialects).sort();
      return FIELD_TYPES.map((type) => [
        `\`${type}\``,
        ...dialects.map((name) => `\`${kernel.dialects.get(name).types[type]}\``),
      ]);
    },
  },
  {
    page: 'reference/lint.md',
    head: ['rule', 'level', 'engines', 'finds', 'effect', 'instead'],
    async rows() {
      const names = Object.keys(builtins.dialects).sort();
      const sets = await Promise.all(
        names.map(async (name) => [name, await rulesFor((await builtinKernel()).lintRules, name)] as const),
      );
      const rules = new Map(sets.flatMap(([, found]) => found.map((rule) => [rule.id, rule] as const)));
      return [...rules.values()]
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .map((rule) => {
          const engines = sets.flatMap(([name, found]) => (found.includes(rule) ? [name] : []));
          const scales = rule.scalesWithRows ? ' (scales)' : '';
          return [
            `\`${rule.id}\` ${rule.name}`,
            rule.level,
            engines.length === names.length ? 'all' : engines.join(', '),
            rule.summary,
            `${rule.impact}${scales}`,
            rule.fix,
          ];
        });
    },
  },
];

/** With the built-in dialects. */
async function builtinKernel(): Promise<Kernel> {
  const kernel = new Kernel();
  for (const [name, load] of Object.entries(builtins.dialects)) applyPlugin(kernel, (await load()).default, name);
  return kernel;
}

const shown = (value: unknown): string =>
  value === undefined ? '' : typeof value === 'number' ? value.toLocaleString('en-US') : String(value);

const pathOf = (page: string): string => fileURLToPath(new URL(page, import.meta.url));

/** The page with its table as the source has it. */
export async function generated({ page, head, rows }: Table): Promise<string> {
  const line = (cells: Row) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const table = [line(head), `|${'---|'.repeat(head.length)}`, ...(await rows()).map(line)].join('\n');
  const text = readFileSync(pathOf(page), 'utf8');
  const found = new RegExp(`^\\| ${head[0]} \\|.*\\n(?:\\|.*\\n)*`, 'm');
  if (!found.test(text)) throw new Error(`docs/${page} has no table that begins with ${head[0]}`);
  return text.replace(found, () => `${table}\n`);
}

/** Files that are not as the source would have them, with what they should be. */
export async function outdated(): Promise<readonly (readonly [page: string, text: string])[]> {
  const pages = await Promise.all(TABLES.map(async (table) => [table.page, await generated(table)] as const));
  const schemas = documentedCommands.map((command) => [schemaPath(command), schemaText(command)] as const);
  const speed = ['reference/speed.md', speedPage()] as const;
  return [...pages, ...schemas, speed].filter(([page, text]) => textOf(page) !== text);
}

const textOf = (page: string): string | undefined =>
  existsSync(pathOf(page)) ? readFileSync(pathOf(page), 'utf8') : undefined;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [page, text] of await outdated()) writeFileSync(pathOf(page), text);
}

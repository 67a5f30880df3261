import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { builtins } from '../config/builtin.ts';
import { codes, type ErrorCode } from '../core/errors.ts';
import { Kernel } from '../core/kernel.ts';
import { applyPlugin } from '../core/plugin.ts';
import { remedies } from '../core/remedies.ts';
import { FIELD_TYPES } from '../core/schema/types.ts';
import { OPTIONS as cassandra } from '../plugins/dialects/cassandra/settings.ts';
import { OPTIONS as dynamodb } from '../plugins/dialects/dynamodb/settings.ts';
import { OPTIONS as mongodb } from '../plugins/dialects/mongodb/settings.ts';
import { OPTIONS as mysql } from '../plugins/dialects/mysql/settings.ts';
import { OPTIONS as postgresql } from '../plugins/dialects/postgresql/settings.ts';
import type { Options } from '../plugins/settings.ts';

/** What of these pages comes from the source. `npm run docs` writes it; a test sees that it was. */

type Row = readonly string[];

/** Its page, and the first words of its table, which is replaced. */
interface Table {
  readonly page: string;
  readonly head: Row;
  rows(): Promise<readonly Row[]> | readonly Row[];
}

const OPTIONS: Readonly<Record<string, Options>> = {
  'postgresql.md': postgresql,
  'mysql.md': mysql,
  'mongodb.md': mongodb,
  'dynamodb.md': dynamodb,
  'cassandra.md': cassandra,
};

const TABLES: readonly Table[] = [
  ...Object.entries(OPTIONS).map(
    ([page, options]): Table => ({
      page,
      head: ['option', 'what it is', 'default'],
      rows: () =>
        Object.entries(options).map(([name, { tells, otherwise }]) => [`\`${name}\``, tells, shown(otherwise)]),
    }),
  ),
  {
    page: 'errors.md',
    head: ['code', 'meaning', 'what to do'],
    rows: () => (Object.keys(codes) as ErrorCode[]).map((code) => [`\`${code}\``, codes[code], remedies[code]]),
  },
  {
    page: 'types.md',
    head: ['type', ...Object.keys(builtins.dialects).sort()],
    async rows() {
      const kernel = new Kernel();
      for (const [name, load] of Object.entries(builtins.dialects)) applyPlugin(kernel, (await load()).default, name);
      const dialects = Object.keys(builtins.dialects).sort();
      return FIELD_TYPES.map((type) => [
        `\`${type}\``,
        ...dialects.map((name) => `\`${kernel.dialects.get(name).types[type]}\``),
      ]);
    },
  },
];

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

/** Pages that are not as the source would have them, with what they should be. */
export async function outdated(): Promise<readonly (readonly [page: string, text: string])[]> {
  const pages = await Promise.all(TABLES.map(async (table) => [table.page, await generated(table)] as const));
  return pages.filter(([page, text]) => readFileSync(pathOf(page), 'utf8') !== text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [page, text] of await outdated()) writeFileSync(pathOf(page), text);
}

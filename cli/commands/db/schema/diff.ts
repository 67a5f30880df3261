import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../../config/load/runtime.ts';
import { renameFlag } from '../../../../config/project/generate.ts';
import { parseRenameFlags } from '../../../../config/project/rename-flags.ts';
import {
  type Change,
  type Comparison,
  type Schema,
  schemaDifference,
} from '../../../../config/project/schema-difference.ts';
import type { SchemaEntry } from '../../../../config/project/schema-file.ts';
import type { Dialect } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { withoutUnknownReferences } from '../../../../core/migration/drift.ts';
import { unreadAmong } from '../../../../core/migration/objects.ts';
import { rawMentions, withoutRawMade } from '../../../../core/migration/raw-mentions.ts';
import { nameInTable } from '../../../../core/schema/database-object.ts';
import { assertDistinctNames } from '../../../../core/schema/names.ts';
import type { Renames } from '../../../../core/schema/rename/renames.ts';
import type { UndecidedRename } from '../../../../core/schema/rename/undecided.ts';
import { type CommandResult, loadSdk } from '../../../base.ts';
import { DatabaseCommand } from '../../../db/command.ts';
import { describeRawMade, describeUnsupported } from '../../../db/drift-remedies.ts';
import { oneLineComment, scriptStatement, scriptText, withSemicolon } from '../../../db/plan-text.ts';
import {
  describeSource,
  dialectOfUrl,
  isOfProject,
  type ProjectFiles,
  parseSchemaSource,
  SchemaReader,
  type SchemaSource,
  SOURCES,
} from '../../../db/schema-source.ts';

export default class Diff extends DatabaseCommand {
  static override paths = [['db', 'schema', 'diff']];
  static override usage = Command.Usage({
    description: 'Prints what makes one schema into another.',
    details:
      'Compares any two of databases, the schema file and the history: tables, and the objects that are not tables. Prints the statements, ready to run on the first one, and nothing if they are equal. Takes no lock and writes nothing; a removed and an added name are a rename only where a flag or the schema file says so.',
    examples: [
      ['What a database lacks to be like the schema file', 'svc db schema diff --from main --to files'],
      ['Two environments, in CI', 'svc db schema diff --from main@staging --to main@prd --exit-code'],
      ['What the changes since a migration are', 'svc db schema diff --from 20260101_120000_orders --to files'],
      ['Two databases, without a project', 'svc db schema diff --from postgresql://… --to postgresql://…'],
      [
        'More than the first schema of each',
        'svc db schema diff --from postgresql://… --to postgresql://… --schemas public,billing',
      ],
    ],
  });

  override db = Option.String('--db', {
    description:
      'The database whose files and migrations are compared, and as which a URL is read. Required if several are configured.',
  });
  from = Option.String('--from', { required: true, description: `What to change: ${SOURCES}.` });
  to = Option.String('--to', { required: true, description: 'What it is to become: the same.' });
  operations = Option.Boolean('--operations', false, {
    description: 'Prints the operations of a migration file instead of statements.',
  });
  exitCode = Option.Boolean('--exit-code', false, { description: 'Exits with 5 if they differ.' });
  rename = Option.Array('--rename', [], {
    description: '<table>.<old field>:<new field> or <old table>:<new table>. Repeatable.',
  });
  ignore = Option.Array('--ignore', [], {
    description: 'A table, or an object such as view/totals, to ignore. Repeatable.',
  });
  dialect = Option.String('--dialect', { description: 'The dialect of URLs that more than one dialect has.' });

  schemas = Option.String('--schemas', {
    description:
      'The schemas of a URL, such as public,billing. Default: those of the database that it is compared with.',
  });

  async run(): Promise<CommandResult> {
    const runtime = await this.#project();
    const from = parseSchemaSource(this.from, runtime.databases);
    const to = parseSchemaSource(this.to, runtime.databases);
    const schemas = this.#schemas([from, to]);
    const project = await this.#files(runtime, [from, to]);
    const dialect = project?.dialect ?? (await this.#dialectOf(runtime, [from, to]));
    const reader = new SchemaReader(runtime, dialect, project, { schemas, signal: this.signal });
    try {
      return await this.#compare(reader, { dialect, project, from, to });
    } finally {
      await reader.close();
    }
  }

  async #compare(reader: SchemaReader, request: Request): Promise<CommandResult> {
    const { dialect, project } = request;
    const [from, to] = [describeSource(request.from), describeSource(request.to)];
    const pair = await this.#read(reader, request);
    const unread = unreadKinds(pair);
    const { rawMade, ...sides } = await this.#compared(withoutKinds(pair, unread), project);
    const notCompared = [
      ...rawMade,
      ...unread.map((kind) => `objects of the kind ${kind}, which the options of one side leave out`),
      ...[pair.from, pair.to].flatMap(({ unsupported = [] }, index) =>
        unsupported.map((one) => `${index === 0 ? from : to}: ${describeUnsupported(one)}`),
      ),
    ];
    const { changes, unchangeable, undecided } = await schemaDifference({ dialect, ...sides });
    const refused = changes.flatMap(({ operation, refusal }) =>
      refusal === undefined ? [] : [`svc cannot make a change (${operation.type}): ${refusal}`],
    );
    for (const line of notCompared) this.warn(`not compared: ${line}`);
    for (const line of [...unchangeable, ...refused]) this.warn(line);
    for (const rename of undecided)
      this.warn(`"${rename.from}" was removed and "${rename.to}" added. If that is a rename: ${renameFlag(rename)}`);
    const final = await withFinalTexts(changes, sides.from);
    const { preamble = [] } = sides.from.connection ?? sides.to.connection ?? {};
    const different = final.length > 0 || unchangeable.length > 0;
    if (different) this.#print(final, preamble, dialect);
    else this.note(`No difference between ${from} and ${to}`);
    return {
      data: {
        from,
        to,
        different,
        preamble,
        changes: final.map(({ operation, statements, refusal }) => ({
          operation,
          statements: statements.map(({ text, transactional, destructive }) => ({ text, transactional, destructive })),
          ...(refusal !== undefined && { refusal }),
        })),
        unchangeable,
        notCompared,
        possibleRenames: undecided.map(renameFlag),
      },
      ...(this.exitCode && different && { code: 'drift', exit: 5 }),
    };
  }

  #print(changes: readonly Change[], preamble: readonly string[], dialect: Dialect): void {
    if (changes.length === 0) return;
    const lines = this.operations
      ? [
          JSON.stringify(
            changes.map(({ operation }) => operation),
            null,
            2,
          ),
        ]
      : [...preamble.map(withSemicolon), ...changes.flatMap((change) => changeLines(change, dialect))];
    this.print(scriptText(lines, this.context.stdout));
  }

  /** The project. Two URLs can be compared without one. */
  async #project(): Promise<Runtime> {
    try {
      return await this.runtime();
    } catch (error) {
      const isNeeded =
        this.db !== undefined || [this.from, this.to].some((text) => isOfProject(parseSchemaSource(text, [])));
      const isMissing = isSvcError(error) && error.code === 'config_missing' && this.configFile === undefined;
      if (isNeeded || !isMissing) throw error;
      const { loadRuntime } = await import('../../../../config/load/runtime.ts');
      return loadRuntime({ config: { product: 'none', env: 'none' } }, loadSdk);
    }
  }

  #schemas(sources: readonly SchemaSource[]): readonly string[] | undefined {
    if (this.schemas === undefined) return undefined;
    const schemas = this.schemas.split(',').map((name) => name.trim());
    const isValid = !schemas.includes('') && new Set(schemas).size === schemas.length;
    if (sources.some(({ kind }) => kind === 'url') && isValid) return schemas;
    throw new SvcError('usage', '--schemas names the schemas of a URL.', {
      why: !isValid
        ? `A name is ${schemas.includes('') ? 'missing' : 'in it twice'}.`
        : 'Neither side is one. Those of a database of the project are in svc.config.',
      next: ['--schemas public,billing'],
    });
  }

  async #files(runtime: Runtime, sources: readonly SchemaSource[]): Promise<ProjectFiles | undefined> {
    if (!sources.some(isOfProject) && this.db === undefined) return undefined;
    const named = sources.flatMap((source) => (source.kind === 'database' ? [source.database] : []));
    const database = this.db ?? named[0] ?? (await this.singleTag('diff'));
    const dialect = await runtime.dialectOf(database);
    return { database, dialect, migrations: await this.migrations(database) };
  }

  async #dialectOf(runtime: Runtime, sources: readonly SchemaSource[]): Promise<Dialect> {
    if (this.dialect !== undefined) return runtime.find('dialects', this.dialect);
    const url = sources.find((source) => source.kind === 'url')?.url;
    if (url !== undefined) return dialectOfUrl(url, runtime);
    throw new SvcError('usage', 'Both sides are empty.', { next: ['--from empty --to <url>'] });
  }

  async #read(reader: SchemaReader, { dialect, from, to }: Request): Promise<Pair> {
    if (to.kind !== 'files') {
      const after = await reader.read(to);
      const before = await reader.read(from, after);
      const fieldsOf = (table: string) => [...(after.model.get(table)?.fields.keys() ?? [])];
      return { from: before, to: after, renames: renamesOf(this.#renames({ fieldsOf }, before)) };
    }
    const before = await reader.read(from);
    const entry = await reader.entry();
    const decisions = { renames: this.#renames(entry, before), drops: new Set<string>() };
    const { names } = dialect.capabilities;
    const { model, renames } = await entry.declare(before.model, decisions, names);
    assertDistinctNames(dialect.name, names, model);
    return { from: before, to: { model, objects: reader.objectFiles() }, renames };
  }

  #renames(entry: Pick<SchemaEntry, 'fieldsOf'>, { model }: Schema): readonly UndecidedRename[] {
    if (this.rename.length === 0) return [];
    return parseRenameFlags({ rename: this.rename, drop: [] }, entry, model).renames;
  }

  /** Both sides without what is ignored, and without what raw statements of the project may have made. */
  async #compared(pair: Pair, project: ProjectFiles | undefined): Promise<Pair & { readonly rawMade: string[] }> {
    const rawMade: string[] = [];
    const withoutRaw = async (side: Schema, other: Schema): Promise<Schema> => {
      const { connection } = side;
      if (!connection || other.connection || !project?.migrations.some(hasRaw)) return side;
      const findRaw = rawMentions(
        project.migrations.map(({ migration }) => migration),
        project.dialect.name,
      );
      const tables = withoutRawMade(side.model, await connection.normalize(other.model), findRaw);
      rawMade.push(...tables.rawMade.map(describeRawMade));
      const objects = [...side.objects].filter(([key, object]) => {
        const tag = other.objects.has(key) ? undefined : findRaw(nameInTable(object));
        if (tag !== undefined) rawMade.push(describeRawMade({ name: key, tag }));
        return tag === undefined;
      });
      return { ...side, model: tables.found, objects: new Map(objects) };
    };
    const from = this.#withoutIgnored(await withoutRaw(pair.from, pair.to));
    const to = this.#withoutIgnored(await withoutRaw(pair.to, pair.from));
    return { ...pair, from, to, rawMade };
  }

  #withoutIgnored(side: Schema): Schema {
    if (this.ignore.length === 0) return side;
    const isCompared = ([name]: readonly [string, unknown]) => !this.ignore.includes(name);
    const model = new Map([...side.model].filter(isCompared));
    return {
      ...side,
      model: withoutUnknownReferences(model, model),
      objects: new Map([...side.objects].filter(isCompared)),
    };
  }
}

interface Request {
  readonly dialect: Dialect;
  readonly project: ProjectFiles | undefined;
  readonly from: SchemaSource;
  readonly to: SchemaSource;
}

type Pair = Omit<Comparison, 'dialect'>;

/** The kinds that one side leaves out and the other one has. */
const unreadKinds = ({ from, to }: Pair): readonly string[] => [
  ...new Set(
    [from, to].flatMap(({ connection = {} }) =>
      [from, to].flatMap(({ objects }) => [...unreadAmong(connection, objects).values()].map(({ kind }) => kind)),
    ),
  ),
];

function withoutKinds(pair: Pair, kinds: readonly string[]): Pair {
  const without = (side: Schema): Schema => ({
    ...side,
    objects: new Map([...side.objects].filter(([, { kind }]) => !kinds.includes(kind))),
  });
  return { ...pair, from: without(pair.from), to: without(pair.to) };
}

const hasRaw = ({ migration }: ProjectFiles['migrations'][number]): boolean =>
  migration.up.some(({ type }) => type === 'raw');

function renamesOf(pairs: readonly UndecidedRename[]): Renames {
  const fields = new Map<string, Map<string, string>>();
  for (const { kind, collection, from, to } of pairs) {
    if (kind === 'field') fields.set(collection, (fields.get(collection) ?? new Map()).set(from, to));
  }
  const tables = pairs.filter(({ kind }) => kind === 'collection');
  return { collections: new Map(tables.map(({ from, to }) => [from, to])), fields };
}

/** On some engines, the statements that change a database depend on its catalog. */
async function withFinalTexts(changes: readonly Change[], { connection }: Schema): Promise<readonly Change[]> {
  const texts = await connection?.finalTexts?.(changes.flatMap(({ statements }) => statements));
  if (!texts) return changes;
  let index = 0;
  return changes.map((change) => ({
    ...change,
    statements: change.statements.map((statement) => ({ ...statement, text: texts[index++] ?? statement.text })),
  }));
}

function changeLines({ operation, statements, refusal }: Change, dialect: Dialect): readonly string[] {
  if (refusal !== undefined) return [`-- svc cannot make a change (${operation.type}): ${oneLineComment(refusal)}`];
  return statements.flatMap(({ text, transactional, destructive }) => [
    ...(destructive ? ['-- destroys data:'] : []),
    ...(dialect.capabilities.transactionalDdl && !transactional ? ['-- not in a transaction:'] : []),
    scriptStatement(text, dialect),
  ]);
}

import type { Statement } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { applyInPlace } from '../schema/apply.ts';
import { defineCollection } from '../schema/define.ts';
import type { Collection, ForeignKey, SchemaModel } from '../schema/model.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import { assertNewNamesFree } from '../schema/names.ts';
import type { CreateCollection, Operation } from '../schema/operation.ts';
import { affectedCollections, CreatedTables, requiredCollections } from './affected-collections.ts';
import { drift } from './drift.ts';
import type { History } from './history.ts';
import type { HistoryOrigin, JournalStep } from './history-table.ts';
import { checksum, type Migration } from './migration.ts';
import { wouldDestroyData } from './raw-effect.ts';
import type { Target } from './target.ts';

type Direction = 'up' | 'down';

/** One direction of a migration, compiled to statements. */
export interface PlannedMigration {
  readonly tag: string;
  readonly origin: HistoryOrigin;
  readonly direction: Direction;
  readonly migration: Migration;
  readonly checksum: string;
  readonly steps: readonly JournalStep[];
  readonly statements: readonly Statement[];
  /** The affected collections before the migration; undefined if an older SDK started it. */
  readonly before: SchemaModel | undefined;
  /** Tables of `createCollection … ifNotExists` that exist already; absent if it has no such operation. */
  readonly preexisting?: readonly string[];
  /** The operations that destroy data; absent if it was compiled earlier and is only being finished. */
  readonly destructive?: readonly Operation[];
}

interface PlanOptions {
  /** Operations to leave out. */
  readonly skipped?: ReadonlySet<Operation>;
  /** The tables that earlier migrations of the same run create. */
  readonly created?: CreatedTables;
}

/** Compiles one direction of a migration and applies its operations to `model`. An error names the operation. */
export async function planMigration(
  target: Target,
  migration: Migration,
  direction: Direction,
  origin: HistoryOrigin,
  model: MutableSchema,
  { skipped = new Set(), created = new CreatedTables() }: PlanOptions = {},
): Promise<PlannedMigration> {
  const compiled: { operation: number; statement: Statement }[] = [];
  const destructive: Operation[] = [];
  const before = new Map<string, Collection | undefined>();
  const preexisting = migration[direction].some(allowsExisting) ? new Set<string>() : undefined;
  for (const [index, operation] of migration[direction].entries()) {
    if (skipped.has(operation)) continue;
    try {
      const statements = await planOperation(target, operation, model, before, preexisting);
      const isHarmless = created.affectsOnlyCreated(operation);
      for (const statement of statements)
        compiled.push({ operation: index, statement: isHarmless ? { ...statement, destructive: false } : statement });
      if (!isHarmless && statements.some((statement) => statement.destructive)) destructive.push(operation);
      created.record(operation, statements.length);
    } catch (error) {
      if (!isSvcError(error)) throw error;
      throw error.with({
        where: error.where ?? `${migration.tag} ${direction}[${index}]`,
        state: 'Nothing was changed.',
        ...(error.next.length === 0 && { next: [`Correct "${migration.tag}", then run the command again.`] }),
        details: { tag: migration.tag },
      });
    }
  }
  return {
    tag: migration.tag,
    origin,
    direction,
    migration,
    checksum: checksum(migration),
    steps: groupIntoSteps(compiled),
    statements: compiled.map(({ statement }) => statement),
    before: new Map([...before.values()].flatMap((collection) => (collection ? [[collection.name, collection]] : []))),
    ...(preexisting && { preexisting: [...preexisting] }),
    destructive,
  };
}

/** Compiles an operation. Adds newly affected collections to `before`, as undefined if they do not exist. */
async function planOperation(
  target: Target,
  operation: Operation,
  model: MutableSchema,
  before: Map<string, Collection | undefined>,
  preexisting: Set<string> | undefined,
): Promise<readonly Statement[]> {
  const { connection, dialect } = target;
  if (operation.type === 'raw') {
    const destructive = operation.destructive ?? wouldDestroyData(operation.statement);
    return dialect.compile(operation, model).map((statement) => ({ ...statement, destructive }));
  }
  const missing = requiredCollections(operation).filter((name) => !model.has(name));
  if (missing.length > 0) {
    for (const [name, collection] of await connection.introspect(missing)) model.set(name, collection);
  }
  for (const name of affectedCollections(operation)) if (!before.has(name)) before.set(name, model.get(name));
  if (allowsExisting(operation)) {
    const exists = await matchesExisting(target, operation, model);
    // A table that an earlier migration of the run creates does not belong to this migration either.
    if (model.has(operation.name)) preexisting?.add(operation.name);
    if (exists) return [];
  }
  const statements = dialect.compile(operation, model);
  const previous = new Map(affectedCollections(operation).map((name) => [name, model.get(name)]));
  applyInPlace(model, operation);
  for (const [name, old] of previous) {
    const current = model.get(name);
    if (current && current !== old) assertNewNamesFree(dialect.name, dialect.capabilities.names, model, current, old);
  }
  return statements;
}

export function allowsExisting(operation: Operation): operation is CreateCollection {
  return operation.type === 'createCollection' && operation.options?.sqlOptions?.ifNotExists === true;
}

/** Whether the table of an `ifNotExists` operation exists. Throws `table_differs` if its fields differ. */
async function matchesExisting(
  { connection }: Target,
  operation: CreateCollection,
  model: MutableSchema,
): Promise<boolean> {
  const found = await connection.introspect([operation.name]);
  if (!found.has(operation.name)) return false;
  const defined = defineCollection(operation);
  const differences = await drift(connection, fieldsOnly(new Map([[operation.name, defined]])), fieldsOnly(found));
  if (differences.length > 0) {
    throw new SvcError(
      'table_differs',
      `The table "${operation.name}" already exists and does not match the definition.`,
      {
        why: differences.join('; '),
        state: 'Nothing was changed.',
        next: ['Change the definition to match the table, or use another name.'],
      },
    );
  }
  if (!model.has(operation.name)) model.set(operation.name, defined);
  return true;
}

/** createCollection defines fields only: indexes and constraints come from operations of their own. */
function fieldsOnly(model: SchemaModel): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => [name, { ...collection, indexes: new Map(), constraints: new Map() }]),
  );
}

/** Adjacent transactional statements form one step; every other statement is a step of its own. */
function groupIntoSteps(compiled: readonly { operation: number; statement: Statement }[]): JournalStep[] {
  const steps: { operation: number; transactional: boolean; statements: Statement[] }[] = [];
  for (const { operation, statement } of compiled) {
    const last = steps.at(-1);
    if (last?.transactional && statement.transactional) last.statements.push(statement);
    else steps.push({ operation, transactional: statement.transactional, statements: [statement] });
  }
  return steps;
}

/** Whether the whole migration commits in one transaction together with its history row. */
export function isAtomic({ steps }: PlannedMigration): boolean {
  return steps.length === 0 || (steps.length === 1 && steps[0]?.transactional === true);
}

/**
 * The model to plan these operations on, taken from the history. If they drop a table with `cascade`, foreign keys that
 * exist only in the catalog are added, so that the plan lists and drops them too.
 */
export async function modelForPlanning(
  { connection, dialect }: Pick<Target, 'connection' | 'dialect'>,
  history: History,
  operations: readonly Operation[],
): Promise<MutableSchema> {
  const model = await history.takeModel(connection);
  const dropped = tablesDroppedWithCascade(operations);
  if (dropped.size === 0 || dialect.capabilities.unsupported.foreignKey) return model;
  for (const found of (await connection.introspect()).values()) {
    const known = model.get(found.name);
    const referencing = [...found.constraints.values()].filter(
      (one): one is ForeignKey => one.type === 'foreignKey' && dropped.has(one.references.table),
    );
    if (referencing.every(({ name }) => known?.constraints.has(name))) continue;
    // The engine may have stored a known constraint under another name.
    const normal = known && (await connection.normalize(new Map([[known.name, known]]))).get(known.name);
    const unknown = referencing.filter(({ name }) => !normal?.constraints.has(name));
    if (unknown.length === 0) continue;
    const constraints = new Map(known?.constraints);
    for (const foreignKey of unknown) constraints.set(foreignKey.name, foreignKey);
    model.set(found.name, known ? { ...known, constraints } : found);
  }
  return model;
}

/** Tables dropped with `cascade`, under their names before the operations. */
function tablesDroppedWithCascade(operations: readonly Operation[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const operation of [...operations].reverse()) {
    if (operation.type === 'dropCollection' && operation.cascade) names.add(operation.collection);
    if (operation.type === 'renameCollection' && names.has(operation.to)) names.add(operation.collection);
  }
  return names;
}

/**
 * The statements of a rollback whose tables hold rows, as `tag: what`. A destructive raw statement is always one of them:
 * what it destroys is not known.
 */
export async function lossesOfRollback(
  { connection }: Pick<Target, 'connection'>,
  planned: readonly PlannedMigration[],
): Promise<readonly string[]> {
  /** Each table's name before the rollback, by its name in the course of it. */
  const presentNames = new Map<string, string>();
  const losses: string[] = [];
  for (const { tag, migration, destructive = [] } of planned) {
    for (const operation of migration.down) {
      if (destructive.includes(operation)) {
        const tables = affectedCollections(operation).map((name) => presentNames.get(name) ?? name);
        const hasRows = await Promise.all(tables.map((table) => holdsRows(connection, table)));
        if (operation.type === 'raw') losses.push(`${tag}: ${operation.statement}`);
        else if (hasRows.includes(true))
          losses.push(`${tag}: ${operation.type} in ${tables.join(', ')}, which has rows`);
      }
      if (operation.type === 'renameCollection') {
        presentNames.set(operation.to, presentNames.get(operation.collection) ?? operation.collection);
      }
    }
  }
  return losses;
}

async function holdsRows(connection: Target['connection'], table: string): Promise<boolean> {
  try {
    return (await connection.count(table, 1)) > 0;
  } catch (error) {
    // A table that was dropped by hand: the rollback itself reports it.
    if (isSvcError(error) && error.code === 'collection_unknown') return false;
    throw error;
  }
}

/** The texts of the statements that destroy data. */
export function destructiveStatements({ statements }: PlannedMigration): readonly string[] {
  return statements.filter(({ destructive }) => destructive).map(({ text }) => text);
}

import type { Statement } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { applyInPlace } from '../schema/apply.ts';
import { isObjectOperation } from '../schema/database-object.ts';
import type { Collection, ForeignKey } from '../schema/model.ts';
import { modelOperations } from '../schema/model-operations.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import { assertNewNamesFree, assertTableName } from '../schema/names.ts';
import type { MigrationOperation, ModelOperation, Raw } from '../schema/operation.ts';
import { affectedCollections, CreatedTables, requiredCollections } from './affected-collections.ts';
import { type CompileContext, compileOperation } from './compile-operation.ts';
import { type CompiledStatement, groupIntoSteps, mergeWithLast } from './compiled-steps.ts';
import { asWritten, inCreationOrder } from './creation-order.ts';
import { allowsExisting, matchesExisting } from './existing-table.ts';
import type { History } from './history.ts';
import type { HistoryOrigin } from './history-table.ts';
import type { Replace } from './keep.ts';
import { addKeptFields, forgetKept, type Keep } from './kept.ts';
import { assertKnownDialects } from './known-dialects.ts';
import { checksum, type Migration } from './migration.ts';
import { compileObject } from './objects.ts';
import type { PlannedMigration } from './planned-migration.ts';
import { wouldDestroyData } from './raw-effect.ts';
import type { DatabaseAccess, Target } from './target.ts';

interface PlanOptions {
  /** Operations to leave out. */
  readonly skipped?: ReadonlySet<MigrationOperation>;
  /** The tables that earlier migrations of the same run create. */
  readonly created?: CreatedTables;
  /** The migration's checksum, if it is known. */
  readonly knownChecksum?: string;
  /** Keeps what the operations drop, or restores what they kept. */
  readonly replace?: Replace | undefined;
}

/** Compiles one direction of a migration and applies its operations to `model`. An error names the operation. */
export async function planMigration(
  target: Target,
  migration: Migration,
  direction: PlannedMigration['direction'],
  origin: HistoryOrigin,
  model: MutableSchema,
  {
    skipped = new Set(),
    created = new CreatedTables(),
    knownChecksum = checksum(migration),
    replace,
  }: PlanOptions = {},
): Promise<PlannedMigration> {
  if (direction === 'up') assertKnownDialects(target, migration);
  const compiled: CompiledStatement[] = [];
  const { transactionLocks } = target.dialect.capabilities;
  let locks = 0;
  const destructive: MigrationOperation[] = [];
  const ran: MigrationOperation[] = [];
  const order: number[] = [];
  const keeps: Keep[] = [];
  let isReplaced = false;
  const before = new Map<string, Collection | undefined>();
  const preexisting = migration[direction].some(allowsExisting) ? new Set<string>() : undefined;
  const adopted: Collection[] = [];
  const compile = { created, ...(migration.online !== undefined && { online: migration.online }) };
  const merge = replace ? undefined : target.dialect.mergeIntoCreation;
  for (const { operation, index, ofCreation } of merge
    ? inCreationOrder(migration[direction])
    : asWritten(migration[direction])) {
    if (skipped.has(operation)) continue;
    order.push(index);
    try {
      // A name that hides a table from svc.
      if (operation.type === 'renameCollection') assertTableName(operation.to);
      const isHarmless = created.affectsOnlyCreated(operation);
      if (replace && !isObjectOperation(operation) && operation.type !== 'raw')
        await loadAffected(target.connection, operation, model, before);
      const replacement = direction === 'up' && isHarmless ? undefined : replace?.(operation, index, model);
      const parts = replacement?.operations ?? [operation];
      const statements: Statement[] = [];
      for (const part of parts) {
        const at = ran.push(part) - 1;
        const needed = isObjectOperation(part) ? 0 : (transactionLocks?.count(part, model) ?? 0);
        const compiledPart = await planOperation(target, part, model, { before, preexisting, adopted, compile });
        if (compiledPart.length > 0) locks += needed;
        if (ofCreation && merge && mergeWithLast(merge, compiled, at, compiledPart)) continue;
        const keptMs = part === parts.at(-1) ? replacement?.keep?.ms : undefined;
        for (const [position, statement] of compiledPart.entries()) {
          statements.push(statement);
          compiled.push({
            operation: at,
            statement: {
              ...statement,
              ...(isHarmless && { destructive: false }),
              ...(migration.allow?.includes('copy') && { allowCopy: true as const }),
              ...(position === 0 && keptMs !== undefined && { keptMs }),
            },
          });
        }
      }
      if (replacement?.keep) {
        keeps.push(replacement.keep);
        forgetKept(target, model, replacement.keep);
      }
      isReplaced ||= replacement !== undefined;
      if (!isHarmless && statements.some((statement) => statement.destructive)) destructive.push(operation);
      // A table that is restored has rows.
      if (!replacement) created.record(operation, statements.length);
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
    checksum: knownChecksum,
    steps: groupIntoSteps(compiled),
    statements: compiled.map(({ statement }) => statement),
    operations: compiled.flatMap(({ operation }) => ran[operation] ?? []),
    ...(isReplaced && { ran }),
    ...(!isReplaced && order.some((index, at) => index !== at) && { order }),
    ...(keeps.length > 0 && { keeps }),
    before: new Map([...before.values()].flatMap((collection) => (collection ? [[collection.name, collection]] : []))),
    ...(preexisting && { preexisting: [...preexisting] }),
    ...(adopted.length > 0 && { adopted }),
    ...(transactionLocks && { locks }),
    destructive,
  };
}

/** The collections that the operations of a migration concern, and how the operations are compiled. */
interface PlanContext {
  /** Affected ones before the migration; undefined if they do not exist. */
  readonly before: Map<string, Collection | undefined>;
  readonly preexisting: Set<string> | undefined;
  readonly adopted: Collection[];
  readonly compile: CompileContext;
}

/** Compiles an operation, and adds the collections that it concerns. */
async function planOperation(
  target: Target,
  operation: MigrationOperation,
  model: MutableSchema,
  { before, preexisting, adopted, compile }: PlanContext,
): Promise<readonly Statement[]> {
  const { connection, dialect } = target;
  if (isObjectOperation(operation)) return compileObject(dialect, operation);
  if (operation.type === 'raw') return planRaw(target, operation, model, before);
  await loadAffected(connection, operation, model, before);
  if (allowsExisting(operation)) {
    const exists = await matchesExisting(target, operation, model, adopted);
    // A table that an earlier migration of the run creates does not belong to this migration either.
    if (model.has(operation.name)) preexisting?.add(operation.name);
    if (exists) return [];
  }
  const statements = await compileOperation(target, operation, model, compile);
  applyToModel(target, operation, model);
  return statements;
}

/** A raw statement changes the model by what it `makes`. */
async function planRaw(
  target: Target,
  operation: Raw,
  model: MutableSchema,
  before: Map<string, Collection | undefined>,
): Promise<readonly Statement[]> {
  const { connection, dialect } = target;
  const statements = dialect.compile(operation, model);
  const makes = modelOperations([operation], dialect.name);
  if (makes.length > 0 && statements.length === 0) {
    throw new SvcError('migration_invalid', 'A raw statement is empty, but `makes` says that it makes something.');
  }
  for (const made of makes) {
    await loadAffected(connection, made, model, before);
    applyToModel(target, made, model);
  }
  const destructive = operation.destructive ?? wouldDestroyData(operation.statement);
  // What it makes is verified after it, so it shares a step only where the step can still be rolled back.
  const canShareStep = makes.length === 0 || dialect.capabilities.transactionalDdl;
  return statements.map((statement) => ({
    ...statement,
    destructive,
    transactional: statement.transactional && canShareStep,
  }));
}

/** Adds tables that svc did not create to the model, and newly affected collections to `before`. */
async function loadAffected(
  connection: Target['connection'],
  operation: ModelOperation,
  model: MutableSchema,
  before: Map<string, Collection | undefined>,
): Promise<void> {
  const missing = requiredCollections(operation).filter((name) => !model.has(name));
  if (missing.length > 0) {
    for (const [name, collection] of await connection.introspect(missing)) model.set(name, collection);
  }
  for (const name of affectedCollections(operation)) if (!before.has(name)) before.set(name, model.get(name));
}

function applyToModel({ dialect }: Target, operation: ModelOperation, model: MutableSchema): void {
  const previous = new Map(affectedCollections(operation).map((name) => [name, model.get(name)]));
  applyInPlace(model, operation);
  for (const [name, old] of previous) {
    const current = model.get(name);
    if (current && current !== old) assertNewNamesFree(dialect.name, dialect.capabilities.names, model, current, old);
  }
}

/**
 * The model to plan these operations on, taken from the history. If they drop a table with `cascade`, foreign keys that
 * exist only in the catalog are added, so that the plan lists and drops them too.
 */
export async function modelForPlanning(
  { connection, dialect }: DatabaseAccess,
  history: History,
  operations: readonly MigrationOperation[],
): Promise<MutableSchema> {
  const model = await history.takeModel({ connection, dialect });
  if (dialect.capabilities.storesFields) await addKeptFields(model, { connection });
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
function tablesDroppedWithCascade(operations: readonly MigrationOperation[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const operation of [...operations].reverse()) {
    if (operation.type === 'dropCollection' && operation.cascade) names.add(operation.collection);
    if (operation.type === 'renameCollection' && names.has(operation.to)) names.add(operation.collection);
  }
  return names;
}

import { describeError, isSvcError } from '../errors.ts';
import { requiredCollections } from '../migration/affected-collections.ts';
import { allowsExisting, matchesExisting } from '../migration/existing-table.ts';
import type { History } from '../migration/history.ts';
import { keeping } from '../migration/keep.ts';
import { withoutKept } from '../migration/kept.ts';
import { withRecoveredHistory } from '../migration/lock-session.ts';
import type { Migration } from '../migration/migration.ts';
import { modelForPlanning, planMigration } from '../migration/plan.ts';
import { reviewBeforeLock } from '../migration/plan-approval.ts';
import type { PlannedMigration } from '../migration/planned-migration.ts';
import { replayMigrations } from '../migration/replay.ts';
import { runMigration } from '../migration/runner.ts';
import { availableTag, nameOfTag } from '../migration/tag.ts';
import type { Target } from '../migration/target.ts';
import { dataLossWarnings } from '../schema/data-risks.ts';
import { defineCollection } from '../schema/define.ts';
import { invertAll } from '../schema/invert.ts';
import type { SchemaModel } from '../schema/model.ts';
import { MutableSchema } from '../schema/mutable-schema.ts';
import type { NameLimit } from '../schema/names.ts';
import type { Operation, OperationType } from '../schema/operation.ts';
import { assertFieldNames } from '../schema/operation-problems.ts';

export interface SchemaResult {
  readonly migration: Migration;
  readonly durationMs: number;
  /** The statements sent to the database. */
  readonly statements: readonly string[];
}

/** One call of the schema API. */
interface SchemaRequest {
  /** The name part of the migration's tag, such as `add_email_to_users`. */
  readonly name: string;
  /** The operation whose properties are copied to the migration object. */
  readonly operation: Operation;
  /** Operations that must run before it. */
  readonly prerequisites?: (model: SchemaModel) => readonly Operation[];
}

/** Turns schema API calls into migrations. Tag and rollback are computed under the lock. */
export class AutomaticMigrations {
  readonly #target: Target;
  #cached: { readonly history: History; readonly epoch: number } | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  get names(): NameLimit {
    return this.#target.dialect.capabilities.names;
  }

  async run(request: SchemaRequest): Promise<SchemaResult> {
    assertFieldNames(request.operation);
    const plan = await reviewBeforeLock(this.#target, request.operation.type, async (history) => {
      return (await this.#plan(request, history)).planned;
    });
    const cached = this.#cached;
    this.#cached = undefined;
    return withRecoveredHistory(this.#target, { cached, plan }, async (run) => {
      const { planned, model } = await this.#plan(request, run.history);
      const { durationMs, statements } = await runMigration(run, planned);
      run.history.returnModel(model);
      this.#cached = { history: run.history, epoch: run.epoch };
      return { migration: planned.migration, durationMs, statements };
    });
  }

  async #plan(
    request: SchemaRequest,
    history: History,
  ): Promise<{ readonly planned: PlannedMigration; readonly model: MutableSchema }> {
    const model = await modelForPlanning(this.#target, history, [request.operation]);
    const unmanaged = await loadUnmanagedTables(request.operation, model, history, this.#target);
    const invertible = automaticMigration(request, model, history, this.#target);
    const migration =
      unmanaged.size === 0 ? invertible : await withRollbackLimits(invertible, unmanaged, model, this.#target);
    const keepOf = await keeping(this.#target, history, 'api', [migration]);
    const replace = keepOf?.(migration);
    return { planned: await planMigration(this.#target, migration, 'up', 'api', model, { replace }), model };
  }
}

function automaticMigration(
  request: SchemaRequest,
  model: SchemaModel,
  history: History,
  { dialect }: Target,
): Migration {
  const { operation } = request;
  const up = [...(request.prerequisites?.(model) ?? []), operation];
  const down = invertAll(up, dialect.capabilities.storesFields ? withoutKept(model) : model);
  const lossy = dataLossWarnings(operation, model);
  // Tags increase in order of application, because exported migrations run in tag order.
  const tag = availableTag(request.name, new Date(), (tag) => history.records.has(tag), history.lastApiTag);
  return {
    tag,
    name: operation.type === 'createCollection' ? operation.name : nameOfTag(tag),
    type: operation.type,
    ...operationProperties(operation),
    up,
    down,
    ...(lossy.length > 0 && { lossy }),
  };
}

/** The properties of the operation that are copied to the migration object. */
function operationProperties(operation: Operation): Partial<Migration> {
  switch (operation.type) {
    case 'createCollection':
      return { collection: operation.name, fields: operation.fields };
    case 'addField':
    case 'dropField':
    case 'modifyField':
      return { collection: operation.collection, field: operation.field };
    case 'dropCollection':
    case 'renameCollection':
    case 'renameField':
    case 'createIndex':
    case 'dropIndex':
    case 'addConstraint':
    case 'dropConstraint':
      return { collection: operation.collection };
    case 'raw':
      return {};
  }
}

/** Adds tables that the operation needs but svc did not create to the model, as introspected or, if they match, as defined. */
async function loadUnmanagedTables(
  operation: Operation,
  model: MutableSchema,
  history: History,
  target: Target,
): Promise<ReadonlySet<string>> {
  if (allowsExisting(operation)) {
    const { name } = operation;
    const isManaged = model.has(name) && !(await unmanagedTables(history, target)).has(name);
    if (isManaged || !(await matchesExisting(target, operation, model))) return new Set();
    const defined = defineCollection(operation);
    model.set(name, { ...defined, ...model.get(name), fields: defined.fields, options: defined.options });
    return new Set([name]);
  }
  const missing = requiredCollections(operation).filter((name) => !model.has(name));
  const found = missing.length > 0 ? await target.connection.introspect(missing) : new Map();
  for (const [name, collection] of found) model.set(name, collection);
  return new Set(found.keys());
}

async function unmanagedTables(history: History, { connection, dialect }: Target): Promise<ReadonlySet<string>> {
  const completed = await history.completedMigrations(connection);
  return replayMigrations(
    completed.map(({ migration }) => migration),
    dialect.name,
  ).unmanaged;
}

/** Whether a rollback recreates a dropped object from the model alone. */
const DROPS_DATA: Readonly<Record<OperationType, boolean>> = {
  createCollection: false,
  dropCollection: true,
  renameCollection: false,
  addField: false,
  dropField: true,
  renameField: false,
  modifyField: false,
  createIndex: false,
  dropIndex: false,
  addConstraint: false,
  dropConstraint: false,
  raw: false,
  createObject: false,
  replaceObject: false,
  dropObject: false,
};

/** Makes the migration irreversible if its rollback cannot be compiled, and lists what a rollback would not restore. */
async function withRollbackLimits(
  migration: Migration,
  unmanaged: ReadonlySet<string>,
  model: MutableSchema,
  target: Target,
): Promise<Migration> {
  const reason = await irreversibleReason(migration, model, target);
  if (reason !== undefined) return { ...migration, down: [], irreversible: reason };
  if (!migration.up.some(({ type }) => DROPS_DATA[type])) return migration;
  const { connection } = target;
  const unsupported = (await connection.unsupportedObjects()).filter(({ collection = '' }) =>
    unmanaged.has(collection),
  );
  const objects = (await connection.objects?.()) ?? [];
  const lossy = [
    ...unsupported.map(({ collection, field, what }) => {
      const place = field === undefined ? `table ${collection}` : `field ${collection}.${field}`;
      return `The ${place} ${what}, which a rollback does not restore.`;
    }),
    ...[...unmanaged].flatMap((table) =>
      objects
        .filter(({ name }) => name.startsWith(`${table}.`))
        .map(
          ({ kind, name }) =>
            `The table ${table} has the ${kind} ${name.slice(table.length + 1)}, which a rollback does not restore.`,
        ),
    ),
  ];
  return lossy.length === 0 ? migration : { ...migration, lossy: [...(migration.lossy ?? []), ...lossy] };
}

async function irreversibleReason(
  migration: Migration,
  model: MutableSchema,
  target: Target,
): Promise<string | undefined> {
  const trial = new MutableSchema(model);
  await planMigration(target, migration, 'up', 'api', trial);
  try {
    await planMigration(target, migration, 'down', 'api', trial);
    return undefined;
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return describeError(error);
  }
}

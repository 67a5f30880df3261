import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import { apply } from '../schema/apply.ts';
import { defineCollection } from '../schema/define.ts';
import { applyFieldChanges, defineNamedField, diffField } from '../schema/define-field.ts';
import { collectionOf, fieldOf } from '../schema/find-or-throw.ts';
import { dependentsOfCollection } from '../schema/keys.ts';
import {
  type Collection,
  deserializeCollection,
  type Field,
  type SchemaModel,
  serializeCollection,
} from '../schema/model.ts';
import type { MutableSchema } from '../schema/mutable-schema.ts';
import { KEPT_PREFIX } from '../schema/names.ts';
import type {
  AddField,
  CreateCollection,
  DropCollection,
  DropField,
  FieldChanges,
  MigrationOperation,
  Operation,
} from '../schema/operation.ts';
import { type History, stateOf } from './history.ts';
import type { HistoryOrigin } from './history-table.ts';
import { assertKeeps, type Keep, type Kept, type KeptRow, withKeptField, withoutKeptFields } from './kept.ts';
import type { Migration } from './migration.ts';
import { nameOfTag } from './tag.ts';
import type { Target } from './target.ts';

/** The operations that run in place of one of a migration. */
interface Replacement {
  readonly operations: readonly Operation[];
  readonly keep?: Keep;
}

/** Undefined for an operation that runs as written. */
export type Replace = (operation: MigrationOperation, index: number, model: MutableSchema) => Replacement | undefined;

/** What keeps the drops of each migration, for `ms` or as the target says. Undefined where nothing is kept. */
export async function keeping(
  target: Target,
  history: History,
  origin: HistoryOrigin,
  migrations: readonly Migration[],
  ms = target.keepMs,
): Promise<((migration: Migration) => Replace) | undefined> {
  if (ms === undefined) return undefined;
  assertKeeps(target);
  if (!migrations.some(({ up }) => up.some(isDrop))) return undefined;
  const taken = (await target.connection.kept?.()) ?? new Map();
  return (migration) => {
    const { tag } = migration;
    // Applied again, a migration keeps something else. The tag of a change by the API has the time of the call.
    const nameParts = origin === 'api' ? [nameOfTag(tag), history.records.size] : [tag, stateOf(history, tag)];
    return keepDrops(target, tag, nameParts, ms, (name) => taken.has(name));
  };
}

const isDrop = (operation: MigrationOperation): operation is DropCollection | DropField =>
  operation.type === 'dropCollection' || (operation.type === 'dropField' && operation.mirrors === undefined);

/** Renames what a migration drops. */
function keepDrops(
  { dialect }: Target,
  tag: string,
  nameParts: readonly unknown[],
  ms: number,
  isTaken: (name: string) => boolean,
): Replace {
  const isWide = dialect.capabilities.names.databaseWideNames !== undefined;
  return (operation, index, model) => {
    if (!isDrop(operation)) return undefined;
    // Whatever makes the drop invalid.
    apply(model, operation);
    const name = freeName([...nameParts, index], isTaken);
    const kept =
      operation.type === 'dropField' ? keepField(operation, model, name) : keepTable(operation, model, name, isWide);
    if (!kept) return undefined;
    const field = operation.type === 'dropField' ? operation.field : null;
    const definition = serializeCollection(kept.definition);
    return {
      operations: kept.operations,
      keep: { name, tag, collection: operation.collection, field, definition, ms },
    };
  };
}

function freeName(parts: readonly unknown[], isTaken: (name: string) => boolean): string {
  for (let count = 0; ; count += 1) {
    const digest = createHash('sha256')
      .update(JSON.stringify([...parts, count]))
      .digest('hex');
    const name = KEPT_PREFIX + digest.slice(0, 12);
    if (!isTaken(name)) return name;
  }
}

interface KeptAs {
  readonly operations: readonly Operation[];
  readonly definition: Collection;
}

/** Without foreign keys, indexes and constraints, whose names a new table may need: the `down` of a drop creates them. */
function keepTable({ collection: table }: DropCollection, model: SchemaModel, name: string, isWide: boolean): KeptAs {
  const collection = collectionOf(model, table);
  const constraints = [...collection.constraints.values()];
  const dropped = constraints.filter(({ type }) => type !== 'primaryKey' || isWide);
  const foreignKeysFirst = [
    ...dropped.filter(({ type }) => type === 'foreignKey'),
    ...dropped.filter(({ type }) => type !== 'foreignKey'),
  ];
  const left = constraints.filter((constraint) => !dropped.includes(constraint));
  return {
    operations: [
      ...dependentsOfCollection(model, table),
      ...foreignKeysFirst.map(
        ({ name: constraint }) => ({ type: 'dropConstraint', collection: table, constraint }) as const,
      ),
      ...[...collection.indexes.keys()].map((index) => ({ type: 'dropIndex', collection: table, index }) as const),
      { type: 'renameCollection', collection: table, to: name },
    ],
    definition: {
      ...collection,
      indexes: new Map(),
      constraints: new Map(left.map((constraint) => [constraint.name, constraint])),
    },
  };
}

/** Undefined for a computed field, whose values a rollback computes. */
function keepField(
  { collection: table, field: from }: DropField,
  model: SchemaModel,
  name: string,
): KeptAs | undefined {
  const collection = collectionOf(model, table);
  const field = fieldOf(collection, from);
  if (/\bas\s*\(/i.test(field.native ?? '')) return undefined;
  const changes = optional(field);
  const definition = changes ? applyFieldChanges(field, changes, table) : field;
  return {
    operations: [
      ...(changes ? [{ type: 'modifyField', collection: table, field: from, changes } as const] : []),
      { type: 'renameField', collection: table, from, to: name },
    ],
    definition: {
      name: table,
      fields: new Map([[from, definition]]),
      indexes: new Map(),
      constraints: new Map(),
      options: {},
    },
  };
}

/** What lets programs insert rows that know nothing of the field. One with a default, or that is generated, gets its values. */
function optional({
  primaryKey,
  unique,
  required,
  autoGenerate,
  native,
  default: value,
}: Field): FieldChanges | undefined {
  const isFilled = value !== undefined || (autoGenerate === true && (native !== undefined || !primaryKey));
  const changes: FieldChanges = {
    ...(primaryKey && { primaryKey: false }),
    ...(unique && { unique: false }),
    ...((required || primaryKey) && !isFilled && { required: false }),
    ...(autoGenerate && !isFilled && { autoGenerate: false }),
  };
  return Object.keys(changes).length > 0 ? changes : undefined;
}

/**
 * Renames back what a migration has kept, in place of creating it. The fields are in `model` from the beginning, under the
 * names that they have while they are kept, so that a run that stopped halfway can compare it with the catalog.
 */
export function restoreKept(
  { dialect }: Target,
  { tag, down }: Migration,
  all: readonly Kept[],
  model: MutableSchema,
): Replace | undefined {
  const kept = new Map<string, KeptRow>();
  for (const { record, exists } of all) {
    if (exists && record.tag === tag) kept.set(JSON.stringify([record.collection, record.field]), record);
  }
  if (kept.size === 0) return undefined;
  const find = (collection: string, field: string | null) => kept.get(JSON.stringify([collection, field]));
  for (const [index, operation] of down.entries()) {
    if (operation.type !== 'addField') continue;
    const row = find(operation.collection, operation.field.name);
    const table = row && nameAtStart(down.slice(0, index), operation.collection);
    const collection = table === undefined ? undefined : model.get(table);
    if (row && collection) model.set(collection.name, withKeptField(collection, row));
  }
  return (operation, _, current) => {
    if (operation.type === 'createCollection' && !operation.options?.sqlOptions?.ifNotExists) {
      const row = find(operation.name, null);
      return row && restoreTable(operation, row, dialect.normalize, current);
    }
    if (operation.type !== 'addField') return undefined;
    const row = find(operation.collection, operation.field.name);
    return row && restoreField(operation, row, current);
  };
}

/** The name of a table before these operations; undefined if they create it. */
function nameAtStart(operations: readonly MigrationOperation[], table: string): string | undefined {
  let name = table;
  for (const operation of [...operations].reverse()) {
    if (operation.type === 'createCollection' && operation.name === name) return undefined;
    if (operation.type === 'renameCollection' && operation.to === name) name = operation.collection;
  }
  return name;
}

function restoreTable(
  operation: CreateCollection,
  { name, definition }: KeptRow,
  normalize: (model: SchemaModel) => SchemaModel,
  model: MutableSchema,
): Replacement {
  const wanted = defineCollection(operation);
  const kept = { ...deserializeCollection(definition), name };
  const normal = (one: Collection) =>
    normalize(new Map([[wanted.name, { ...withoutKeptFields(one), name: wanted.name, constraints: new Map() }]])).get(
      wanted.name,
    );
  if (!isDeepStrictEqual(normal(wanted), normal(kept))) throw differsError(`The table "${wanted.name}"`, name);
  model.set(name, kept);
  const missing = [...wanted.constraints.values()].filter((constraint) => !kept.constraints.has(constraint.name));
  return {
    operations: [
      { type: 'renameCollection', collection: name, to: wanted.name },
      ...missing.map((constraint) => ({ type: 'addConstraint', collection: wanted.name, constraint }) as const),
    ],
  };
}

const RESTORABLE: ReadonlySet<string> = new Set([
  'primaryKey',
  'unique',
  'required',
  'autoGenerate',
  'default',
  'comment',
]);

function restoreField({ collection: table, field: named }: AddField, row: KeptRow, model: MutableSchema): Replacement {
  const { name } = row;
  const wanted = defineNamedField(named, table);
  const [kept] = row.definition.fields;
  const changes = kept && diffField(kept, wanted);
  if (!kept || Object.keys(changes ?? {}).some((property) => !RESTORABLE.has(property)))
    throw differsError(`The field "${table}.${wanted.name}"`, name);
  const collection = collectionOf(model, table);
  // A table that this rollback has restored.
  if (!collection.fields.has(name)) model.set(table, withKeptField(collection, row));
  return {
    operations: [
      { type: 'renameField', collection: table, from: name, to: wanted.name },
      ...(changes ? [{ type: 'modifyField', collection: table, field: wanted.name, changes } as const] : []),
    ],
  };
}

function differsError(what: string, name: string): SvcError {
  return new SvcError('not_reversible_now', `${what} is kept, and is not the one that the rollback creates.`, {
    why: `It is kept as "${name}", with other fields or types.`,
  });
}

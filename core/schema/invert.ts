import { applyInPlace } from './apply.ts';
import { invertObjectOperation, isObjectOperation } from './database-object.ts';
import { toCreateCollection, toCreateIndex, toFieldDefinition } from './define.ts';
import { applyFieldChanges, diffField } from './define-field.ts';
import { collectionOf, fieldOf, unknownError } from './find-or-throw.ts';
import { referencesTo } from './keys.ts';
import type { Collection, Constraint, SchemaModel } from './model.ts';
import { MutableSchema } from './mutable-schema.ts';
import type {
  AddConstraint,
  AddField,
  CreateCollection,
  DropCollection,
  DropField,
  FieldChanges,
  MigrationOperation,
  ModifyField,
  Operation,
  RenameField,
} from './operation.ts';

/**
 * The operations that undo `operation`: applied to the model after it, they result in `before`. Raw statements and
 * temporary tables are not part of the model and have no inverse.
 */
export function invert(operation: Operation, before: SchemaModel): Operation[] {
  switch (operation.type) {
    case 'raw':
      return [];
    case 'createCollection':
      return createsCollection(operation, before) ? [{ type: 'dropCollection', collection: operation.name }] : [];
    case 'dropCollection':
      return recreateCollection(operation, before);
    case 'renameCollection':
      return [{ type: 'renameCollection', collection: operation.to, to: operation.collection }];
    case 'addField':
      return [
        { type: 'dropField', collection: operation.collection, field: operation.field.name, ...mirrorOf(operation) },
      ];
    case 'dropField': {
      const { collection, field } = operation;
      const definition = toFieldDefinition(fieldOf(collectionOf(before, collection), field));
      return [{ type: 'addField', collection, field: definition, ...mirrorOf(operation) }];
    }
    case 'renameField':
      return [invertRename(operation, before)];
    case 'modifyField':
      return invertChanges(operation, before).map((changes) => ({ ...operation, changes }));
    case 'createIndex':
      return [{ type: 'dropIndex', collection: operation.collection, index: operation.index }];
    case 'dropIndex': {
      const collection = collectionOf(before, operation.collection);
      const index = collection.indexes.get(operation.index);
      if (!index) throw unknownError('index', operation.index, collection.indexes.keys(), collection.name);
      return [toCreateIndex(collection.name, index)];
    }
    case 'addConstraint': {
      const { collection, constraint } = operation;
      return [{ type: 'dropConstraint', collection, constraint: constraint.name }];
    }
    case 'dropConstraint': {
      const collection = collectionOf(before, operation.collection);
      const constraint = collection.constraints.get(operation.constraint);
      if (!constraint)
        throw unknownError('constraint', operation.constraint, collection.constraints.keys(), collection.name);
      return [addConstraint(collection.name, constraint)];
    }
  }
}

const mirrorOf = ({ mirrors }: AddField | DropField): Pick<AddField, 'mirrors'> =>
  mirrors === undefined ? {} : { mirrors };

/** The operations that undo a list of operations. */
export function invertAll(operations: Iterable<MigrationOperation>, before: SchemaModel): MigrationOperation[] {
  const draft = new MutableSchema(before);
  const inverses: MigrationOperation[][] = [];
  for (const operation of operations) {
    if (isObjectOperation(operation)) {
      inverses.push([invertObjectOperation(operation)]);
      continue;
    }
    inverses.push(invert(operation, draft));
    applyInPlace(draft, operation);
  }
  return inverses.reverse().flat();
}

/** Without drops of indexes and constraints that go with their table later. `after` is the model that `down` begins with. */
export function withoutNeedlessDrops(down: readonly MigrationOperation[], after: SchemaModel): MigrationOperation[] {
  // Under another name it may be another table.
  if (down.some(({ type }) => type === 'renameCollection')) return [...down];
  const ends = new Map(down.flatMap((one, at) => (one.type === 'dropCollection' ? [[one.collection, at]] : [])));
  const endOf = (table: string): number => ends.get(table) ?? -1;
  const others = down.flatMap(({ type }, at) => (DROPS.has(type) ? [] : [at]));
  // What is created in between may need the name of an index.
  const onlyDrops = (from: number, to: number): boolean => to >= from && !others.some((at) => at >= from && at < to);
  const referencesUntil = (end: number, at: number, table: string): boolean => {
    const targetEnd = endOf(table);
    if (targetEnd >= 0 && targetEnd < end) return false;
    const keepsTarget = ({ type }: MigrationOperation): boolean =>
      (type === 'dropIndex' || type === 'dropConstraint') && onlyDrops(at, targetEnd);
    return down
      .slice(at + 1, end)
      .every((one) => !('collection' in one) || one.collection !== table || keepsTarget(one));
  };
  return down.filter((operation, at) => {
    if (operation.type !== 'dropIndex' && operation.type !== 'dropConstraint') return true;
    const { collection: table } = operation;
    const end = endOf(table);
    if (!onlyDrops(at, end)) return true;
    if (operation.type === 'dropIndex') return false;
    const constraint = after.get(table)?.constraints.get(operation.constraint);
    if (constraint?.type !== 'foreignKey') return constraint === undefined;
    const target = constraint.references.table;
    return target !== table && !referencesUntil(end, at, target);
  });
}

/** Not of objects: a check, a computed field or an index may need a function that is dropped in between. */
const DROPS: ReadonlySet<string> = new Set(['dropIndex', 'dropConstraint', 'dropField', 'dropCollection']);

function createsCollection(operation: CreateCollection, before: SchemaModel): boolean {
  const { temporary, ifNotExists } = operation.options?.sqlOptions ?? {};
  return !temporary && !(ifNotExists && before.has(operation.name));
}

/** Recreates the table, its indexes and constraints, and the foreign keys of other tables dropped by a cascade. */
function recreateCollection({ collection: name }: DropCollection, before: SchemaModel): Operation[] {
  const collection = collectionOf(before, name);
  const referring = referencesTo(before, name).filter((reference) => reference.collection !== name);
  return [
    toCreateCollection(collection),
    ...createIndexesAndConstraints(collection),
    ...referring.map((reference) => addConstraint(reference.collection, reference.foreignKey)),
  ];
}

/** Creates the indexes and constraints of a table. Foreign keys come last because they may reference its own keys. */
function createIndexesAndConstraints(collection: Collection): Operation[] {
  const constraints = [...collection.constraints.values()];
  return [
    ...[...collection.indexes.values()].map((index) => toCreateIndex(collection.name, index)),
    ...constraints
      .filter(({ type }) => type !== 'foreignKey' && type !== 'primaryKey')
      .map((constraint) => addConstraint(collection.name, constraint)),
    ...constraints
      .filter(({ type }) => type === 'foreignKey')
      .map((constraint) => addConstraint(collection.name, constraint)),
  ];
}

function addConstraint(collection: string, constraint: Constraint): AddConstraint {
  return { type: 'addConstraint', collection, constraint };
}

function invertRename(operation: RenameField, before: SchemaModel): RenameField {
  const { changes, from, to, ...rest } = operation;
  const [inverse] = changes ? invertChanges({ collection: operation.collection, field: from, changes }, before) : [];
  return { ...rest, from: to, to: from, ...(inverse && { changes: inverse }) };
}

/** The changes that undo a change. Empty if it changed nothing. */
function invertChanges(operation: Omit<ModifyField, 'type'>, before: SchemaModel): FieldChanges[] {
  const field = fieldOf(collectionOf(before, operation.collection), operation.field);
  const changes = diffField(applyFieldChanges(field, operation.changes, operation.collection), field);
  return changes ? [changes] : [];
}

import { change } from './apply.ts';
import { writtenCollection, writtenConstraint, writtenField, writtenIndex } from './define.ts';
import { Draft } from './draft.ts';
import { changedField, fieldChanges } from './field-changes.ts';
import { referencesTo } from './keys.ts';
import { collectionOf, fieldOf, unknown } from './lookup.ts';
import type { Collection, Constraint, SchemaModel } from './model.ts';
import type {
  AddConstraint,
  CreateCollection,
  DropCollection,
  FieldChanges,
  ModifyField,
  Operation,
  RenameField,
} from './operation.ts';

/**
 * The operations that lead back: applied to the model after `operation` they give `before`. Raw statements and
 * temporary tables are not in the model and give nothing.
 */
export function invert(operation: Operation, before: SchemaModel): Operation[] {
  switch (operation.type) {
    case 'raw':
      return [];
    case 'createCollection':
      return isCreated(operation, before) ? [{ type: 'dropCollection', collection: operation.name }] : [];
    case 'dropCollection':
      return recreated(operation, before);
    case 'renameCollection':
      return [{ type: 'renameCollection', collection: operation.to, to: operation.collection }];
    case 'addField':
      return [{ type: 'dropField', collection: operation.collection, field: operation.field.name }];
    case 'dropField': {
      const { collection, field } = operation;
      return [{ type: 'addField', collection, field: writtenField(fieldOf(collectionOf(before, collection), field)) }];
    }
    case 'renameField':
      return [renamedBack(operation, before)];
    case 'modifyField':
      return modifiedBack(operation, before).map((changes) => ({ ...operation, changes }));
    case 'createIndex':
      return [{ type: 'dropIndex', collection: operation.collection, index: operation.index }];
    case 'dropIndex': {
      const collection = collectionOf(before, operation.collection);
      const index = collection.indexes.get(operation.index);
      if (!index) throw unknown('index', operation.index, collection.indexes.keys(), collection.name);
      return [writtenIndex(collection.name, index)];
    }
    case 'addConstraint': {
      const { collection, constraint } = operation;
      return [{ type: 'dropConstraint', collection, constraint: constraint.name }];
    }
    case 'dropConstraint': {
      const collection = collectionOf(before, operation.collection);
      const constraint = collection.constraints.get(operation.constraint);
      if (!constraint)
        throw unknown('constraint', operation.constraint, collection.constraints.keys(), collection.name);
      return [added(collection.name, constraint)];
    }
  }
}

/** The way back of operations that were applied in order. */
export function invertAll(operations: Iterable<Operation>, before: SchemaModel): Operation[] {
  const draft = new Draft(before);
  const inverses: Operation[][] = [];
  for (const operation of operations) {
    inverses.push(invert(operation, draft));
    change(draft, operation);
  }
  return inverses.reverse().flat();
}

function isCreated(operation: CreateCollection, before: SchemaModel): boolean {
  const { temporary, ifNotExists } = operation.options?.sqlOptions ?? {};
  return !temporary && !(ifNotExists && before.has(operation.name));
}

/** The table, its indexes and constraints, and the foreign keys of others that a cascade took along. */
function recreated({ collection: name }: DropCollection, before: SchemaModel): Operation[] {
  const collection = collectionOf(before, name);
  const pointing = referencesTo(before, name).filter((reference) => reference.collection !== name);
  return [
    writtenCollection(collection),
    ...support(collection),
    ...pointing.map((reference) => added(reference.collection, reference.foreignKey)),
  ];
}

/** Operations that give a table its indexes and constraints, foreign keys last: they may point at its own keys. */
export function support(collection: Collection): Operation[] {
  const constraints = [...collection.constraints.values()];
  return [
    ...[...collection.indexes.values()].map((index) => writtenIndex(collection.name, index)),
    ...constraints.filter(({ type }) => type !== 'foreignKey').map((constraint) => added(collection.name, constraint)),
    ...constraints.filter(({ type }) => type === 'foreignKey').map((constraint) => added(collection.name, constraint)),
  ];
}

function added(collection: string, constraint: Constraint): AddConstraint {
  return { type: 'addConstraint', collection, constraint: writtenConstraint(constraint) };
}

function renamedBack(operation: RenameField, before: SchemaModel): RenameField {
  const { changes, from, to, ...rest } = operation;
  const [back] = changes ? modifiedBack({ collection: operation.collection, field: from, changes }, before) : [];
  return { ...rest, from: to, to: from, ...(back && { changes: back }) };
}

/** The changes that take a change back; none where it changed nothing. */
function modifiedBack(operation: Omit<ModifyField, 'type'>, before: SchemaModel): FieldChanges[] {
  const field = fieldOf(collectionOf(before, operation.collection), operation.field);
  const changes = fieldChanges(changedField(field, operation.changes, operation.collection), field);
  return changes ? [changes] : [];
}

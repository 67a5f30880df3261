import type { Operation } from '../schema/operation.ts';

/** Collections an operation needs to be there before it. */
export function needs(operation: Operation): readonly string[] {
  switch (operation.type) {
    case 'raw':
    case 'createCollection':
      return [];
    case 'addConstraint':
      return operation.constraint.type === 'foreignKey'
        ? [operation.collection, operation.constraint.references.table]
        : [operation.collection];
    case 'dropCollection':
    case 'renameCollection':
    case 'addField':
    case 'dropField':
    case 'renameField':
    case 'modifyField':
    case 'createIndex':
    case 'dropIndex':
    case 'dropConstraint':
      return [operation.collection];
  }
}

/** Collections an operation reads or changes, under their names before and after it. */
export function touches(operation: Operation): readonly string[] {
  switch (operation.type) {
    case 'createCollection':
      return [operation.name];
    case 'renameCollection':
      return [operation.collection, operation.to];
    default:
      return needs(operation);
  }
}

/** Fields, indexes and constraints that an operation names, each behind its collection. */
export function members(operation: Operation): readonly string[] {
  switch (operation.type) {
    case 'raw':
    case 'createCollection':
    case 'dropCollection':
    case 'renameCollection':
      return [];
    case 'addField':
      return [`${operation.collection}.${operation.field.name}`];
    case 'dropField':
    case 'modifyField':
      return [`${operation.collection}.${operation.field}`];
    case 'renameField':
      return [operation.from, operation.to].map((name) => `${operation.collection}.${name}`);
    case 'createIndex':
      return [operation.index, ...operation.columns.map(({ name }) => name)].map(
        (name) => `${operation.collection}.${name}`,
      );
    case 'dropIndex':
      return [`${operation.collection}.${operation.index}`];
    case 'addConstraint':
    case 'dropConstraint': {
      const { constraint } = operation;
      return [`${operation.collection}.${typeof constraint === 'string' ? constraint : constraint.name}`];
    }
  }
}

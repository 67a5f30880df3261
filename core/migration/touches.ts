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

/** Collections that operations change or point at although no operation before made them. */
export function foreignCollections(operations: readonly Operation[]): ReadonlySet<string> {
  const made = new Set<string>();
  const foreign = new Set<string>();
  for (const operation of operations) {
    for (const name of needs(operation)) if (!made.has(name)) foreign.add(name);
    if (operation.type === 'createCollection') made.add(operation.name);
    if (operation.type === 'dropCollection') made.delete(operation.collection);
    if (operation.type === 'renameCollection') {
      if (made.delete(operation.collection)) made.add(operation.to);
      else foreign.add(operation.to);
    }
  }
  return foreign;
}

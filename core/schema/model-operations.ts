import { isObjectOperation } from './database-object.ts';
import type { MigrationOperation, ModelOperation } from './operation.ts';

/**
 * The operations as the model of a dialect sees them. A raw statement of that dialect counts as what it `makes`, one of
 * another dialect does not run, and an operation on an object does not concern it.
 */
export function modelOperations(operations: readonly MigrationOperation[], dialect: string): readonly ModelOperation[] {
  return operations.flatMap((operation) => {
    if (isObjectOperation(operation)) return [];
    if (operation.type !== 'raw') return [operation];
    return operation.dialect === dialect ? (operation.makes ?? []) : [];
  });
}

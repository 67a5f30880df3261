import type { ModelOperation, Operation } from './operation.ts';

/**
 * The operations as the model of a dialect sees them. A raw statement of that dialect counts as what it `makes`, one of
 * another dialect does not run.
 */
export function modelOperations(operations: readonly Operation[], dialect: string): readonly ModelOperation[] {
  return operations.flatMap((operation) => {
    if (operation.type !== 'raw') return [operation];
    return operation.dialect === dialect ? (operation.makes ?? []) : [];
  });
}

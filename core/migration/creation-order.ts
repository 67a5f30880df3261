import type { MigrationOperation } from '../schema/operation.ts';

/** An operation, its index in the migration, and whether it follows the creation of its table. */
export interface OrderedOperation {
  readonly operation: MigrationOperation;
  readonly index: number;
  readonly ofCreation: boolean;
}

export const asWritten = (operations: readonly MigrationOperation[]): readonly OrderedOperation[] =>
  operations.map((operation, index) => ({ operation, index, ofCreation: false }));

/**
 * The operations with each index and constraint of a new table right after its creation. One stays where it is after any other
 * kind of operation, and a foreign key also if the table or the key that it references comes later.
 */
export function inCreationOrder(operations: readonly MigrationOperation[]): readonly OrderedOperation[] {
  const ordered: OrderedOperation[][] = [];
  /** By the table, where `ordered` has its creation. */
  const created = new Map<string, number>();
  /** Tables with an index or a key that stays where it is. */
  const keyed = new Set<string>();
  const named = new Set(operations.flatMap((one) => (one.type === 'createCollection' ? [one.name] : [])));
  const isReferable = (table: string, at: number): boolean =>
    !keyed.has(table) && (named.has(table) ? (created.get(table) ?? Number.POSITIVE_INFINITY) <= at : true);
  for (const [index, operation] of operations.entries()) {
    if (operation.type === 'createIndex' || operation.type === 'addConstraint') {
      const { collection } = operation;
      const constraint = operation.type === 'addConstraint' ? operation.constraint : undefined;
      const at = created.get(collection);
      const isKey = constraint?.type !== 'foreignKey' && constraint?.type !== 'check';
      if (at !== undefined && (constraint?.type !== 'foreignKey' || isReferable(constraint.references.table, at))) {
        ordered[at]?.push({ operation, index, ofCreation: true });
        continue;
      }
      if (isKey) keyed.add(collection);
    } else if (operation.type === 'createCollection') {
      const { ifNotExists, temporary } = operation.options?.sqlOptions ?? {};
      if (!ifNotExists && !temporary) created.set(operation.name, ordered.length);
    } else {
      created.clear();
      keyed.clear();
    }
    ordered.push([{ operation, index, ofCreation: false }]);
  }
  return ordered.flat();
}

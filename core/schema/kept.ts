import { isDeepStrictEqual } from 'node:util';
import { primaryFields, sameColumns, uniqueKeys } from './keys.ts';
import type { Collection, Constraint, ForeignKey, Index } from './model.ts';
import { followConstraint, followIndex, type Naming } from './renames.ts';

/** A table that stays, as it was and as it will be. */
export interface Pair {
  readonly before: Collection;
  readonly after: Collection;
}

/** Whether an index is, under the names its columns get, the one that is wanted. */
export function keepsIndex(index: Index, { before, after }: Pair, names: Naming): boolean {
  const wanted = after.indexes.get(index.name);
  return wanted !== undefined && isDeepStrictEqual(followIndex(index, before.name, names), wanted);
}

/** The same for a constraint; a check has to go when a field it reads gets another name or type. */
export function keepsConstraint(constraint: Constraint, pair: Pair, names: Naming): boolean {
  const { before, after } = pair;
  const wanted = after.constraints.get(constraint.name);
  if (!wanted || !isDeepStrictEqual(followConstraint(constraint, before.name, names), wanted)) return false;
  if (constraint.type !== 'check') return true;
  return constraint.columns.every(
    (column) => names.field(before.name, column) === column && keepsType(column, pair, names),
  );
}

/** A foreign key stays only where nothing it relies on is dropped on the way, if only to be made again. */
export function keepsForeignKey(foreignKey: ForeignKey, pair: Pair, target: Pair | undefined, names: Naming): boolean {
  if (!target || !keepsConstraint(foreignKey, pair, names)) return false;
  const { columns } = foreignKey.references;
  return (
    foreignKey.columns.every((column) => keepsType(column, pair, names)) &&
    columns.every((column) => keepsType(column, target, names)) &&
    keepsKeys(columns, target, names)
  );
}

function keepsType(column: string, { before, after }: Pair, names: Naming): boolean {
  const old = before.fields.get(column);
  const next = after.fields.get(names.field(before.name, column) ?? '');
  return old !== undefined && next !== undefined && old.type === next.type && old.items === next.items;
}

/** Every unique key over these columns, since an engine may have tied the foreign key to any of them. */
function keepsKeys(columns: readonly string[], pair: Pair, names: Naming): boolean {
  const { before, after } = pair;
  return uniqueKeys(before)
    .filter((key) => sameColumns(key.columns, columns))
    .every(({ by }) => {
      if ('constraint' in by) return keepsConstraint(by.constraint, pair, names);
      if ('index' in by) return keepsIndex(by.index, pair, names);
      const followed = columns.map((column) => names.field(before.name, column) ?? '');
      if ('field' in by) return followed.every((column) => after.fields.get(column)?.unique);
      return sameColumns(new Set(primaryFields(after)), followed);
    });
}

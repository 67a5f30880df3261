import type { CatalogForeignKey, CatalogIndex } from './catalog.ts';

/**
 * The index that a foreign key got because no other begins with its columns: it has the name of the key, or the one that
 * the key had before it was renamed with its table.
 */
export function isAutomaticIndex(
  { name, unique, columns }: CatalogIndex,
  keys: readonly Pick<CatalogForeignKey, 'name' | 'columns'>[],
): boolean {
  return (
    !unique &&
    keys.some(
      (key) =>
        isNamedAlike(name, key.name) &&
        key.columns.length === columns.length &&
        key.columns.every((column, at) => columns[at]?.name === column && !columns[at]?.descending),
    )
  );
}

const isNamedAlike = (index: string, key: string): boolean =>
  index === key || (CARRIED.test(key) && CARRIED.exec(index)?.[0] === CARRIED.exec(key)?.[0]);

const CARRIED = /(?<=.)_ibfk_(?!.*_ibfk_).*$/s;

/** Whether an index serves a foreign key over those columns. */
export function serves({ odd, columns }: CatalogIndex, wanted: readonly string[]): boolean {
  return odd === null && wanted.every((name, at) => columns[at]?.name === name);
}

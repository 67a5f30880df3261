import type { CatalogForeignKey, CatalogIndex } from './catalog.ts';

/** The index that a foreign key got because no other begins with its columns: it has the name of the key. */
export function isAutomaticIndex(
  { name, unique, columns }: CatalogIndex,
  keys: readonly Pick<CatalogForeignKey, 'name' | 'columns'>[],
): boolean {
  return (
    !unique &&
    keys.some(
      (key) =>
        key.name === name &&
        key.columns.length === columns.length &&
        key.columns.every((column, at) => columns[at]?.name === column && !columns[at]?.descending),
    )
  );
}

/** Whether an index serves a foreign key over those columns. */
export function serves({ odd, columns }: CatalogIndex, wanted: readonly string[]): boolean {
  return odd === null && wanted.every((name, at) => columns[at]?.name === name);
}

/** The name of the primary key of every table. */
export const PRIMARY_KEY = 'PRIMARY';

export interface CatalogTable {
  readonly name: string;
  readonly engine: string;
  /** Empty for none. */
  readonly comment: string;
  readonly collation: string;
  /** `row_format=COMPRESSED` and others, as the server writes them. */
  readonly options: string;
  /** Its rows have a history. */
  readonly versioned: boolean;
  readonly columns: readonly CatalogColumn[];
  readonly indexes: readonly CatalogIndex[];
  readonly foreignKeys: readonly CatalogForeignKey[];
  readonly checks: readonly CatalogCheck[];
}

export interface CatalogColumn {
  readonly name: string;
  /** With size, UNSIGNED and so on: `varchar(20)`. */
  readonly type: string;
  readonly required: boolean;
  readonly default: CatalogDefault | undefined;
  /** `auto_increment`, `on update …`, `INVISIBLE`, `VIRTUAL GENERATED` and so on, as the server spells it. */
  readonly extra: string;
  readonly charset: string | null;
  readonly collation: string | null;
  readonly comment: string;
  /** The attribute with its spatial reference system; empty for none. */
  readonly spatial: string;
  /** The expression of a generated column; empty for any other. */
  readonly generated: string;
}

export interface CatalogIndex {
  readonly name: string;
  readonly unique: boolean;
  /** Its definition in the language of the server; null for a B-tree over whole columns. */
  readonly native: string | null;
  readonly columns: readonly { readonly name: string; readonly descending: boolean }[];
}

export interface CatalogForeignKey {
  readonly name: string;
  readonly columns: readonly string[];
  /** Null if it is in another database. */
  readonly table: string | null;
  readonly target: readonly string[];
  readonly onUpdate: string;
  readonly onDelete: string;
}

interface CatalogCheck {
  readonly name: string;
  readonly expression: string;
  /** Part of the column's definition. */
  readonly ofColumn: boolean;
  /** What follows its expression: NOT ENFORCED. */
  readonly native: string | null;
}

/** A default as the catalog has it: the text of a value, or an expression. */
export type CatalogDefault = { readonly literal: string; readonly isNumber?: true } | { readonly expression: string };

/**
 * Whether the server created the index for a foreign key, because no other index begins with its columns. It has the name of
 * the key, or its name before the key was renamed with its table.
 */
export function isAutomaticIndex(
  { name, unique, native, columns }: CatalogIndex,
  keys: readonly Pick<CatalogForeignKey, 'name' | 'columns'>[],
): boolean {
  return (
    !unique &&
    native === null &&
    keys.some(
      (key) =>
        isSameConstraintName(name, key.name) &&
        key.columns.length === columns.length &&
        key.columns.every((column, at) => columns[at]?.name === column && !columns[at]?.descending),
    )
  );
}

const isSameConstraintName = (index: string, key: string): boolean =>
  index === key || (RENAMED_SUFFIX.test(key) && RENAMED_SUFFIX.exec(index)?.[0] === RENAMED_SUFFIX.exec(key)?.[0]);

const RENAMED_SUFFIX = /(?<=.)_ibfk_(?!.*_ibfk_).*$/s;

/** Whether a foreign key over these columns can use the index. */
export function serves({ native, columns }: CatalogIndex, wanted: readonly string[]): boolean {
  return native === null && wanted.every((name, at) => columns[at]?.name === name);
}

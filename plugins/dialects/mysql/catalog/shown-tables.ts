import type { ExecSql } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import type { CatalogIndex, CatalogTable } from './catalog-table.ts';
import { textAfter } from './show-create-table.ts';

/** Texts in one round trip. */
const BATCH = 100;

/** SHOW CREATE TABLE of each table. */
export async function readShownTables(exec: ExecSql, tables: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (let at = 0; at < tables.length; at += BATCH) {
    const batch = tables.slice(at, at + BATCH);
    const results = await exec(batch.map((table) => `SHOW CREATE TABLE ${quoteIdentifier(table)}`).join(';\n'));
    for (const [index, { rows: shown }] of results.entries())
      found.set(batch[index] ?? '', String(shown[0]?.['Create Table'] ?? ''));
  }
  return found;
}

/** A line of an index or a key, without the text of its comment. */
export interface ShownKey {
  readonly name: string;
  /** `USING BTREE`, `KEY_BLOCK_SIZE=4`, ``WITH PARSER `ngram` ``: what the catalog does not have. */
  readonly storage: readonly string[];
}

export function shownKey(line: string): ShownKey | undefined {
  const [, primary, quoted, rest = ''] =
    /^ {2}(?:(PRIMARY) KEY|(?:UNIQUE |FULLTEXT |SPATIAL )?KEY `((?:[^`]|``)*)`) (.*)$/s.exec(line) ?? [];
  if (rest === '') return undefined;
  const options = (textAfter(')', rest) ?? '').replace(/'(?:[^'\\]|\\.|'')*'/gs, "''");
  return {
    name: primary ?? quoted?.replaceAll('``', '`') ?? '',
    storage: options.match(/\b(?:USING (?:BTREE|HASH)|KEY_BLOCK_SIZE=\d+|WITH PARSER `\w+`)/g) ?? [],
  };
}

/** The table with what its text has of each index and the catalog does not. */
export function withShownStorage(table: CatalogTable, shown = ''): CatalogTable {
  const keys = new Map(
    shown
      .split('\n')
      .flatMap((line) => shownKey(line) ?? [])
      .map((key) => [key.name, key.storage]),
  );
  return { ...table, indexes: table.indexes.map((index) => withStorage(index, keys.get(index.name) ?? [])) };
}

const withStorage = (index: CatalogIndex, storage: readonly string[]): CatalogIndex =>
  storage.length === 0 ? index : { ...index, native: [index.native ?? columnList(index), ...storage].join(' ') };

/** The columns of an index as SQL. */
export const columnList = ({ columns }: Pick<CatalogIndex, 'columns'>): string =>
  `(${columns.map(({ name, descending }) => quoteIdentifier(name) + (descending ? ' DESC' : '')).join(',')})`;

import type { Collection, Index, IndexColumn } from '../../../../core/schema/model.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { nativeIndex, withoutStorage } from '../compile/native-options.ts';
import type { Traits } from '../variant.ts';
import type { CatalogIndex } from './catalog-table.ts';
import { modelIndex } from './introspect.ts';
import { indexOf } from './read-catalog.ts';

/*
 * Indexes and a primary key in the language of the server. Its own spelling of them is read from a probe: a temporary table with the
 * same columns.
 */

/** An index whose text has no more than its columns, and how it is stored, is a plain one. */
export function withoutPlainText({ native, ...index }: Index): Index {
  if (native === undefined) return index;
  const text = withoutStorage(native);
  const columns = plainColumns(text);
  return columns.length > 0 ? { ...index, columns } : { ...index, native: text };
}

/** The text of a primary key; undefined for one of whole columns in ascending order. */
export function withoutPlainKey(native: string | undefined): string | undefined {
  const text = native === undefined ? undefined : withoutStorage(native);
  const columns = plainColumns(text ?? '');
  return columns.length > 0 && columns.every(({ order }) => order === undefined) ? undefined : text;
}

function plainColumns(text: string): readonly IndexColumn[] {
  if (!PLAIN_COLUMNS.test(text)) return [];
  return [...text.matchAll(PLAIN_COLUMN)].map(([, name = '', descending]) => ({
    name: name.replaceAll('``', '`'),
    ...(descending && { order: 'desc' as const }),
  }));
}

const PLAIN_COLUMNS = /^\(`(?:[^`]|``)+`(?: DESC)?(?:,`(?:[^`]|``)+`(?: DESC)?)*\)$/;
const PLAIN_COLUMN = /`((?:[^`]|``)+)`( DESC)?/g;

/** The primary key, as a unique index of the probe. */
export const PROBED_KEY = '_svc_key';

export const nativeKeyOf = ({ constraints }: Collection): string | undefined =>
  [...constraints.values()].find(({ type }) => type === 'primaryKey')?.native;

/** A temporary table cannot have an index of another kind. */
export function probedIndex({ name, native, unique }: Omit<Index, 'columns'>, table: string): string[] {
  if (native === undefined || !native.startsWith('(')) return [];
  return [`${unique ? 'UNIQUE ' : ''}INDEX ${quoteIdentifier(name)} ${nativeIndex(native, table, name)}`];
}

/** The indexes of the probe, by name. */
export async function readIndexes(
  exec: ExecSql,
  traits: Traits,
  probe: string,
  collection: Collection,
): Promise<ReadonlyMap<string, CatalogIndex>> {
  const { fields, indexes } = collection;
  const found = new Map<string, CatalogIndex>();
  if (![...indexes.values(), { native: nativeKeyOf(collection) }].some(({ native }) => native !== undefined))
    return found;
  const shown = await rowsOf(exec, `SHOW INDEX FROM ${probe}`);
  const rows = shown.map((row) => ({
    n: row.Key_name,
    nu: row.Non_unique,
    c: row.Column_name,
    o: row.Collation,
    part: row.Sub_part,
    kind: row.Index_type,
    comment: row.Index_comment,
    e: row.Expression ?? null,
    hidden: row.Visible === 'NO' || row.Ignored === 'YES' ? 1 : 0,
  }));
  for (const name of new Set(rows.map(({ n }) => String(n)))) {
    const own = rows.filter(({ n }) => n === name);
    found.set(name, indexOf(traits, [name, own], [...fields.keys()]));
  }
  return found;
}

export function respellIndexes(
  indexes: Collection['indexes'],
  probed: ReadonlyMap<string, CatalogIndex>,
): Collection['indexes'] {
  return new Map(
    [...indexes].map(([name, index]) => {
      if (index.native === undefined) return [name, index];
      const found = probed.get(name);
      return [name, found ? modelIndex(found) : withQuotedColumns(index)];
    }),
  );
}

/** `FULLTEXT (a, b)` as the catalog shows it: these indexes are on whole columns. */
function withQuotedColumns(index: Index): Index {
  const columns = index.columns.map(({ name }) => quoteIdentifier(name)).join(',');
  const [, kind = '', rest = ''] = /^(\w+) ?\([^)]*\)(.*)$/s.exec(index.native ?? '') ?? [];
  return { ...index, native: `${kind.toUpperCase()} (${columns})${rest}` };
}

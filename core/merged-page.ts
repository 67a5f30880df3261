import { mergeSorted, type SortedList } from './merge-sorted.ts';
import {
  buildPage,
  equalsOf,
  type Page,
  type PagePosition,
  type PageQuery,
  pageIndex,
  type RecordDefinition,
  type RecordValue,
  type Versioned,
} from './records.ts';

/** Entries are small; of whole records, fewer are read ahead. */
const EXTRA_RECORDS = 2;

const compareValues = (one: RecordValue, other: RecordValue): number =>
  typeof one === 'string' && typeof other === 'string'
    ? Buffer.compare(Buffer.from(one), Buffer.from(other))
    : Number(one) - Number(other);

const comparePositions = (one: PagePosition, other: PagePosition): number =>
  compareValues(one.sort, other.sort) || compareValues(one.key, other.key);

/** A page with `anyOf`, merged from a page of each: for a store that cannot read them together. */
export async function mergedPage<R extends object>(
  definition: RecordDefinition<R>,
  name: string,
  query: PageQuery<R>,
  pageOf: (query: PageQuery<R>) => Promise<Page<R>>,
): Promise<Page<R>> {
  const { anyOf: _, columns, cursor: start, ...rest } = query;
  const index = pageIndex(definition, name, query);
  const read = columns && { columns: [...new Set([...columns, index.sort, definition.key])] };
  const lists = equalsOf(query).map((equals): SortedList<Versioned<R>> => {
    let cursor = start;
    return async (_after, limit) => {
      const page = await pageOf({
        ...rest,
        ...read,
        equals,
        limit: Math.min(limit, query.limit),
        ...(cursor !== undefined && { cursor }),
      });
      cursor = page.cursor;
      return { items: page.records, more: cursor !== undefined };
    };
  });
  const positionOf = ({ record }: Versioned<R>): PagePosition => ({
    sort: (record[index.sort] ?? null) as RecordValue,
    key: String(record[definition.key]),
  });
  const sign = query.direction === 'desc' ? -1 : 1;
  const compare = (one: Versioned<R>, other: Versioned<R>) =>
    sign * comparePositions(positionOf(one), positionOf(other));
  const found = await mergeSorted(lists, query.limit + 1, compare, EXTRA_RECORDS);
  const wanted = ({ record, version }: Versioned<R>): Versioned<R> => {
    if (!columns) return { record, version };
    return { record: Object.fromEntries(columns.map((column) => [column, record[column]])) as R, version };
  };
  return buildPage(found, query.limit, wanted, positionOf);
}

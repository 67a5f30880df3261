import { mergeSorted, type SortedList } from '../../../../core/merge-sorted.ts';
import {
  type AnyRecordDefinition,
  buildPage,
  equalsOf,
  type Page,
  type PageQuery,
  pageStart,
  type RecordValues,
} from '../../../../core/records.ts';
import type { DynamoClient } from '../connection/client.ts';
import { ignoreNotFound } from '../connection/errors.ts';
import { batchGet, scanPages } from '../connection/read-items.ts';
import type { Item } from '../data/attribute.ts';
import {
  decodeRecord,
  indexKey,
  indexPartitions,
  isGlobalIndex,
  partitionAttribute,
  sortAttribute,
  sortBounds,
  sortText,
  VERSION,
  versionOf,
} from './record-item.ts';
import { recordKey } from './record-writes.ts';

type Index = AnyRecordDefinition['indexes'][number];
type Query = PageQuery<RecordValues>;

interface SortedItem {
  readonly sort: string;
  readonly item: Item;
}

interface PageRequest {
  readonly client: DynamoClient;
  readonly definition: AnyRecordDefinition;
  readonly index: Index;
  readonly query: Query;
}

export async function recordPage(request: PageRequest): Promise<Page<RecordValues>> {
  const { definition, index, query } = request;
  const start = pageStart(definition, index, query);
  const cursor = start && `${sortText(start.sort)}\0${start.key}`;
  if (query.unconfirmed && isGlobalIndex(index)) {
    const entries = await entriesAfter(request, cursor, query.limit);
    return { records: entries.map(({ key }) => ({ record: { [definition.key]: key }, version: 0 })) };
  }
  const found = await (isGlobalIndex(index) ? pageFromIndex(request, cursor) : pageFromTable(request, cursor));
  return buildPage(
    found,
    query.limit,
    ({ item }) => ({ record: decodeRecord(definition, item, query.columns), version: versionOf(item) }),
    ({ item }) => {
      const record = decodeRecord(definition, item, [index.sort, definition.key]);
      return { sort: record[index.sort] ?? null, key: String(record[definition.key]) };
    },
  );
}

const compareText = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Reads the whole table and sorts it in memory: only a table read is strongly consistent, a global index is not. */
async function pageFromTable(
  { client, definition, index, query }: PageRequest,
  cursor: string | undefined,
): Promise<SortedItem[]> {
  const descending = query.direction === 'desc';
  const [low, high] = sortBounds(query.from, query.to);
  const within = ({ sort }: SortedItem) =>
    sort >= low && sort <= high && (cursor === undefined || (descending ? sort < cursor : sort > cursor));
  const found: SortedItem[] = [];
  const input = { TableName: client.table(definition.collection), ...projection(definition, index, query) };
  try {
    for await (const page of scanPages(client, input)) {
      for (const item of page.Items ?? []) {
        const record = decodeRecord(definition, item, [index.sort, definition.key]);
        const entry = { sort: `${sortText(record[index.sort] ?? null)}\0${record[definition.key]}`, item };
        if (within(entry)) found.push(entry);
      }
    }
  } catch (error) {
    ignoreNotFound(error);
  }
  return found.sort((a, b) => (descending ? -1 : 1) * (a.sort < b.sort ? -1 : 1));
}

/** Reads the keys from the index, which lags, and the current items from the table. Leaves out items whose key has changed. */
async function pageFromIndex(request: PageRequest, cursor: string | undefined): Promise<SortedItem[]> {
  const { client, definition, index, query } = request;
  const found: SortedItem[] = [];
  let position = cursor;
  for (;;) {
    const wanted = query.limit + 1 - found.length;
    const entries = await entriesAfter(request, position, wanted);
    const items = await batchGet(
      client,
      client.table(definition.collection),
      entries.map(({ key }) => recordKey(definition, key)),
      projection(definition, index, query),
    );
    const byKey = new Map(items.map((item) => [item[definition.key]?.S ?? '', item]));
    for (const { sort, partition, key } of entries) {
      const item = byKey.get(key);
      const now =
        item && indexKey(index, definition, decodeRecord(definition, item, requiredColumns(definition, index)));
      if (item && now?.sort === sort && now.partition === partition) found.push({ sort, item });
    }
    if (found.length > query.limit || entries.length < wanted) return found;
    position = entries.at(-1)?.sort;
  }
}

interface IndexEntry {
  readonly sort: string;
  readonly key: string;
  readonly partition: string;
}

/** The next entries of all partitions, merged in order. */
async function entriesAfter(
  { client, definition, index, query }: PageRequest,
  position: string | undefined,
  limit: number,
): Promise<IndexEntry[]> {
  const descending = query.direction === 'desc';
  const [low, high] = sortBounds(query.from, query.to);
  const partitions = equalsOf(query).flatMap((equals) => indexPartitions(index, equals));
  const read = async (partition: string, after: string | undefined, limit: number) => {
    const first = !descending && after !== undefined && after > low ? after : low;
    const last = descending && after !== undefined && after < high ? after : high;
    if (compareText(first, last) > 0) return { items: [], more: false };
    const page = await client
      .send('Query', {
        TableName: client.table(definition.collection),
        IndexName: index.name,
        KeyConditionExpression: '#partition = :partition AND #at BETWEEN :first AND :last',
        ExpressionAttributeNames: { '#partition': partitionAttribute(index), '#at': sortAttribute(index) },
        ExpressionAttributeValues: { ':partition': { S: partition }, ':first': { S: first }, ':last': { S: last } },
        ScanIndexForward: !descending,
        // One more after an entry, because that is read again and left out.
        Limit: limit + Number(after !== undefined),
      })
      .catch(ignoreNotFound);
    const items: IndexEntry[] = [];
    for (const item of page?.Items ?? []) {
      const sort = item[sortAttribute(index)]?.S ?? '';
      if (sort !== after) items.push({ sort, key: item[definition.key]?.S ?? '', partition });
    }
    return { items, more: page?.LastEvaluatedKey !== undefined };
  };
  const lists = partitions.map(
    (partition): SortedList<IndexEntry> =>
      (after, count) =>
        read(partition, after?.sort ?? position, count),
  );
  return mergeSorted(lists, limit, (a, b) => (descending ? -1 : 1) * compareText(a.sort, b.sort));
}

function requiredColumns(definition: AnyRecordDefinition, index: Index): string[] {
  return [definition.key, ...index.equals, index.sort];
}

function projection(definition: AnyRecordDefinition, index: Index, { columns }: Query) {
  if (!columns) return {};
  const names = [...new Set([...columns, ...requiredColumns(definition, index), VERSION])];
  return {
    ProjectionExpression: names.map((_, at) => `#p${at}`).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names.map((name, at) => [`#p${at}`, name])),
  };
}

import { SvcError } from '../../../core/errors.ts';
import type { AnyRecordDefinition, Page, PageQuery, RecordValues, Versioned } from '../../../core/records.ts';
import { firstOf, type ReadOn } from '../../first-of.ts';
import type { Api } from './api.ts';
import type { Item } from './attribute.ts';
import { isMissing } from './errors.ts';
import { readMany } from './read-many.ts';
import { recordKey } from './record-change.ts';
import { bounds, isGlobal, partitionName, partitionsOf, placeIn, sortName, sortText } from './record-index.ts';
import { recordFrom, VERSION, versionOf } from './record-item.ts';

type Index = AnyRecordDefinition['indexes'][number];
type Query = PageQuery<RecordValues>;

interface Placed {
  /** Sorts as the page does. */
  readonly at: string;
  readonly item: Item;
}

/** A page of an index, in its order. */
export async function recordPage(
  api: Api,
  definition: AnyRecordDefinition,
  index: Index,
  query: Query,
): Promise<Page<RecordValues>> {
  const cursor = query.cursor === undefined ? undefined : positionIn(query.cursor);
  const found = isGlobal(index)
    ? await fromIndex(api, definition, index, query, cursor)
    : await fromTable(api, definition, index, query, cursor);
  const records = found.slice(0, query.limit).map(
    ({ item }): Versioned<RecordValues> => ({
      record: recordFrom(definition, item, query.columns),
      version: versionOf(item),
    }),
  );
  const last = found.length > query.limit ? found[query.limit - 1] : undefined;
  return last ? { records, cursor: Buffer.from(JSON.stringify(last.at)).toString('base64url') } : { records };
}

function positionIn(cursor: string): string {
  try {
    const at: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (typeof at === 'string') return at;
  } catch {
    // Told below, as for a cursor of another shape.
  }
  throw new SvcError('value_invalid', 'The cursor is not one that a page gave.');
}

const compared = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/**
 * The whole table, read consistently and put in order here: what was written a moment ago has to be in it, which no
 * global index promises.
 */
async function fromTable(
  api: Api,
  definition: AnyRecordDefinition,
  index: Index,
  query: Query,
  cursor: string | undefined,
): Promise<Placed[]> {
  const down = query.direction === 'desc';
  const [low, high] = bounds(query.from, query.to);
  const within = ({ at }: Placed) =>
    at >= low && at <= high && (cursor === undefined || (down ? at < cursor : at > cursor));
  const found: Placed[] = [];
  let start: Item | undefined;
  do {
    const page = await api
      .send('Scan', {
        TableName: api.table(definition.collection),
        ConsistentRead: true,
        ...projection(definition, index, query),
        ...(start && { ExclusiveStartKey: start as never }),
      })
      .catch((error) => {
        if (isMissing(error)) return undefined;
        throw error;
      });
    for (const item of page?.Items ?? []) {
      const record = recordFrom(definition, item, [index.sort, definition.key]);
      const placed = { at: `${sortText(record[index.sort] ?? null)}\0${record[definition.key]}`, item };
      if (within(placed)) found.push(placed);
    }
    start = page?.LastEvaluatedKey;
  } while (start);
  return found.sort((a, b) => (down ? -1 : 1) * (a.at < b.at ? -1 : 1));
}

/** Places as the index has them, which lags, and behind each the item as it is now: one that has moved is left out. */
async function fromIndex(
  api: Api,
  definition: AnyRecordDefinition,
  index: Index,
  query: Query,
  cursor: string | undefined,
): Promise<Placed[]> {
  const partitions = partitionsOf(index, query.equals ?? {});
  const found: Placed[] = [];
  let position = cursor;
  for (;;) {
    const wanted = query.limit + 1 - found.length;
    const places = await placesAfter(api, definition, index, query, partitions, position, wanted);
    const items = await readMany(
      api,
      api.table(definition.collection),
      places.map(({ key }) => recordKey(definition, key)),
      projection(definition, index, query),
    );
    const byKey = new Map(items.map((item) => [item[definition.key]?.S ?? '', item]));
    for (const { at, partition, key } of places) {
      const item = byKey.get(key);
      const now = item && placeIn(index, definition, recordFrom(definition, item, needed(definition, index)));
      if (item && now?.at === at && now.partition === partition) found.push({ at, item });
    }
    if (found.length > query.limit || places.length < wanted) return found;
    position = places.at(-1)?.at;
  }
}

interface Place {
  readonly at: string;
  readonly key: string;
  readonly partition: string;
}

/** The next places of all partitions, put in order. */
async function placesAfter(
  api: Api,
  definition: AnyRecordDefinition,
  index: Index,
  { direction, from, to }: Query,
  partitions: readonly string[],
  position: string | undefined,
  limit: number,
): Promise<Place[]> {
  const down = direction === 'desc';
  const [low, high] = bounds(from, to);
  const read = async (partition: string, after: string | undefined, most: number) => {
    const first = !down && after !== undefined && after > low ? after : low;
    const last = down && after !== undefined && after < high ? after : high;
    if (compared(first, last) > 0) return { items: [], more: false };
    const page = await api
      .send('Query', {
        TableName: api.table(definition.collection),
        IndexName: index.name,
        KeyConditionExpression: '#partition = :partition AND #at BETWEEN :first AND :last',
        ExpressionAttributeNames: { '#partition': partitionName(index), '#at': sortName(index) },
        ExpressionAttributeValues: { ':partition': { S: partition }, ':first': { S: first }, ':last': { S: last } },
        ScanIndexForward: !down,
        // One more than is wanted: the place that the cursor names is read again and left out.
        Limit: most + 1,
      })
      .catch((error) => {
        if (isMissing(error)) return undefined;
        throw error;
      });
    const items: Place[] = [];
    for (const item of page?.Items ?? []) {
      const at = item[sortName(index)]?.S ?? '';
      if (at !== after) items.push({ at, key: item[definition.key]?.S ?? '', partition });
    }
    return { items, more: page?.LastEvaluatedKey !== undefined };
  };
  const lists = partitions.map(
    (partition): ReadOn<Place> =>
      (after, most) =>
        read(partition, after?.at ?? position, most),
  );
  return firstOf(lists, limit, (a, b) => (down ? -1 : 1) * compared(a.at, b.at));
}

function needed(definition: AnyRecordDefinition, index: Index): string[] {
  return [definition.key, ...index.equals, index.sort];
}

function projection(definition: AnyRecordDefinition, index: Index, { columns }: Query) {
  if (!columns) return {};
  const names = [...new Set([...columns, ...needed(definition, index), VERSION])];
  return {
    ProjectionExpression: names.map((_, at) => `#p${at}`).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names.map((name, at) => [`#p${at}`, name])),
  };
}

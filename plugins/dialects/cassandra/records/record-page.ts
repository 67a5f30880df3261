import { mergeSorted, type SortedList } from '../../../../core/merge-sorted.ts';
import {
  type AnyRecordDefinition,
  buildPage,
  columnOf,
  equalsOf,
  type Page,
  type PagePosition,
  type PageQuery,
  pageStart,
  type RecordValue,
  type RecordValues,
  type Versioned,
} from '../../../../core/records.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { Row, Session } from '../connection/session.ts';
import { ifMissing } from '../connection/system-schema.ts';
import {
  equalsColumn,
  type Index,
  indexRowValues,
  indexTable,
  removeIndexRow,
  SHARD_COUNT,
  shardOf,
} from './index-table.ts';
import { LOCK_SCOPE, LOCK_TABLE, VERSION_COLUMN } from './lock-partition.ts';
import { compareValues, decodeColumn, encodeColumn } from './record-values.ts';
import { decodeRecord, type RecordLocation, readRecord, readRecords, versionOf } from './record-writes.ts';

/** Reads all records of the lock partition and sorts them in memory, because they are few. */
export async function pageFromLockPartition(
  session: Session,
  location: RecordLocation,
  index: Index,
  query: PageQuery<RecordValues>,
): Promise<Page<RecordValues>> {
  const { definition } = location;
  const wanted = query.columns ?? Object.keys(definition.columns);
  const names = requiredColumns(definition, index, wanted);
  const cql = `SELECT ${[...names.map(location.column), VERSION_COLUMN].map(quoteIdentifier).join(', ')} FROM ${quoteIdentifier(LOCK_TABLE)} WHERE scope = ? AND kind = ?`;
  // Taking the lock has completed pending transactions of the partition, so QUORUM sees all writes.
  const rows = await session.readQuorum(cql, [LOCK_SCOPE, definition.collection]);
  const sign = query.direction === 'desc' ? -1 : 1;
  const order = (a: PagePosition, b: PagePosition) => sign * comparePositions(a, b);
  const after = pageStart(definition, index, query);
  const entries = rows
    .filter((row) => versionOf(row) > 0)
    .map((row): PageEntry => {
      const record = decodeRecord(location, row, names);
      return {
        record,
        version: versionOf(row),
        sort: record[index.sort] ?? null,
        key: record[definition.key] as string,
      };
    })
    .filter(
      (entry) =>
        equalsOf(query).some((equals) =>
          index.equals.every((column) => compareValues(entry.record[column] ?? null, equals[column] ?? null) === 0),
        ) &&
        (query.from === undefined || compareValues(entry.sort, query.from) >= 0) &&
        (query.to === undefined || compareValues(entry.sort, query.to) <= 0) &&
        (after === undefined || order(entry, after) > 0),
    )
    .sort(order);
  return pageOf(entries, query.limit, wanted);
}

interface PageEntry extends Versioned<RecordValues>, PagePosition {}

function pageOf(entries: readonly PageEntry[], limit: number, wanted: readonly string[]): Page<RecordValues> {
  const read = ({ record, version }: PageEntry) => ({
    version,
    record: Object.fromEntries(wanted.map((name) => [name, record[name] ?? null])),
  });
  return buildPage(entries, limit, read, (entry) => entry);
}

/** Rows that are read ahead of each partition: the more there are, the smaller the part that one can have of the page. */
const EXTRA = 8;
const EXTRA_OF_MANY = 2;
/** An index row without a record may belong to a write in progress, but not for this long. */
const ORPHAN_AFTER_MS = 600_000;

function requiredColumns(definition: AnyRecordDefinition, index: Index, wanted: readonly string[]): string[] {
  return [...new Set([...wanted, ...index.equals, index.sort, definition.key])];
}

/** Merges the rows of all shards. Leaves out, and removes, rows that the records do not confirm. */
export async function pageFromIndexTable(
  session: Session,
  location: RecordLocation,
  index: Index,
  query: PageQuery<RecordValues>,
): Promise<Page<RecordValues>> {
  const { definition } = location;
  const wanted = query.columns ?? Object.keys(definition.columns);
  const descending = query.direction === 'desc';
  const names = requiredColumns(definition, index, wanted);
  const entries: PageEntry[] = [];
  let from = pageStart(definition, index, query);
  while (entries.length <= query.limit) {
    const size = query.limit + 1 - entries.length;
    const indexRows = await readIndexRows(session, definition, index, query, size, from);
    const rows = await readRecords(session, location, new Set(indexRows.map(({ key }) => key)), names);
    const found = await Promise.all(
      indexRows.map((indexRow) => confirmIndexRow(session, location, index, indexRow, rows.get(indexRow.key), names)),
    );
    entries.push(...found.filter((entry) => entry !== undefined));
    const last = indexRows.at(-1);
    if (!last || indexRows.length < size) break;
    from = { sort: last.sort, key: last.key };
  }
  // Almost sorted already, because the shards were merged in order.
  return pageOf(
    entries.sort((a, b) => (descending ? -1 : 1) * comparePositions(a, b)),
    query.limit,
    wanted,
  );
}

interface IndexRow extends PagePosition {
  /** The latest version of the rows with this position. */
  readonly version: number;
  readonly at: Date;
  readonly equals: readonly unknown[];
}

const comparePositions = (a: PagePosition, b: PagePosition): number =>
  compareValues(a.sort, b.sort) || compareValues(a.key, b.key);

async function readIndexRows(
  session: Session,
  definition: AnyRecordDefinition,
  index: Index,
  query: PageQuery<RecordValues>,
  size: number,
  from: PagePosition | undefined,
): Promise<IndexRow[]> {
  const sort = columnOf(definition, index.sort);
  const descending = query.direction === 'desc';
  const encode = (value: RecordValue) => encodeColumn(value, sort, index.sort);
  const orderBy = descending ? ' ORDER BY sort DESC, key DESC, version DESC' : '';
  const extra = query.anyOf ? EXTRA_OF_MANY : EXTRA;
  const order = (a: PagePosition, b: PagePosition) => (descending ? -1 : 1) * comparePositions(a, b);
  const read = async (
    equals: readonly unknown[],
    shards: readonly number[],
    start: PagePosition | undefined,
    limit: number,
  ) => {
    const size = Math.ceil(limit / shards.length) + (shards.length > 1 ? extra : 0);
    const bounds: [string, readonly unknown[]][] = [];
    // One bound on each side: the start position is always within the bounds of the query.
    if (start) bounds.push([`(sort, key) ${descending ? '<' : '>'} (?, ?)`, [encode(start.sort), start.key]]);
    if (query.from !== undefined && !(start && !descending)) bounds.push(['(sort) >= (?)', [encode(query.from)]]);
    if (query.to !== undefined && !(start && descending)) bounds.push(['(sort) <= (?)', [encode(query.to)]]);
    const where = [
      ...index.equals.map((name) => `${quoteIdentifier(equalsColumn(name))} = ?`),
      shards.length > 1 ? `shard IN (${shards.join(', ')})` : `shard = ${shards[0]}`,
      ...bounds.map(([text]) => text),
    ];
    const cql = `SELECT shard, sort, key, version, at FROM ${quoteIdentifier(indexTable(definition, index))} WHERE ${where.join(' AND ')}${orderBy} PER PARTITION LIMIT ?`;
    const rows = await session.rows(cql, [...equals, ...bounds.flatMap(([, values]) => values), size]);
    const indexRows = rows.map((row) => ({
      sort: decodeColumn(row.sort, sort),
      key: String(row.key),
      version: Number(row.version),
      at: row.at as Date,
      equals,
    }));
    // A shard with more rows is known up to the last one that was read, and with it all shards up to the first of these.
    const shardRows = shards.map((shard) => indexRows.filter((_, at) => rows[at]?.shard === shard));
    const [known] = shardRows.flatMap((found) => (found.length === size ? found.slice(-1) : [])).sort(order);
    const items = latestPerPosition(indexRows.sort(order)).filter((item) => !known || order(item, known) <= 0);
    return { items, more: known !== undefined };
  };
  // A query that reads several partitions in another than their own order has no pages.
  const all = Array.from({ length: SHARD_COUNT }, (_, shard) => shard);
  const groups = descending ? all.map((shard) => [shard]) : [all];
  const partitions = equalsOf(query).flatMap((values) => {
    const equals = index.equals.map((name) => encodeColumn(values[name], columnOf(definition, name), name));
    return groups.map(
      (shards): SortedList<IndexRow> =>
        (after, limit) =>
          read(equals, shards, after ?? from, limit),
    );
  });
  return ifMissing(
    session,
    indexTable(definition, index),
    ['key'],
    () => mergeSorted(partitions, size, order, extra),
    async () => [],
  );
}

/** One row per position: a record that returned to a position has several consecutive rows. */
function latestPerPosition(indexRows: readonly IndexRow[]): IndexRow[] {
  const found: IndexRow[] = [];
  for (const indexRow of indexRows) {
    const last = found.at(-1);
    if (!last || comparePositions(last, indexRow) !== 0) found.push(indexRow);
    else if (last.version < indexRow.version) found[found.length - 1] = indexRow;
  }
  return found;
}

/** A quorum read may miss a write in progress, so a record that does not confirm the row is read again at SERIAL. */
async function confirmIndexRow(
  session: Session,
  location: RecordLocation,
  index: Index,
  indexRow: IndexRow,
  quorumRow: Row | undefined,
  names: readonly string[],
): Promise<PageEntry | undefined> {
  const { definition } = location;
  const rowKey = [
    ...indexRow.equals,
    shardOf(indexRow.key),
    encodeColumn(indexRow.sort, columnOf(definition, index.sort), index.sort),
    indexRow.key,
  ];
  const confirmed = (row: Row | undefined): PageEntry | undefined => {
    const record = row && decodeRecord(location, row, names);
    const currentKey = record && indexRowValues(definition, index, record);
    if (!record || !currentKey || !equalKeys(currentKey, rowKey)) return undefined;
    return { record, version: versionOf(row), sort: indexRow.sort, key: indexRow.key };
  };
  const entry = confirmed(quorumRow);
  if (entry) return entry;
  const row = await readRecord(session, location, indexRow.key);
  const serialEntry = confirmed(row);
  if (serialEntry) return serialEntry;
  // No write in progress can still confirm the row.
  const isOrphan = row ? versionOf(row) >= indexRow.version : Date.now() - indexRow.at.getTime() > ORPHAN_AFTER_MS;
  if (isOrphan) await removeIndexRow(session, definition, index, rowKey, indexRow.version).catch(() => undefined);
  return undefined;
}

const equalKeys = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.every(
    (value, at) =>
      String(value instanceof Date ? value.getTime() : value) ===
      String(b[at] instanceof Date ? (b[at] as Date).getTime() : b[at]),
  );

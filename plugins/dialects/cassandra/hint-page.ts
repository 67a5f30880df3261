import type { AnyRecordDefinition, Page, PageQuery, RecordValue, RecordValues } from '../../../core/records.ts';
import { firstOf, type ReadOn } from '../../first-of.ts';
import { decodeRecord, encodeRecord } from './codec.ts';
import { cursorValues } from './cursor.ts';
import { columnOf, drop, equalsColumn, hintTable, type Index, SHARDS, shardOf, spot } from './hints.ts';
import { orMissing } from './home.ts';
import { type Place, pageFrom } from './locked-page.ts';
import { quote } from './names.ts';
import { compare } from './order.ts';
import { read, readMany, recordOf, type Seat, versionOf } from './seat.ts';
import type { Row, Session } from './session.ts';

/** A hint without a record may be of a write under way, but not for that long. */
const STALE_MS = 600_000;

/** Shards are read from where the page begins, and what the records do not bear out is left out and swept. */
export async function pageOfHints(
  session: Session,
  seat: Seat,
  index: Index,
  query: PageQuery<RecordValues>,
): Promise<Page<RecordValues>> {
  const { definition } = seat;
  const type = columnOf(definition, index.sort).type;
  const wanted = query.columns ?? Object.keys(definition.columns);
  const down = query.direction === 'desc';
  const places: Place[] = [];
  let from = query.cursor === undefined ? undefined : cursorValues(query.cursor, type);
  while (places.length <= query.limit) {
    const size = query.limit + 1 - places.length;
    const hints = await hintsFrom(session, definition, index, query, size, from);
    const rows = await readMany(session, seat, new Set(hints.map(({ key }) => key)));
    const found = await Promise.all(hints.map((hint) => believed(session, seat, index, hint, rows.get(hint.key))));
    places.push(...found.filter((place) => place !== undefined));
    const last = hints.at(-1);
    if (!last || hints.length < size) break;
    from = { sort: last.sort, key: last.key };
  }
  // In the order of the engine already: shards were merged in it.
  return pageFrom(
    places.sort((a, b) => (down ? -1 : 1) * inOrder(a, b)),
    query.limit,
    wanted,
  );
}

interface Start {
  readonly sort: RecordValue;
  readonly key: string;
}

interface Hint extends Start {
  /** The latest of those that say the same. */
  readonly version: number;
  readonly at: Date;
  readonly equals: readonly unknown[];
}

const inOrder = (a: Start, b: Start): number => compare(a.sort, b.sort) || compare(a.key, b.key);

async function hintsFrom(
  session: Session,
  definition: AnyRecordDefinition,
  index: Index,
  query: PageQuery<RecordValues>,
  size: number,
  from: Start | undefined,
): Promise<Hint[]> {
  const sort = columnOf(definition, index.sort);
  const down = query.direction === 'desc';
  const equals = index.equals.map((name) => {
    if (query.equals?.[name] === undefined) throw new Error(`${index.name} needs a value for ${name}`);
    return encodeRecord(query.equals[name], columnOf(definition, name), name);
  });
  const say = (value: RecordValue) => encodeRecord(value, sort, index.sort);
  const order = down ? ' ORDER BY sort DESC, key DESC, version DESC' : '';
  const read = async (shard: number, start: Start | undefined, limit: number) => {
    const bounds: [string, readonly unknown[]][] = [];
    // One bound on each side: where a page goes on is never outside of what the query asks for.
    if (start) bounds.push([`(sort, key) ${down ? '<' : '>'} (?, ?)`, [say(start.sort), start.key]]);
    if (query.from !== undefined && !(start && !down)) bounds.push(['(sort) >= (?)', [say(query.from)]]);
    if (query.to !== undefined && !(start && down)) bounds.push(['(sort) <= (?)', [say(query.to)]]);
    const where = [
      ...index.equals.map((name) => `${quote(equalsColumn(name))} = ?`),
      'shard = ?',
      ...bounds.map(([text]) => text),
    ];
    const cql = `SELECT sort, key, version, at FROM ${quote(hintTable(definition, index))} WHERE ${where.join(' AND ')}${order} LIMIT ?`;
    const rows = await session.rows(cql, [...equals, shard, ...bounds.flatMap(([, values]) => values), limit]);
    const hints = rows.map((row) => ({
      sort: decodeRecord(row.sort, sort),
      key: String(row.key),
      version: Number(row.version),
      at: row.at as Date,
      equals,
    }));
    return { items: latest(hints), more: rows.length === limit };
  };
  const shards = Array.from(
    { length: SHARDS },
    (_, shard): ReadOn<Hint> =>
      (after, limit) =>
        read(shard, after ?? from, limit),
  );
  return orMissing(
    session,
    hintTable(definition, index),
    ['key'],
    () => firstOf(shards, size, (a, b) => (down ? -1 : 1) * inOrder(a, b)),
    async () => [],
  );
}

/** One of each place: a record that came and went has several hints there, one behind the other. */
function latest(hints: readonly Hint[]): Hint[] {
  const found: Hint[] = [];
  for (const hint of hints) {
    const last = found.at(-1);
    if (!last || inOrder(last, hint) !== 0) found.push(hint);
    else if (last.version < hint.version) found[found.length - 1] = hint;
  }
  return found;
}

/** `seen` at quorum may be behind a write that is under way: where it denies the hint, the record is asked for. */
async function believed(
  session: Session,
  seat: Seat,
  index: Index,
  hint: Hint,
  seen: Row | undefined,
): Promise<Place | undefined> {
  const { definition } = seat;
  const at = [
    ...hint.equals,
    shardOf(hint.key),
    encodeRecord(hint.sort, columnOf(definition, index.sort), index.sort),
    hint.key,
  ];
  const place = (row: Row | undefined): Place | undefined => {
    const record = row && recordOf(seat, row);
    const said = record && spot(definition, index, record);
    if (!record || !said || !isSame(said, at)) return undefined;
    return { record, version: versionOf(row), sort: hint.sort, key: hint.key };
  };
  const listed = place(seen);
  if (listed) return listed;
  const row = await read(session, seat, hint.key);
  const borne = place(row);
  if (borne) return borne;
  // No write that could make it true is under way any more.
  const decidedLongAgo = row ? versionOf(row) >= hint.version : Date.now() - hint.at.getTime() > STALE_MS;
  if (decidedLongAgo) await drop(session, definition, index, at, hint.version).catch(() => undefined);
  return undefined;
}

const isSame = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.every(
    (value, at) =>
      String(value instanceof Date ? value.getTime() : value) ===
      String(b[at] instanceof Date ? (b[at] as Date).getTime() : b[at]),
  );

import type { AnyRecordDefinition, Page, PageQuery, RecordValue, RecordValues } from '../../../core/records.ts';
import { decodeRecord, encodeRecord } from './codec.ts';
import { cursorValues } from './cursor.ts';
import { columnOf, drop, equalsColumn, hintTable, type Index, SHARDS, shardOf, spot } from './hints.ts';
import { orMissing } from './home.ts';
import { type Place, pageFrom } from './locked-page.ts';
import { quote } from './names.ts';
import { compare } from './order.ts';
import { read, recordOf, type Seat, versionOf } from './seat.ts';
import type { Row, Session } from './session.ts';

/** A hint without a record may be of a write under way, but not for that long. */
const STALE_MS = 600_000;

/** Every shard is read from where the page begins, and what the records do not bear out is left out and swept. */
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
    const found = await Promise.all(hints.map((hint) => believed(session, seat, index, hint)));
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

interface Hint {
  readonly sort: RecordValue;
  readonly key: string;
  /** The latest of those that say the same. */
  readonly version: number;
  readonly at: Date;
  readonly equals: readonly unknown[];
}

const inOrder = (a: Pick<Hint, 'sort' | 'key'>, b: Pick<Hint, 'sort' | 'key'>): number =>
  compare(a.sort, b.sort) || compare(a.key, b.key);

async function hintsFrom(
  session: Session,
  definition: AnyRecordDefinition,
  index: Index,
  query: PageQuery<RecordValues>,
  size: number,
  from: { readonly sort: RecordValue; readonly key: string } | undefined,
): Promise<Hint[]> {
  const sort = columnOf(definition, index.sort);
  const down = query.direction === 'desc';
  const equals = index.equals.map((name) => {
    if (query.equals?.[name] === undefined) throw new Error(`${index.name} needs a value for ${name}`);
    return encodeRecord(query.equals[name], columnOf(definition, name), name);
  });
  const bounds: [string, readonly unknown[]][] = [];
  const say = (value: RecordValue) => encodeRecord(value, sort, index.sort);
  // One bound on each side: where a page goes on is never outside of what the query asks for.
  if (from) bounds.push([`(sort, key) ${down ? '<' : '>'} (?, ?)`, [say(from.sort), from.key]]);
  if (query.from !== undefined && !(from && !down)) bounds.push(['(sort) >= (?)', [say(query.from)]]);
  if (query.to !== undefined && !(from && down)) bounds.push(['(sort) <= (?)', [say(query.to)]]);
  const where = [
    ...index.equals.map((name) => `${quote(equalsColumn(name))} = ?`),
    'shard = ?',
    ...bounds.map(([text]) => text),
  ];
  const order = down ? ' ORDER BY sort DESC, key DESC, version DESC' : '';
  const cql = `SELECT sort, key, version, at FROM ${quote(hintTable(definition, index))} WHERE ${where.join(' AND ')}${order} LIMIT ?`;
  const ask = (shard: number, limit: number) =>
    session.rows(cql, [...equals, shard, ...bounds.flatMap(([, values]) => values), limit]);
  const shards = await orMissing(
    session,
    hintTable(definition, index),
    ['key'],
    () => Promise.all(Array.from({ length: SHARDS }, (_, shard) => distinct(ask, shard, size))),
    async () => [],
  );
  return shards
    .flat()
    .map((row) => ({
      sort: decodeRecord(row.sort, sort),
      key: String(row.key),
      version: Number(row.version),
      at: row.at as Date,
      equals,
    }))
    .sort((a, b) => (down ? -1 : 1) * inOrder(a, b))
    .slice(0, size);
}

/** So many records of a shard: one that came and went has several hints. */
async function distinct(
  ask: (shard: number, limit: number) => Promise<readonly Row[]>,
  shard: number,
  size: number,
): Promise<Row[]> {
  for (let limit = size; ; limit *= 2) {
    const rows = await ask(shard, limit);
    const byPlace = new Map<string, Row>();
    for (const row of rows) {
      const place = JSON.stringify([String(row.sort), row.key]);
      const known = byPlace.get(place);
      if (!known || Number(known.version) < Number(row.version)) byPlace.set(place, row);
    }
    if (byPlace.size >= size || rows.length < limit) return [...byPlace.values()].slice(0, size);
  }
}

async function believed(session: Session, seat: Seat, index: Index, hint: Hint): Promise<Place | undefined> {
  const { definition } = seat;
  const row = await read(session, seat, hint.key);
  const record = row && recordOf(seat, row);
  const said = record && spot(definition, index, record);
  const at = [
    ...hint.equals,
    shardOf(hint.key),
    encodeRecord(hint.sort, columnOf(definition, index.sort), index.sort),
    hint.key,
  ];
  if (row && said && isSame(said, at)) return { record, version: versionOf(row), sort: hint.sort, key: hint.key };
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

import type { Page, PageQuery, RecordIndex, RecordValue, RecordValues, Versioned } from '../../../core/records.ts';
import { cursorOf, cursorValues } from './cursor.ts';
import { HOME, SCOPE, VERSION } from './home.ts';
import { quote } from './names.ts';
import { compare } from './order.ts';
import { recordOf, type Seat, versionOf } from './seat.ts';
import type { Session } from './session.ts';

/** A page of records beside the lock: they are few, so their partition is read and put in order here. */
export async function pageAtHome(
  session: Session,
  seat: Seat,
  index: RecordIndex<RecordValues>,
  query: PageQuery<RecordValues>,
): Promise<Page<RecordValues>> {
  const { definition } = seat;
  const wanted = query.columns ?? Object.keys(definition.columns);
  const names = [...new Set([...wanted, ...index.equals, index.sort, definition.key])];
  const cql = `SELECT ${[...names.map(seat.column), VERSION].map(quote).join(', ')} FROM ${quote(HOME)} WHERE scope = ? AND kind = ?`;
  // Whoever has taken the lock has ended what hung in this partition: a read at quorum sees all of it.
  const rows = await session.widely(cql, [SCOPE, definition.collection]);
  const down = query.direction === 'desc' ? -1 : 1;
  const order = (a: Pick<Place, 'sort' | 'key'>, b: Pick<Place, 'sort' | 'key'>) =>
    down * (compare(a.sort, b.sort) || compare(a.key, b.key));
  const after =
    query.cursor === undefined ? undefined : cursorValues(query.cursor, definition.columns[index.sort]?.type);
  const places = rows
    .filter((row) => versionOf(row) > 0)
    .map((row): Place => {
      const record = recordOf(seat, row, names);
      return {
        record,
        version: versionOf(row),
        sort: record[index.sort] ?? null,
        key: record[definition.key] as string,
      };
    })
    .filter(
      (place) =>
        index.equals.every((column) => compare(place.record[column] ?? null, query.equals?.[column] ?? null) === 0) &&
        (query.from === undefined || compare(place.sort, query.from) >= 0) &&
        (query.to === undefined || compare(place.sort, query.to) <= 0) &&
        (after === undefined || order(place, after) > 0),
    )
    .sort(order);
  return pageFrom(places, query.limit, wanted);
}

export interface Place extends Versioned<RecordValues> {
  readonly sort: RecordValue;
  readonly key: string;
}

/** The first of what is in order, and where to go on. */
export function pageFrom(places: readonly Place[], limit: number, wanted: readonly string[]): Page<RecordValues> {
  const shown = places.slice(0, limit);
  const records = shown.map(({ record, version }) => ({
    version,
    record: Object.fromEntries(wanted.map((name) => [name, record[name] ?? null])),
  }));
  const last = places.length > limit ? shown.at(-1) : undefined;
  return { records, ...(last && { cursor: cursorOf(last.sort, last.key) }) };
}

import { SvcError } from '../../../core/errors.ts';
import {
  type AnyRecordDefinition,
  anyDefinition,
  CLOCK,
  ELAPSED,
  type Guard,
  type Page,
  type PageQuery,
  type RecordDefinition,
  type RecordStore,
  type RecordValues,
  type Writable,
} from '../../../core/records.ts';
import { agreed } from './agreement.ts';
import { recordType } from './codec.ts';
import { pageOfHints } from './hint-page.ts';
import { announce, hintTable, hintTableText, withdraw } from './hints.ts';
import { ATTEMPT, columnsIn, columnsOf, createHome, HOME, orMissing, VERSION } from './home.ts';
import { pageAtHome } from './locked-page.ts';
import { quote } from './names.ts';
import { change, epochStands, erase, read, recordOf, type Seat, seatOf, versionOf } from './seat.ts';
import { NOW, type Row, type Session } from './session.ts';
import type { Settings } from './settings.ts';

/** A hint that was written that long before its record may have been swept in between. */
const SURE_MS = 60_000;

export async function now(session: Session): Promise<Date> {
  const [row] = await session.rows(NOW);
  return row?.now as Date;
}

/** The record with the engine's clock where CLOCK stands; what has no segment has taken no time. */
export async function timed<T extends Writable<Partial<RecordValues>>>(
  session: Session,
  record: T,
  elapsed = 0,
): Promise<T> {
  const values = Object.entries(record);
  if (!values.some(([, value]) => value === CLOCK || value === ELAPSED)) return record;
  const moment = values.some(([, value]) => value === CLOCK) ? await now(session) : null;
  return Object.fromEntries(
    values.map(([name, value]) => [name, value === CLOCK ? moment : value === ELAPSED ? elapsed : value]),
  ) as T;
}

export function recordStore<R extends object>(session: Session, typed: RecordDefinition<R>): RecordStore<R> {
  const definition = anyDefinition(typed);
  return storeAt(session, seatOf(definition)) as unknown as RecordStore<R>;
}

export function storeAt(session: Session, seat: Seat): RecordStore<RecordValues> {
  const { definition } = seat;
  const hinted = !seat.home && definition.indexes.length > 0;
  const current = (key: string): Promise<Row | undefined> =>
    orMissing(
      session,
      seat.table,
      Object.keys(definition.columns).map(seat.column),
      () => read(session, seat, key),
      async () => undefined,
    );
  return {
    async insert(written) {
      const record = (await timed(session, written)) as RecordValues;
      const key = record[definition.key] as string;
      const since = performance.now();
      if (hinted) await announce(session, definition, record, 1);
      const done = await change(session, [{ seat, key, from: 0, to: 1, values: record }]);
      if (done && hinted && performance.now() - since > SURE_MS) await announce(session, definition, record, 1);
      return done ? 'inserted' : 'exists';
    },
    async get(key) {
      const row = await current(key);
      return row && { record: recordOf(seat, row), version: versionOf(row) };
    },
    async replace(key, version, written, guard: Guard<RecordValues> = {}) {
      const old = await current(key);
      if (!old) return 'missing';
      if (versionOf(old) !== version) return 'stale';
      const fenced = seat.home ? guard.epoch : undefined;
      if (guard.epoch !== undefined && !seat.home && !(await epochStands(session, guard.epoch))) return 'stale';
      const record = (await timed(session, written)) as RecordValues;
      const since = performance.now();
      const before = hinted ? recordOf(seat, old) : undefined;
      if (before) await announce(session, definition, record, version + 1, before);
      const values = { ...record, [definition.key]: key };
      const done = await change(
        session,
        [{ seat, key, from: version, to: version + 1, values, before: guard.before }],
        fenced,
      );
      if (!done) return whyNot(session, seat, key, version, guard);
      if (before) {
        if (performance.now() - since > SURE_MS) await announce(session, definition, record, version + 1, before);
        await withdraw(session, definition, before, version, record);
      }
      return 'replaced';
    },
    async remove(key, version) {
      const old = await current(key);
      if (!old) return 'missing';
      if (versionOf(old) !== version) return 'stale';
      if (!(await erase(session, seat, key, version))) return (await current(key)) ? 'stale' : 'missing';
      if (hinted) await withdraw(session, definition, recordOf(seat, old), version);
      return 'removed';
    },
    page: (name: string, query: PageQuery<RecordValues>): Promise<Page<RecordValues>> => {
      const index = definition.indexes.find((one) => one.name === name);
      if (!index) throw new Error(`${definition.collection} has no index ${name}`);
      if (!Number.isInteger(query.limit) || query.limit < 1 || query.limit > 1000) {
        throw new SvcError('value_invalid', `A page has 1 to 1,000 records, not ${query.limit}.`);
      }
      return seat.home
        ? orMissing(
            session,
            seat.table,
            Object.keys(definition.columns).map(seat.column),
            () => pageAtHome(session, seat, index, query),
            async () => ({ records: [] }),
          )
        : pageOfHints(session, seat, index, query);
    },
  };
}

async function whyNot(
  session: Session,
  seat: Seat,
  key: string,
  version: number,
  guard: Guard<RecordValues>,
): Promise<'stale' | 'late' | 'missing'> {
  const row = await read(session, seat, key);
  if (!row) return 'missing';
  if (versionOf(row) !== version) return 'stale';
  if (guard.epoch !== undefined && !(await epochStands(session, guard.epoch))) return 'stale';
  return guard.before === undefined ? 'stale' : 'late';
}

/** Makes what is missing, one statement after the other. */
export async function ensure(
  session: Session,
  settings: Settings,
  definitions: readonly AnyRecordDefinition[],
): Promise<void> {
  const run = async (cql: string) => {
    await agreed(session, settings.agreementTimeoutMs);
    await session.text(cql);
    await agreed(session, settings.agreementTimeoutMs);
  };
  const add = async (
    table: string,
    wanted: readonly (readonly [string, string])[],
    there: ReadonlyMap<string, string>,
  ) => {
    const missing = wanted.filter(([name]) => !there.has(name));
    if (missing.length === 0) return;
    await run(
      `ALTER TABLE ${quote(table)} ADD (${missing.map(([name, type]) => `${quote(name)} ${type}`).join(', ')})`,
    );
  };
  const together = definitions.filter((definition) => definition.together);
  if (together.length > 0) {
    if ((await columnsIn(session, HOME)).size === 0) await createHome(session, settings);
    await add(HOME, together.flatMap(columnsOf), await columnsIn(session, HOME));
  }
  for (const definition of definitions) {
    if (definition.together) continue;
    const columns = [
      ...Object.entries(definition.columns).map(([name, column]) => [name, recordType(column)] as const),
      [VERSION, 'bigint'] as const,
      [ATTEMPT, 'uuid'] as const,
    ];
    const there = await columnsIn(session, definition.collection);
    if (there.size > 0) await add(definition.collection, columns, there);
    else
      await run(
        `CREATE TABLE IF NOT EXISTS ${quote(definition.collection)} (${columns.map(([name, type]) => `${quote(name)} ${type}`).join(', ')}, PRIMARY KEY (${quote(definition.key)}))`,
      );
    for (const index of definition.indexes) {
      if ((await columnsIn(session, hintTable(definition, index))).size === 0)
        await run(hintTableText(definition, index));
    }
  }
}

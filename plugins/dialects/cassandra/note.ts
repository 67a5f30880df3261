import { anyDefinition } from '../../../core/records.ts';
import { createHome, orMissing, SCOPE, VERSION } from './home.ts';
import { quote } from './names.ts';
import type { RunPlace } from './place.ts';
import { type Registered, registry } from './registry.ts';
import { type Change, erase, read, seatOf, versionOf } from './seat.ts';

const seat = seatOf(anyDefinition(registry));

/** The write that makes the registry say this of a table: it goes with the one that says that the statement starts. */
export async function noteOf(place: RunPlace, table: string, definition: Registered, known?: number): Promise<Change> {
  const version = known ?? versionOf(await current(place, table));
  return { seat, key: table, from: version, to: version + 1, values: { table, definition } };
}

/** Left behind it harms no table that is made by hand under the same name: it is only of the one that was dropped. */
export async function forget(place: RunPlace, table: string): Promise<void> {
  const version = versionOf(await current(place, table));
  if (version > 0) await erase(place.session, seat, table, version);
}

function current(place: RunPlace, table: string) {
  return orNothing(place, () => read(place.session, seat, table), undefined);
}

/** Of what the registry says of these tables. */
export function versionsOf(place: RunPlace, tables: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const { session } = place;
  const cql = `SELECT key, ${quote(VERSION)} FROM ${quote(seat.table)} WHERE scope = ? AND kind = ? AND key IN ?`;
  const ask = async () => {
    const rows = await session.serially(cql, [SCOPE, registry.collection, tables]);
    return new Map(rows.map((row) => [String(row.key), versionOf(row)]));
  };
  return orNothing(place, ask, new Map());
}

function orNothing<T>({ session, settings }: RunPlace, ask: () => Promise<T>, nothing: T): Promise<T> {
  const columns = Object.keys(registry.columns).map(seat.column);
  return orMissing(session, seat.table, columns, ask, async () => {
    await createHome(session, settings);
    return nothing;
  });
}

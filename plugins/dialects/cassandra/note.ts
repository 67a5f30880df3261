import { anyDefinition } from '../../../core/records.ts';
import { createHome, orMissing } from './home.ts';
import type { RunPlace } from './place.ts';
import { type Registered, registry } from './registry.ts';
import { type Change, erase, read, seatOf, versionOf } from './seat.ts';

const seat = seatOf(anyDefinition(registry));

/** The write that makes the registry say this of a table: it goes with the one that says that the statement starts. */
export async function noteOf(place: RunPlace, table: string, definition: Registered): Promise<Change> {
  const version = versionOf(await current(place, table));
  return { seat, key: table, from: version, to: version + 1, values: { table, definition } };
}

/** A table of the same name made by hand must not be taken for this one; left behind it harms no other. */
export async function forget(place: RunPlace, table: string): Promise<void> {
  const version = versionOf(await current(place, table));
  if (version > 0) await erase(place.session, seat, table, version);
}

function current({ session, settings }: RunPlace, table: string) {
  const columns = Object.keys(registry.columns).map(seat.column);
  return orMissing(
    session,
    seat.table,
    columns,
    () => read(session, seat, table),
    async () => {
      await createHome(session, settings);
      return undefined;
    },
  );
}

import type { Connection, Segment } from '../../core/dialect.ts';
import { anyDefinition, type RecordDefinition, recordWrite } from '../../core/records.ts';
import { type Thing, thing, things } from './record-store-suite.ts';

/** Segments that write several records at once, as a migration writes its history and journal. */

/** The records that each segment writes. */
export const SEGMENT_KEYS = ['first', 'second', 'third', 'last'] as const;

export const colocatedThings: RecordDefinition<Thing> = { ...things, colocateWithLock: true };

/** A segment that has only record writes. */
export const segmentOf = (writes: Segment['writes']): Segment => ({ transactional: true, statements: [], writes });

/**
 * Writes segments 1, 2, 3 …, each of which sets the size of every record to its number, under the lock. Calls `onWritten` with each
 * number, and ends when that returns false.
 */
export async function writeSegments(connection: Connection, onWritten: (segment: number) => boolean): Promise<void> {
  await connection.withLock(async (epoch) => {
    await connection.ensureTables([anyDefinition(colocatedThings)]);
    let segment = 0;
    do {
      const version = segment === 0 ? undefined : segment;
      segment += 1;
      const writes = SEGMENT_KEYS.map((key) => recordWrite(colocatedThings, thing(key, segment), version));
      const { failure } = await connection.run([segmentOf(writes)], epoch);
      if (failure) throw failure.error;
    } while (onWritten(segment));
  });
}

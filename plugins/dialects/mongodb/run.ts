import type { ClientSession, Document } from 'mongodb';
import type { RunOutcome, Segment, Underway } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { CLOCK, ELAPSED, type RecordWrite } from '../../../core/records.ts';
import { BOUNDED, BY_MAJORITY } from './bounds.ts';
import { codeOf, DUPLICATE_KEY, lostOr } from './errors.ts';
import { lockLost, notLater } from './lease.ts';
import { Outsets } from './outsets.ts';
import { perform } from './perform.ts';
import type { Place } from './place.ts';
import { atVersion, nobody, recordsIn, recordUpdate, VERSION } from './records.ts';
import { describe, type Said } from './registry.ts';
import type { Step } from './step.ts';

type Written = Readonly<Record<string, Date | number>>;

/**
 * Runs segments in order until one fails. Statements are outside transactions, the writes of a segment in one. What the
 * registry says of a statement that is done goes with what it says of the next one.
 */
export async function runSegments(
  place: Place,
  segments: readonly Segment[],
  underway?: Underway,
): Promise<RunOutcome> {
  const written: Written[][] = [];
  const outsets = new Outsets(place.server, segments);
  /** Segments whose statements are done and whose writes are not, and what the registry has to say before those. */
  let open: readonly Segment[] = [];
  let said: readonly Said[] = [];
  let began = performance.now();
  const committed = (values: Written[]): void => {
    written.push(values);
    underway?.committed(values);
  };
  const failure = (error: unknown, untouched: boolean, statement?: number): RunOutcome => ({
    committed: written.length,
    written,
    failure: { statement, error: lostOr(error), ...(untouched && { untouched }) },
  });
  const flush = async (announcement: readonly Said[] = []): Promise<void> => {
    await describe(place, [...said, ...announcement]);
    const through = open;
    said = [];
    open = [];
    for (const { writes } of through) {
      const values = await writeRecords(place, writes, began);
      if (writes.some(({ record }) => Object.values(record).includes(ELAPSED))) began = performance.now();
      committed(values);
    }
  };
  for (const [at, segment] of segments.entries()) {
    if (underway?.goesOn(at) === false) break;
    for (const [index, { run }] of segment.statements.entries()) {
      const step = run as unknown as Step;
      let touched = false;
      const onChange = () => {
        touched = true;
      };
      try {
        if (outsets.returns(step)) await flush();
      } catch (error) {
        return failure(error, true);
      }
      const [outset] = await Promise.allSettled([outsets.next(step)]);
      try {
        await flush(outset.status === 'fulfilled' ? outset.value?.announcement : []);
      } catch (error) {
        return failure(error, true);
      }
      try {
        if (outset.status === 'rejected') throw outset.reason;
        said = await perform({ ...place, onChange }, step, outset.value);
      } catch (error) {
        // One that is somebody else's was left as it is.
        const isTheirs = isSvcError(error) && error.code === 'collection_exists';
        return failure(error, !touched || isTheirs, index);
      }
    }
    // A statement without writes is done whatever becomes of the writes behind it.
    if (open.length === 0 && segment.writes.length === 0) committed([]);
    else open = [...open, segment];
  }
  try {
    await flush();
  } catch (error) {
    return failure(error, true);
  }
  return { committed: written.length, written };
}

/** Several in a transaction, where the server has them: one that stands alone writes them one after the other. */
async function writeRecords(place: Place, writes: readonly RecordWrite[], began: number): Promise<Written[]> {
  if (writes.length === 0) return [];
  const { server } = place;
  const all = async (session?: ClientSession): Promise<Written[]> => {
    const found: Written[] = [];
    for (const write of writes) found.push(await writeRecord(place, write, began, session));
    return found;
  };
  await place.hold();
  try {
    if (writes.length === 1 || !server.transactions) return await all();
    return await server.client.withSession((session) => session.withTransaction(() => all(session), BY_MAJORITY));
  } catch (error) {
    if (codeOf(error) === DUPLICATE_KEY) throw moved(error);
    throw error;
  }
}

/** Gives what the clock became. */
async function writeRecord(
  { server, epoch }: Place,
  { definition, record, version }: RecordWrite,
  began: number,
  session: ClientSession | undefined,
): Promise<Written> {
  const key = String(record[definition.key]);
  const filled = Object.keys(record).filter((name) => record[name] === CLOCK || record[name] === ELAPSED);
  const found: Document | null = await recordsIn(server, definition.collection).findOneAndUpdate(
    version === undefined ? nobody(key) : { ...atVersion(key, version), ...notLater(epoch) },
    recordUpdate(definition, record, began, (version ?? 0) + 1, epoch),
    {
      upsert: version === undefined,
      returnDocument: 'after',
      projection: Object.fromEntries([...filled, VERSION].map((name) => [name, 1])),
      ...BOUNDED,
      ...(session && { session }),
    },
  );
  if (!found) throw moved();
  return Object.fromEntries(filled.map((name) => [name, found[name] as Date | number]));
}

function moved(cause?: unknown): unknown {
  return lockLost('The record to write is not the one that was read under the lock.', cause);
}

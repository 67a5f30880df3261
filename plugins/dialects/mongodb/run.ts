import type { ClientSession, Document } from 'mongodb';
import type { RunOutcome, Segment } from '../../../core/dialect.ts';
import { CLOCK, ELAPSED, type RecordWrite } from '../../../core/records.ts';
import { codeOf, DUPLICATE_KEY, lostOr } from './errors.ts';
import { lockLost, notLater } from './lease.ts';
import { Outsets } from './outsets.ts';
import { perform } from './perform.ts';
import type { Place } from './place.ts';
import { atVersion, nobody, recordsIn, recordUpdate, VERSION } from './records.ts';
import type { Step } from './step.ts';

type Written = Readonly<Record<string, Date | number>>;

/** Runs segments in order until one fails. Statements are outside transactions, the writes of a segment in one. */
export async function runSegments(place: Place, segments: readonly Segment[]): Promise<RunOutcome> {
  const written: Written[][] = [];
  const outsets = new Outsets(place.server, segments);
  let began = performance.now();
  for (const segment of segments) {
    let statement: number | undefined = 0;
    let touched = false;
    const onChange = () => {
      touched = true;
    };
    try {
      for (const [index, { run }] of segment.statements.entries()) {
        statement = index;
        const step = run as unknown as Step;
        await perform({ ...place, onChange }, step, await outsets.next(step));
      }
      statement = undefined;
      written.push(await writeRecords(place, segment.writes, began));
      if (segment.writes.some(({ record }) => Object.values(record).includes(ELAPSED))) began = performance.now();
    } catch (error) {
      const failure = { statement, error: lostOr(error), ...(!touched && { untouched: true as const }) };
      return { committed: written.length, written, failure };
    }
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
    return await server.client.withSession((session) =>
      session.withTransaction(() => all(session), { writeConcern: { w: 'majority' } }),
    );
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
      ...(session && { session }),
    },
  );
  if (!found) throw moved();
  return Object.fromEntries(filled.map((name) => [name, found[name] as Date | number]));
}

function moved(cause?: unknown): unknown {
  return lockLost('The record to write is not the one that was read under the lock.', cause);
}

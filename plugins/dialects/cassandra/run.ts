import type { RunOutcome, Segment, Statement, Underway } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { CLOCK, ELAPSED, type RecordValues, type RecordWrite, type Writable } from '../../../core/records.ts';
import { refuseUnfit } from './check.ts';
import { type Ready, readyDdl, runDdl, runWords, settle } from './ddl.ts';
import { lost, refusal } from './errors.ts';
import { copy, fill } from './move.ts';
import { noteOf } from './note.ts';
import { Outsets } from './outsets.ts';
import { type RunPlace, UNLOCKED } from './place.ts';
import { type Change, change, epochStands, seatOf, writeLost } from './seat.ts';
import type { Run } from './statement.ts';

type Written = RunOutcome['written'][number];

/** Writes that go together at most: a mutation has a size that the server does not take. */
const TOGETHER = 20;

/**
 * One segment after the other. Neighbours that only write are written as one, with the epoch's fence in it and with what
 * the registry has to say from the statement behind them on.
 */
export async function runSegments(
  place: RunPlace,
  segments: readonly Segment[],
  epoch: number,
  underway?: Underway,
): Promise<RunOutcome> {
  const written: Written[] = [];
  const outsets = new Outsets(place, segments);
  const watch = new Watch();
  /** Segments whose statements are done and whose writes are not. */
  let open: readonly Segment[] = [];
  const committed = (values: Written): void => {
    written.push(values);
    underway?.committed(values);
  };
  const failed = (error: unknown, statement?: number): RunOutcome => ({
    committed: written.length,
    written,
    failure: { statement, error: statement === undefined ? refusal(error) : interrupted(error) },
  });
  const flush = async (notes: readonly Change[] = []): Promise<void> => {
    const groups = grouped(open);
    open = [];
    for (const [index, group] of groups.entries()) {
      const values = await write(place, group, epoch, watch, index === groups.length - 1 ? notes : []);
      for (const one of values) committed(one);
    }
  };
  for (const [at, segment] of segments.entries()) {
    if (underway?.goesOn(at) === false) break;
    for (const [index, statement] of segment.statements.entries()) {
      const [ready] = await Promise.allSettled([readyFor(place, outsets, statement)]);
      try {
        await flush(ready.status === 'fulfilled' ? ready.value.notes : []);
      } catch (error) {
        return failed(error);
      }
      try {
        if (ready.status === 'rejected') throw ready.reason;
        await runStatement(place, statement, epoch, ready.value);
      } catch (error) {
        return failed(error, index);
      }
    }
    // A statement without writes is done whatever becomes of the writes behind it.
    if (open.length === 0 && segment.writes.length === 0) committed([]);
    else open = [...open, segment];
  }
  try {
    if (open.length > 0) await flush();
  } catch (error) {
    return failed(error);
  }
  return { committed: written.length, written };
}

/** At least one group, so that what goes with the last has one. */
function grouped(segments: readonly Segment[]): Segment[][] {
  const groups: Segment[][] = [[]];
  let count = 0;
  for (const segment of segments) {
    const last = groups.at(-1) ?? [];
    if (last.length > 0 && count + segment.writes.length > TOGETHER) {
      groups.push([segment]);
      count = segment.writes.length;
    } else {
      last.push(segment);
      count += segment.writes.length;
    }
  }
  return groups;
}

const NOTHING: Ready = { notes: [] };

async function readyFor(place: RunPlace, outsets: Outsets, statement: Statement): Promise<Ready> {
  const run = statement.run as unknown as Run;
  const outset = await outsets.next(run);
  if (run.kind === 'ddl') return readyDdl(place, run, outset);
  if (run.kind !== 'note') return NOTHING;
  if (run.narrowed) await refuseUnfit(place, run.table, run.narrowed);
  return { notes: [await noteOf(place, run.table, run.registered)] };
}

async function runStatement(place: RunPlace, statement: Statement, epoch: number, ready: Ready): Promise<void> {
  const run = statement.run as unknown as Run;
  switch (run.kind) {
    case 'ddl':
      return runDdl(place, run, epoch, ready);
    case 'words':
      return runWords(place, run.cql, epoch);
    case 'settle':
      return settle(place, run);
    case 'copy':
      return copy(place, run, epoch);
    case 'fill':
      return fill(place, run, epoch);
    case 'note':
      // Its note was all of it.
      return;
  }
}

/** Milliseconds since the first segment, or since the one after the last that wrote them. */
class Watch {
  #since = performance.now();
  read(): number {
    const elapsed = performance.now() - this.#since;
    this.#since = performance.now();
    return elapsed;
  }
}

async function write(
  place: RunPlace,
  segments: readonly Segment[],
  epoch: number,
  watch: Watch,
  notes: readonly Change[] = [],
): Promise<Written[]> {
  const { session } = place;
  const writes = segments.flatMap((segment) => segment.writes);
  const asked = writes.some(({ record }) => Object.values(record).includes(CLOCK as never));
  const moment = asked ? await session.moment() : null;
  const filled = segments.map((segment) => {
    const elapsed = segment.writes.some(({ record }) => Object.values(record).includes(ELAPSED)) ? watch.read() : 0;
    return segment.writes.map((one) => ({ one, ...fillIn(one, moment, elapsed) }));
  });
  const changes = merged(filled.flat().map(({ one, record }) => changeOf(one, record)));
  const home = [...changes.filter(({ seat }) => seat.home), ...notes];
  const others = changes.filter(({ seat }) => !seat.home);
  if (others.length > 0 && !(await epochStands(session, epoch))) throw writeLost();
  // Outside of the lock only the registry is written, by whoever runs a statement for itself.
  const fence = epoch === UNLOCKED && writes.length === 0 ? undefined : epoch;
  if (home.length > 0 && !(await change(session, home, fence))) throw writeLost();
  for (const one of others) if (!(await change(session, [one]))) throw writeLost();
  return filled.map((segment) => segment.map(({ engine }) => engine));
}

function fillIn({ record }: RecordWrite, moment: Date | null, elapsed: number) {
  const engine: Record<string, Date | number> = {};
  for (const [name, value] of Object.entries(record)) {
    if (value === CLOCK && moment) engine[name] = moment;
    if (value === ELAPSED) engine[name] = elapsed;
  }
  return { record: { ...record, ...engine }, engine };
}

function changeOf({ definition, version }: RecordWrite, record: Writable<Partial<RecordValues>>): Change {
  const key = record[definition.key] as string;
  return { seat: seatOf(definition), key, from: version ?? 0, to: (version ?? 0) + 1, values: record };
}

/** Several writes of one record become one. */
function merged(changes: readonly Change[]): Change[] {
  const byRecord = new Map<string, Change>();
  for (const one of changes) {
    const id = JSON.stringify([one.seat.definition.collection, one.key]);
    const before = byRecord.get(id);
    if (before && before.to !== one.from) throw writeLost();
    byRecord.set(id, before ? { ...one, from: before.from, values: { ...before.values, ...one.values } } : one);
  }
  return [...byRecord.values()];
}

/** A statement that found no server left may have been sent: only the catalog knows. */
function interrupted(error: unknown): unknown {
  const told = refusal(error);
  return isSvcError(told) && told.code === 'connection_failed' ? lost(told) : told;
}

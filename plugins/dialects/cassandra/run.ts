import type { RunOutcome, Segment, Statement } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { CLOCK, ELAPSED, type RecordValues, type RecordWrite, type Writable } from '../../../core/records.ts';
import { refuseUnfit } from './check.ts';
import { type Ready, readyDdl, runDdl, runWords } from './ddl.ts';
import { lost, refusal } from './errors.ts';
import { copy, fill } from './move.ts';
import { noteOf } from './note.ts';
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
export async function runSegments(place: RunPlace, segments: readonly Segment[], epoch: number): Promise<RunOutcome> {
  const written: Written[] = [];
  const watch = new Watch();
  const failed = (error: unknown, statement?: number): RunOutcome => ({
    committed: written.length,
    written,
    failure: { statement, error: statement === undefined ? refusal(error) : interrupted(error) },
  });
  while (written.length < segments.length) {
    const group = writesFrom(segments, written.length);
    const next = segments[written.length + group.length];
    const [first, ...more] = next?.statements ?? [];
    const [ready] = first ? await Promise.allSettled([readyFor(place, first)]) : [];
    const notes = ready?.status === 'fulfilled' ? ready.value.notes : [];
    try {
      written.push(...(await write(place, group, epoch, watch, notes)));
    } catch (error) {
      return failed(error);
    }
    if (!next) continue;
    if (ready?.status === 'rejected') return failed(ready.reason, 0);
    try {
      if (first && ready) await runStatement(place, first, epoch, ready.value);
    } catch (error) {
      return failed(error, 0);
    }
    for (const [index, statement] of more.entries()) {
      try {
        const prepared = await readyFor(place, statement);
        await write(place, [], epoch, watch, prepared.notes);
        await runStatement(place, statement, epoch, prepared);
      } catch (error) {
        return failed(error, index + 1);
      }
    }
    try {
      written.push(...(await write(place, [next], epoch, watch)));
    } catch (error) {
      return failed(error);
    }
  }
  return { committed: written.length, written };
}

function writesFrom(segments: readonly Segment[], start: number): Segment[] {
  const group: Segment[] = [];
  let count = 0;
  for (const segment of segments.slice(start)) {
    count += segment.writes.length;
    if (segment.statements.length > 0 || (group.length > 0 && count > TOGETHER)) break;
    group.push(segment);
  }
  return group;
}

const NOTHING: Ready = { notes: [] };

async function readyFor(place: RunPlace, statement: Statement): Promise<Ready> {
  const run = statement.run as unknown as Run;
  if (run.kind === 'ddl') return readyDdl(place, run);
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

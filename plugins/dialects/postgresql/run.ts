import { setTimeout as wait } from 'node:timers/promises';
import type { RunOutcome, Segment, Statement, Underway } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { engineColumns, writeLost, writesElapsed, writtenValues } from '../../sql/record-write.ts';
import { type Exec, type Result, rowsOf, type Session } from '../../sql/session.ts';
import { isUsers, resolved } from '../../sql/text.ts';
import { codeOf, isPassing, isRefusedWhole, NAME_TAKEN, refusal, refusalOf } from './errors.ts';
import { quote } from './grammar.ts';
import { text } from './literal.ts';
import { FIRST_POLL_MS, LONGEST_POLL_MS, lockGivenUp, lockHeld } from './lock.ts';
import { readBack, recordGrammar, writeText } from './records.ts';
import type { Settings } from './settings.ts';

const PACKET_SEGMENTS = 50;
const PACKET_CHARACTERS = 256 * 1024;
/** What a record write fails with when it lost: another version, an epoch that is over, a row that is there already. */
const LOST_WRITE: ReadonlySet<string | undefined> = new Set(['22012', '23502', '23505']);
export interface RunPlace {
  readonly session: Session;
  readonly schema: string;
  readonly settings: Settings;
  /** Puts the settings of the session back as they were when it began. */
  readonly restore: string;
}

type Written = RunOutcome['written'][number];

interface PacketOutcome {
  readonly written: readonly Written[];
  readonly failure?: NonNullable<RunOutcome['failure']>;
  /** The segment after the written ones may be tried again. */
  readonly again?: boolean;
  /** Which segment failed is not known, as with an error of syntax, for which none of the packet was run. */
  readonly divide?: boolean;
}

let packets = 0;

export async function runSegments(
  place: RunPlace,
  segments: readonly Segment[],
  epoch: number,
  tookMs = 0,
  underway?: Underway,
): Promise<RunOutcome> {
  const written: Written[] = [];
  let retries = 0;
  let most = PACKET_SEGMENTS;
  let began = performance.now() - tookMs;
  while (written.length < segments.length) {
    const before = written.length;
    const packet = packetOf(place, segments.slice(before, before + most), epoch, performance.now() - began);
    const outcome = await place.session.alone((exec) =>
      packet.segments[0]?.transactional === false
        ? runAlone(place, exec, packet.segments[0])
        : runPacket(place, exec, packet),
    );
    written.push(...outcome.written);
    const last = segments[written.length - 1];
    if (written.length > before) {
      retries = 0;
      if (last && writesElapsed(last)) began = performance.now();
    }
    if (!outcome.failure) continue;
    if (outcome.divide) {
      most = 1;
      continue;
    }
    const stopped = { committed: written.length, written, failure: outcome.failure };
    if (!outcome.again || retries >= place.settings.lockRetries) return stopped;
    // Whoever waited behind us goes first.
    await wait(Math.min(2000, 50 * 2 ** retries) * (0.5 + Math.random() / 2));
    if (underway?.waitsOn() === false) return stopped;
    retries += 1;
  }
  return { committed: written.length, written };
}

interface Packet {
  readonly id: string;
  readonly segments: readonly Segment[];
  readonly text: string;
}

/** `elapsedMs`: since the migration of the first segment began. */
function packetOf(place: RunPlace, segments: readonly Segment[], epoch: number, elapsedMs: number): Packet {
  packets += 1;
  const id = `${process.pid}.${packets}`;
  const taken: Segment[] = [];
  let all = '';
  for (const segment of segments) {
    if (!segment.transactional) {
      if (taken.length === 0) taken.push(segment);
      break;
    }
    // Restoring the session forgets when the migration began: the packet's own time has to stand for it.
    if (taken.length > 0 && hasUsers(segment)) break;
    const last = taken.at(-1);
    const began = last ? (writesElapsed(last) ? 0 : undefined) : elapsedMs;
    const next = segmentText(place, segment, epoch, id, taken.length, began);
    if (taken.length > 0 && all.length + next.length > PACKET_CHARACTERS) break;
    all += next;
    taken.push(segment);
  }
  return { id, segments: taken, text: all };
}

const hasUsers = ({ statements }: Segment): boolean => statements.some(({ run }) => isUsers(run));

/**
 * One transaction. What it sets falls back with it, so `svc.done`, set behind its last write, tells which was the last
 * to commit. Set in a condition, it has no row that the driver would have to read.
 */
function segmentText(
  place: RunPlace,
  segment: Segment,
  epoch: number,
  id: string,
  index: number,
  elapsedMs: number | undefined,
): string {
  const begin = elapsedMs === undefined ? ['BEGIN'] : ['BEGIN', began('clock_timestamp()', elapsedMs)];
  const done = `SELECT WHERE set_config('svc.done', '${id}:${index + 1}', false) IS NULL`;
  const statements = segment.statements.map((statement) => statementText(place, statement.run));
  const writes = segment.writes.map((write, at) => writeText(write, place.schema, epoch, `${index}.${at}`));
  const held = `SELECT 1 / count(*) FROM ${lockHeld(place.schema)}`;
  const settled = hasUsers(segment) ? [place.restore, began('transaction_timestamp()', elapsedMs ?? 0), held] : [];
  // A text of a user may end in a comment.
  return `${[...begin, ...statements, ...settled, ...writes, done, 'COMMIT'].join('\n;')};\n`;
}

const began = (now: string, elapsedMs: number): string =>
  `SELECT WHERE set_config('svc.began', (${now} - interval '${elapsedMs.toFixed(3)} ms')::text, false) IS NULL`;

function statementText(place: RunPlace, run: Json): string {
  const found = resolved(run, place.schema);
  if (found === undefined) throw new Error('this step cannot be in a transaction');
  return found;
}

async function runPacket(place: RunPlace, exec: Exec, packet: Packet): Promise<PacketOutcome> {
  try {
    return { written: writtenOf(packet, await exec(packet.text)) };
  } catch (error) {
    try {
      await exec('ROLLBACK');
      const done = await doneOf(exec, packet.id);
      const written = await writtenBefore(place, exec, packet, done);
      const again = isPassing(error);
      const failed = packet.segments[done];
      // With one statement there is no doubt which one had to wait.
      const statement = failed?.statements.length === 1 ? 0 : undefined;
      const blocked = { statement, error: refusal(error), passing: again };
      if (again || !failed) return { written, failure: blocked, again };
      const failure = await diagnosed(place, exec, failed, error);
      return { written, failure, divide: failure.statement === undefined && packet.segments.length - done > 1 };
    } catch (second) {
      // Nobody can say what the server made of it: the caller reads the history again.
      return { written: [], failure: { statement: undefined, error: lostOr(second, error) } };
    }
  }
}

function lostOr(second: unknown, first: unknown): unknown {
  const told = refusal(first);
  return isSvcError(told) && told.code === 'connection_lost' ? told : refusal(second);
}

async function doneOf(exec: Exec, id: string): Promise<number> {
  const [row] = await rowsOf(exec, "SELECT current_setting('svc.done', true) AS done");
  const [packet, done] = String(row?.done ?? '').split(':');
  return packet === id ? Number(done) : 0;
}

function writtenOf(packet: Packet, results: readonly Result[]): Written[] {
  const marked = new Map<string, Result['rows'][number]>();
  for (const { rows } of results) {
    for (const row of rows) if (typeof row.svc_write === 'string') marked.set(row.svc_write, row);
  }
  return packet.segments.map(({ writes }, index) =>
    writes.map((write, at) => writtenValues(recordGrammar, write, marked.get(`${index}.${at}`) ?? {})),
  );
}

/** The answers before an error are lost with it: what the engine filled in is read again. */
async function writtenBefore(place: RunPlace, exec: Exec, packet: Packet, done: number): Promise<Written[]> {
  const found: Written[] = [];
  for (const { writes } of packet.segments.slice(0, done)) {
    const values = [];
    for (const write of writes) {
      const [row] = engineColumns(write).length > 0 ? await rowsOf(exec, readBack(write, place.schema)) : [];
      values.push(row ? writtenValues(recordGrammar, write, row) : {});
    }
    found.push(values);
  }
  return found;
}

/** Runs the segment once more, statement by statement and never to be committed, to name the one that fails. */
async function diagnosed(
  place: RunPlace,
  exec: Exec,
  segment: Segment,
  error: unknown,
): Promise<NonNullable<RunOutcome['failure']>> {
  const told = refusal(error);
  await exec('BEGIN');
  try {
    for (const [index, statement] of segment.statements.entries()) {
      try {
        await exec(statementText(place, statement.run));
      } catch (again) {
        if (codeOf(again) !== codeOf(error)) return { statement: undefined, error: told };
        return { statement: index, error: refusalOf(statement, error) };
      }
    }
    if (hasUsers(segment) && !(await holdsLock(place, exec))) return { statement: undefined, error: lockGivenUp() };
    try {
      // What is deferred is otherwise checked at the COMMIT only, which this never comes to.
      await exec('SET CONSTRAINTS ALL IMMEDIATE');
    } catch (again) {
      const only = segment.statements.length === 1 ? 0 : undefined;
      if (codeOf(again) === codeOf(error)) return { statement: only, error: told };
    }
  } finally {
    await exec('ROLLBACK');
  }
  return {
    statement: undefined,
    error: LOST_WRITE.has(codeOf(error)) && segment.writes.length > 0 ? writeLost(error) : told,
  };
}

/** A statement that cannot be in a transaction. It waits for locks as long as it takes: cut off it leaves half an index. */
async function runAlone(place: RunPlace, exec: Exec, segment: Segment): Promise<PacketOutcome> {
  const [statement, ...more] = segment.statements;
  if (!statement || more.length > 0 || segment.writes.length > 0)
    throw new Error('a step outside a transaction is one statement');
  try {
    await exec('SET lock_timeout = 0');
    try {
      if (statement.repair !== undefined)
        await outliveBuilds(exec, tableOf(place, statement.repair as unknown as InvalidIndex));
      await runOne(place, exec, statement.run);
    } catch (error) {
      // Of what has the name already nothing is ours: somebody else may be building it.
      if (codeOf(error) !== NAME_TAKEN) await repair(place, exec, statement);
      throw error;
    } finally {
      await exec(isUsers(statement.run) ? place.restore : `SET lock_timeout = ${place.settings.lockTimeoutMs}`);
    }
    if (isUsers(statement.run) && !(await holdsLock(place, exec))) throw lockGivenUp();
    return { written: [[]] };
  } catch (error) {
    const failure = { statement: 0, error: refusal(error) };
    return { written: [], failure: isRefusedWhole(error) ? { ...failure, untouched: true } : failure };
  }
}

async function holdsLock({ schema }: RunPlace, exec: Exec): Promise<boolean> {
  return (await rowsOf(exec, `SELECT FROM ${lockHeld(schema)}`)).length > 0;
}

async function runOne(place: RunPlace, exec: Exec, run: Json): Promise<void> {
  const found = resolved(run, place.schema);
  if (found !== undefined) await exec(found);
  else await dropInvalidIndex(place, exec, run as unknown as InvalidIndex);
}

async function repair(place: RunPlace, exec: Exec, { repair: mend }: Statement): Promise<void> {
  // The failure that led here is the one to tell; what cannot be mended now is mended before the next attempt.
  if (mend !== undefined) await runOne(place, exec, mend).catch(() => undefined);
}

/** The `repair` of an index that is built outside a transaction. */
interface InvalidIndex {
  readonly dropInvalidIndex: string;
  /** Its table; an older SDK did not write it down. */
  readonly of?: string;
}

async function dropInvalidIndex(place: RunPlace, exec: Exec, index: InvalidIndex): Promise<void> {
  const name = `${place.schema}${quote(index.dropInvalidIndex)}`;
  const table = tableOf(place, index);
  const its = table === undefined ? '' : ` AND indrelid = to_regclass(${text(table)})`;
  const invalid = `SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(${text(name)}) AND NOT indisvalid${its}`;
  if ((await rowsOf(exec, invalid)).length === 0) return;
  await outliveBuilds(exec, table);
  // A build lets go of its lock just before it commits that the index is valid.
  const committing = `${invalid} AND xmax IN (SELECT transactionid FROM pg_locks WHERE locktype = 'transactionid')`;
  while ((await rowsOf(exec, committing)).length > 0) await wait(FIRST_POLL_MS);
  if ((await rowsOf(exec, invalid)).length > 0) await exec(`DROP INDEX CONCURRENTLY ${name}`);
}

const tableOf = ({ schema }: RunPlace, { of }: InvalidIndex): string | undefined =>
  of === undefined ? undefined : `${schema}${quote(of)}`;

/**
 * Waits until nobody builds an index of the table, which is invalid so long and has this lock taken. It is polled: a
 * session that waits inside the server has a snapshot, for which the build would wait in turn, and one of the two
 * would be ended.
 */
async function outliveBuilds(exec: Exec, table: string | undefined): Promise<void> {
  if (table === undefined) return;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
    try {
      await exec(`BEGIN; LOCK TABLE ${table} IN SHARE UPDATE EXCLUSIVE MODE NOWAIT; COMMIT`);
      return;
    } catch (error) {
      await exec('ROLLBACK');
      if (!isPassing(error)) throw error;
    }
    await wait(pause);
  }
}

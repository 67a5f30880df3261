import { setTimeout as wait } from 'node:timers/promises';
import type { RunOutcome, Segment, Underway } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { RecordWrite } from '../../../core/records.ts';
import { writeLost, writesElapsed, writtenValues } from '../../sql/record-write.ts';
import { type Exec, type Result, rowsOf, type Session } from '../../sql/session.ts';
import { isUsers } from '../../sql/text.ts';
import { isPassing, numberOf, refusal } from './errors.ts';
import { durable, groups, hasUsers, isAsked, type Packet, type PacketPlace, packetOf } from './packet.ts';
import { readBack } from './records.ts';
import { ASKS } from './resolve.ts';

/** What a record write fails with when it lost: another version, an epoch that is over, a row that is there already. */
const LOST_WRITE: ReadonlySet<number | undefined> = new Set([1690, 1048, 1062]);

/** A warning: tables of engines without transactions keep what a rollback should have undone. */
const KEPT = 1196;

export interface RunPlace extends PacketPlace {
  readonly session: Session;
  readonly lockRetries: number;
  /** Runs a statement that depends on the catalog, and tells before what is sent. */
  ask(exec: Exec, run: Json, sent: (text: string) => void): Promise<void>;
}

type Written = RunOutcome['written'][number];

interface PacketOutcome {
  readonly written: readonly Written[];
  readonly failure?: NonNullable<RunOutcome['failure']>;
  /** The segment after the written ones may be tried again. */
  readonly again?: boolean;
  /** How to send it again at once: its statement does not go as it most likely goes, or the block was not understood. */
  readonly retry?: Retry | undefined;
}

type Retry = 'asked' | 'apart';

export async function runSegments(
  place: RunPlace,
  segments: readonly Segment[],
  epoch: number,
  tookMs = 0,
  underway?: Underway,
): Promise<RunOutcome> {
  const written: Written[] = [];
  let retries = 0;
  let began = performance.now() - tookMs;
  let retry: Retry | undefined;
  while (written.length < segments.length) {
    const before = written.length;
    if (before > 0 && underway?.goesOn(before) === false) break;
    const elapsedMs = performance.now() - began;
    const outcome = await place.session.alone((exec) =>
      send(place, exec, segments.slice(before), epoch, elapsedMs, retry, (text) => underway?.sent(before, text)),
    );
    written.push(...outcome.written);
    const last = segments[written.length - 1];
    if (written.length > before) {
      retries = 0;
      if (last && writesElapsed(last)) began = performance.now();
    }
    retry = outcome.retry;
    if (!outcome.failure || retry) continue;
    const stopped = { committed: written.length, written, failure: outcome.failure };
    if (!outcome.again || retries >= place.lockRetries) return stopped;
    // Whoever waited behind us goes first.
    await wait(Math.min(2000, 50 * 2 ** retries) * (0.5 + Math.random() / 2));
    if (underway?.waitsOn() === false) return stopped;
    retries += 1;
  }
  return { committed: written.length, written };
}

async function send(
  place: RunPlace,
  exec: Exec,
  segments: readonly Segment[],
  epoch: number,
  elapsedMs: number,
  retry: Retry | undefined,
  sent: (text: string) => void,
): Promise<PacketOutcome> {
  const [first] = segments;
  const asked = first?.statements[0];
  if (first && asked && (retry === 'asked' || isAsked(place, first))) {
    try {
      await place.ask(exec, asked.run, sent);
      return { written: [[]] };
    } catch (error) {
      const again = isPassing(error);
      return { written: [], failure: { statement: 0, error: refusal(error), untouched: true, passing: again }, again };
    }
  }
  const packet = packetOf(place, segments, epoch, elapsedMs, retry === 'apart');
  try {
    const results = await exec(packet.text);
    return { written: writtenOf(place, packet.segments, results.slice(results.length - packet.told.length)) };
  } catch (error) {
    return recovered(place, exec, packet, error).catch((second) => {
      // Nobody can say what the server made of it: the caller reads the history again.
      return { written: [], failure: { statement: undefined, error: lostOr(second, error) } };
    });
  }
}

/** How far the packet came, and what that means. */
async function recovered(place: RunPlace, exec: Exec, packet: Packet, error: unknown): Promise<PacketOutcome> {
  const [row] = await rowsOf(exec, 'SELECT @svc_done AS done, @svc_at AS at');
  const done = Number(row?.done);
  const at = Number(row?.at);
  const failed = packet.segments[done];
  const users = failed !== undefined && hasUsers(failed);
  // What is open before a statement of ours outside a transaction has succeeded, whether that one could be parsed or
  // not. A user's has committed it itself, and what is open behind that is the beginning of what he said.
  const rolledBack = failed?.transactional !== false || users || at < 0;
  const warnings = await rowsOf(exec, `${rolledBack ? 'ROLLBACK' : 'COMMIT'}; SHOW WARNINGS`);
  const kept = warnings.some(({ Code }) => Number(Code) === KEPT);
  await exec(users ? `UNLOCK TABLES; ${place.restore(1)}` : 'SET autocommit = 1');
  const committed = packet.segments.slice(0, rolledBack ? durable(packet.segments, done) : done);
  const results: Result[] = [];
  for (const writes of groups(committed.flatMap((segment) => segment.writes))) {
    results.push(...(await exec(readBack(place.grammar, writes) ?? 'DO 1')));
  }
  const written = writtenOf(place, committed, results);
  const again = isPassing(error) && !kept && failed !== undefined && isRepeatable(failed);
  return {
    written,
    failure: { ...failureOf(failed, at, error), passing: again, ...(kept && { untouched: false }) },
    again,
    retry: retryOf(packet, failed, at, error),
  };
}

function retryOf(packet: Packet, failed: Segment | undefined, at: number, error: unknown): Retry | undefined {
  if (packet.block && at < 0) return 'apart';
  const asked = ASKS.has(numberOf(error)) && failed !== undefined && !failed.transactional && !hasUsers(failed);
  return asked ? 'asked' : undefined;
}

/** A procedure may have committed a part of its work before it met the other session; all else there is rolled back. */
function isRepeatable({ transactional, statements }: Segment): boolean {
  return transactional || !statements.some(({ run, text }) => isUsers(run) && /\b(call|execute)\b/i.test(text));
}

/** All of it or nothing, as every statement of ours; of a user's the ones that are known not to be are left out. */
function isWhole({ statements }: Segment): boolean {
  return statements.every(
    ({ run, text }) => !isUsers(run) || !/;|\b(call|execute|drop|load|rename|replace)\b/i.test(text),
  );
}

function failureOf(failed: Segment | undefined, at: number, error: unknown): NonNullable<RunOutcome['failure']> {
  const inWrites = at < 0 || !failed || (failed.transactional && at >= failed.statements.length);
  if (inWrites)
    return {
      statement: undefined,
      error: LOST_WRITE.has(numberOf(error)) ? writeLost(refusal(error)) : refusal(error),
    };
  const untouched = failed.transactional || isWhole(failed);
  return { statement: failed.transactional ? at : 0, error: refusal(error), untouched };
}

function lostOr(second: unknown, first: unknown): unknown {
  const told = refusal(first);
  return isSvcError(told) && told.code === 'connection_lost' ? told : refusal(second);
}

function writtenOf({ grammar }: RunPlace, segments: readonly Segment[], results: readonly Result[]): Written[] {
  const rows = new Map<string, Result['rows'][number]>();
  const told = groups(segments.flatMap(({ writes }) => writes));
  for (const [index, [first]] of told.entries()) {
    if (!first) continue;
    const { collection, key } = first.definition;
    for (const row of results[index]?.rows ?? []) rows.set(`${collection}/${row[key]}`, row);
  }
  const rowOf = ({ definition, record }: RecordWrite) =>
    rows.get(`${definition.collection}/${String(record[definition.key])}`);
  return segments.map(({ writes }) => writes.map((write) => writtenValues(grammar, write, rowOf(write) ?? {})));
}

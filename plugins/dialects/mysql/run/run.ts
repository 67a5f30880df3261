import { setTimeout as wait } from 'node:timers/promises';
import type { RunObserver, RunOutcome } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import { endsElapsed, type RecordWrite } from '../../../../core/records.ts';
import { lockLostError } from '../../shared/errors.ts';
import { engineFilledValues } from '../../sql/record-values.ts';
import { type ExecSql, type Result, rowsOf, type Session } from '../../sql/session.ts';
import type { MysqlSegment, MysqlStatement, StatementPlan } from '../compile/step.ts';
import { errorNumber, isTransient, toSvcError } from '../connection/errors.ts';
import { readBackSql } from '../records/record-writes.ts';
import { blockersOf, withBlockers } from './blocking-sessions.ts';
import { NEEDS_CATALOG } from './online-alter.ts';
import {
  countCommitted,
  createPacket,
  groupWrites,
  hasRaw,
  isDeferred,
  type Packet,
  type PacketContext,
} from './packet.ts';

/** The errors of a conflicting record write: another version, an outdated epoch, or an existing row. */
const WRITE_CONFLICT: ReadonlySet<number | undefined> = new Set([1690, 1048, 1062]);

/** A warning: a table of an engine without transactions kept its changes. */
const NOT_ROLLED_BACK = 1196;

interface DeferredOptions {
  /** The migration permits copying the table. */
  readonly allowCopy: boolean;
  readonly onSent: (sql: string) => void;
}

export interface RunContext extends PacketContext {
  readonly session: Session;
  readonly lockRetries: number;
  /** Runs a statement that depends on the catalog. Calls `onSent` before it sends the SQL. */
  runDeferred(exec: ExecSql, plan: StatementPlan, options: DeferredOptions): Promise<void>;
}

type Written = RunOutcome['written'][number];

interface PacketOutcome {
  readonly written: readonly Written[];
  readonly failure?: NonNullable<RunOutcome['failure']>;
  /** The segment after the written ones can be retried later. */
  readonly retryable?: boolean;
  /** How to send it again at once. */
  readonly retry?: Retry | undefined;
}

/** `deferred`: its most likely form was rejected. `plain`: the compound statement has a syntax error. */
type Retry = 'deferred' | 'plain';

export async function runSegments(
  context: RunContext,
  segments: readonly MysqlSegment[],
  epoch: number,
  tookMs = 0,
  observer?: RunObserver,
): Promise<RunOutcome> {
  const written: Written[] = [];
  let retries = 0;
  let startedAt = performance.now() - tookMs;
  let retry: Retry | undefined;
  while (written.length < segments.length) {
    const before = written.length;
    if (before > 0 && observer?.shouldContinue(before) === false) break;
    const elapsedMs = performance.now() - startedAt;
    const outcome = await context.session.exclusive((exec) =>
      runPacket(context, exec, segments.slice(before), epoch, elapsedMs, retry, (text) =>
        observer?.onSent(before, text),
      ),
    );
    written.push(...outcome.written);
    const last = segments[written.length - 1];
    if (written.length > before) {
      retries = 0;
      if (last && endsElapsed(last)) startedAt = performance.now();
    }
    retry = outcome.retry;
    if (!outcome.failure || retry) continue;
    const blocked = outcome.retryable ? await blockersOf(context, segments[written.length]?.statements) : [];
    const failure = { ...outcome.failure, error: withBlockers(outcome.failure.error, blocked) };
    const stopped = { committed: written.length, written, failure };
    if (!outcome.retryable || retries >= context.lockRetries) return stopped;
    observer?.onBlocked?.(blocked);
    // Sessions that waited for this one go first.
    await wait(Math.min(2000, 50 * 2 ** retries) * (0.5 + Math.random() / 2));
    if (observer?.shouldRetry() === false) return stopped;
    retries += 1;
  }
  return { committed: written.length, written };
}

async function runPacket(
  context: RunContext,
  exec: ExecSql,
  segments: readonly MysqlSegment[],
  epoch: number,
  elapsedMs: number,
  retry: Retry | undefined,
  onSent: (sql: string) => void,
): Promise<PacketOutcome> {
  const [first] = segments;
  const statement = first?.statements[0];
  const sendAlone = first && statement && aloneIn(context, exec, first, statement, retry, onSent);
  if (sendAlone) {
    try {
      await sendAlone();
      return { written: [[]] };
    } catch (error) {
      const retryable = isTransient(error);
      return {
        written: [],
        failure: { statement: 0, error: toSvcError(error), rolledBack: true, transient: retryable },
        retryable,
      };
    }
  }
  const packet = createPacket(context, segments, epoch, elapsedMs, retry === 'plain');
  try {
    const results = await exec(packet.text);
    return { written: writtenOf(context, packet.segments, results.slice(results.length - packet.readBack.length)) };
  } catch (error) {
    return recover(context, exec, packet, error).catch((recoveryError) => {
      // The outcome is unknown: the caller reads the history again.
      return { written: [], failure: { statement: undefined, error: connectionLostOr(recoveryError, error) } };
    });
  }
}

/** Sends a statement by itself, if it depends on the catalog, or if the server would keep the text that follows it. */
function aloneIn(
  context: RunContext,
  exec: ExecSql,
  segment: MysqlSegment,
  { run, allowCopy }: MysqlStatement,
  retry: Retry | undefined,
  onSent: (sql: string) => void,
): (() => Promise<unknown>) | undefined {
  // A trigger whose body is one statement includes the semicolon after it.
  if (run.kind === 'raw') return run.inSchema ? () => exec(run.sql) : undefined;
  if (retry !== 'deferred' && !isDeferred(context, segment)) return undefined;
  return () => context.runDeferred(exec, run, { allowCopy: allowCopy === true, onSent });
}

/** Reads the progress of the packet and ends its transaction. */
async function recover(context: RunContext, exec: ExecSql, packet: Packet, error: unknown): Promise<PacketOutcome> {
  const [row] = await rowsOf(exec, 'SELECT @svc_done AS done, @svc_at AS at');
  const done = Number(row?.done);
  const at = Number(row?.at);
  const failed = packet.segments[done];
  const isRaw = failed !== undefined && hasRaw(failed);
  // Writes before a planned non-transactional statement have succeeded, so they are committed even if the statement has a
  // syntax error. A raw statement follows a COMMIT: the open transaction after it is its own unfinished part.
  const rolledBack = failed?.transactional !== false || isRaw || at < 0;
  const warnings = await rowsOf(exec, `${rolledBack ? 'ROLLBACK' : 'COMMIT'}; SHOW WARNINGS`);
  const isPartial = warnings.some(({ Code }) => Number(Code) === NOT_ROLLED_BACK);
  await exec(isRaw ? `UNLOCK TABLES; ${context.restore(1)}` : 'SET autocommit = 1');
  const committed = packet.segments.slice(0, rolledBack ? countCommitted(packet.segments, done) : done);
  const results: Result[] = [];
  for (const writes of groupWrites(committed.flatMap((segment) => segment.writes))) {
    results.push(...(await exec(readBackSql(context.grammar, writes) ?? 'DO 1')));
  }
  const written = writtenOf(context, committed, results);
  const retryable = isTransient(error) && !isPartial && failed !== undefined && isRepeatable(failed);
  return {
    written,
    failure: { ...failureOf(failed, at, error), transient: retryable, ...(isPartial && { rolledBack: false }) },
    retryable,
    retry: retryOf(packet, failed, at, error),
  };
}

function retryOf(packet: Packet, failed: MysqlSegment | undefined, at: number, error: unknown): Retry | undefined {
  if (packet.isCompound && at < 0) return 'plain';
  const needsCatalog = NEEDS_CATALOG.has(errorNumber(error)) && failed?.statements.some(isAlter);
  return needsCatalog ? 'deferred' : undefined;
}

/** A definition of an object is a single statement, whatever is in its body. */
const isUserText = ({ run }: MysqlStatement): boolean => run.kind === 'raw' && run.inSchema !== true;

const isAlter = ({ run }: MysqlStatement): boolean => run.kind === 'alterTable';

/** A procedure may have committed part of its work before the conflict. Anything else was rolled back. */
function isRepeatable({ transactional, statements }: MysqlSegment): boolean {
  return transactional || !statements.some((one) => isUserText(one) && /\b(call|execute)\b/i.test(one.text));
}

/** Planned statements are atomic; raw ones are, unless they contain several statements or one of these commands. */
function isAtomic({ statements }: MysqlSegment): boolean {
  return statements.every(
    (one) => !isUserText(one) || !/;|\b(call|execute|drop|load|rename|replace)\b/i.test(one.text),
  );
}

function failureOf(failed: MysqlSegment | undefined, at: number, error: unknown): NonNullable<RunOutcome['failure']> {
  const inWrites = at < 0 || !failed || (failed.transactional && at >= failed.statements.length);
  if (inWrites)
    return {
      statement: undefined,
      error: WRITE_CONFLICT.has(errorNumber(error)) ? lockLostError(toSvcError(error)) : toSvcError(error),
    };
  const rolledBack = failed.transactional || isAtomic(failed);
  return { statement: failed.transactional ? at : 0, error: toSvcError(error), rolledBack };
}

function connectionLostOr(recoveryError: unknown, first: unknown): unknown {
  const mapped = toSvcError(first);
  return isSvcError(mapped) && mapped.code === 'connection_lost' ? mapped : toSvcError(recoveryError);
}

function writtenOf({ grammar }: RunContext, segments: readonly MysqlSegment[], results: readonly Result[]): Written[] {
  const rows = new Map<string, Result['rows'][number]>();
  const readBack = groupWrites(segments.flatMap(({ writes }) => writes));
  for (const [index, [first]] of readBack.entries()) {
    if (!first) continue;
    const { collection, key } = first.definition;
    for (const row of results[index]?.rows ?? []) rows.set(`${collection}/${row[key]}`, row);
  }
  const rowOf = ({ definition, record }: RecordWrite) =>
    rows.get(`${definition.collection}/${String(record[definition.key])}`);
  return segments.map(({ writes }) => writes.map((write) => engineFilledValues(grammar, write, rowOf(write) ?? {})));
}

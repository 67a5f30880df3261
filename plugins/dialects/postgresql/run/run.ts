import { setTimeout as sleep } from 'node:timers/promises';
import type { RunObserver, RunOutcome, Segment } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import { processWide } from '../../../../core/process-wide.ts';
import { endsElapsed } from '../../../../core/records.ts';
import { lockLostError } from '../../shared/errors.ts';
import { engineFilledColumns, engineFilledValues } from '../../sql/record-values.ts';
import { type ExecSql, type Result, rowsOf } from '../../sql/session.ts';
import { isRaw } from '../../sql/statement.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { codeOf, isTransient, statementError, toSvcError } from '../connection/errors.ts';
import { lockHeldBySession, lockReleasedError } from '../connection/lock.ts';
import { recordGrammar } from '../records/record-backend.ts';
import { readBackSql, recordWriteSql } from '../records/record-writes.ts';
import { blockersOf, withBlockers } from './blocking-sessions.ts';
import { type BatchOutcome, holdsLock, type RunContext, type SegmentValues, statementText } from './context.ts';
import { runOutsideTransaction } from './outside-transaction.ts';

const BATCH_SEGMENTS = 50;
const BATCH_CHARACTERS = 256 * 1024;
/** The errors of a conflicting record write: another version, an outdated epoch, or an existing row. */
const LOST_WRITE_CODES: ReadonlySet<string | undefined> = new Set(['22012', '23502', '23505']);

/** Connections share the session of PGlite. */
const batches = processWide('postgresql-batches', () => ({ count: 0 }));

export async function runSegments(
  context: RunContext,
  segments: readonly Segment<PostgresqlStep>[],
  epoch: number,
  tookMs = 0,
  observer?: RunObserver,
): Promise<RunOutcome> {
  const written: SegmentValues[] = [];
  let retries = 0;
  let maxSegments = BATCH_SEGMENTS;
  let startedAt = performance.now() - tookMs;
  while (written.length < segments.length) {
    const before = written.length;
    const batch = nextBatch(
      context,
      segments.slice(before, before + maxSegments),
      epoch,
      performance.now() - startedAt,
    );
    const outcome = await context.session.exclusive((exec) =>
      batch.segments[0]?.transactional === false
        ? runOutsideTransaction(context, exec, batch.segments[0], observer)
        : runBatch(context, exec, batch),
    );
    written.push(...outcome.written);
    const last = segments[written.length - 1];
    if (written.length > before) {
      retries = 0;
      if (last && endsElapsed(last)) startedAt = performance.now();
    }
    if (!outcome.failure) continue;
    if (outcome.split) {
      maxSegments = 1;
      continue;
    }
    const blocked = outcome.retry ? await blockersOf(context, segments[written.length]?.statements) : [];
    const failure = { ...outcome.failure, error: withBlockers(outcome.failure.error, blocked) };
    const stopped = { committed: written.length, written, failure };
    if (!outcome.retry || retries >= context.settings.lockRetries) return stopped;
    observer?.onBlocked?.(blocked);
    // Sessions that waited for this one go first.
    await sleep(Math.min(2000, 50 * 2 ** retries) * (0.5 + Math.random() / 2));
    if (observer?.shouldRetry() === false) return stopped;
    retries += 1;
  }
  return { committed: written.length, written };
}

interface Batch {
  readonly id: string;
  readonly segments: readonly Segment<PostgresqlStep>[];
  readonly text: string;
  /** Set for a single segment that is verified after `text`, and what then completes its transaction. */
  readonly verified?: { readonly verify: NonNullable<Segment['verify']>; readonly text: string };
}

/** `elapsedMs` counts from the start of the first segment's migration. */
function nextBatch(
  context: RunContext,
  segments: readonly Segment<PostgresqlStep>[],
  epoch: number,
  elapsedMs: number,
): Batch {
  batches.count += 1;
  const id = `${process.pid}.${batches.count}`;
  const batch: Segment<PostgresqlStep>[] = [];
  let text = '';
  for (const segment of segments) {
    if (!segment.transactional) {
      if (batch.length === 0) batch.push(segment);
      break;
    }
    // Restoring the session also resets the start time of the migration, so raw text begins a batch with its own.
    if (batch.length > 0 && hasRawStatement(segment)) break;
    if (segment.verify) {
      const [statements, rest] = segmentTexts(context, segment, epoch, id, 0, elapsedMs);
      return { id, segments: [segment], text: statements, verified: { verify: segment.verify, text: rest } };
    }
    const last = batch.at(-1);
    const elapsed = last ? (endsElapsed(last) ? 0 : undefined) : elapsedMs;
    const next = segmentTexts(context, segment, epoch, id, batch.length, elapsed).join('');
    if (batch.length > 0 && text.length + next.length > BATCH_CHARACTERS) break;
    text += next;
    batch.push(segment);
  }
  return { id, segments: batch, text };
}

const hasRawStatement = ({ statements }: Segment<PostgresqlStep>): boolean => statements.some(isRaw);

/**
 * A segment as one transaction: its statements, then its record writes and the commit. `svc.done`, set after its last write, rolls back with it, so its value names the last
 * segment that committed. Set in a WHERE clause, it returns no row.
 */
function segmentTexts(
  context: RunContext,
  segment: Segment<PostgresqlStep>,
  epoch: number,
  id: string,
  index: number,
  elapsedMs: number | undefined,
): readonly [string, string] {
  const begin = elapsedMs === undefined ? ['BEGIN'] : ['BEGIN', setStartTime('clock_timestamp()', elapsedMs)];
  const done = `SELECT WHERE set_config('svc.done', '${id}:${index + 1}', false) IS NULL`;
  const statements = segment.statements.map((statement) => statementText(context, statement.run));
  const writes = segment.writes.map((write, at) => recordWriteSql(write, context.schema, epoch, `${index}.${at}`));
  const assertLock = `SELECT 1 / count(*) FROM ${lockHeldBySession(context.schema)}`;
  const afterRaw = hasRawStatement(segment)
    ? [context.restoreSettings, setStartTime('transaction_timestamp()', elapsedMs ?? 0), assertLock]
    : [];
  // Each on a new line: raw text may end in a comment.
  const joined = (parts: readonly string[]): string => `${parts.join('\n;')};\n`;
  return [joined([...begin, ...statements, ...afterRaw]), joined([...writes, done, 'COMMIT'])];
}

const setStartTime = (now: string, elapsedMs: number): string =>
  `SELECT WHERE set_config('svc.started_at', (${now} - interval '${elapsedMs.toFixed(3)} ms')::text, false) IS NULL`;

async function runBatch(context: RunContext, exec: ExecSql, batch: Batch): Promise<BatchOutcome> {
  try {
    const results = await exec(batch.text);
    if (!batch.verified) return { written: writtenFromResults(batch, results) };
    const { verify, text } = batch.verified;
    const [checked] = await Promise.allSettled([verify((names) => context.introspect(exec, names))]);
    if (checked.status === 'fulfilled') return { written: writtenFromResults(batch, await exec(text)) };
    await exec('ROLLBACK');
    const failed = batch.segments[0]?.statements.findIndex(isRaw);
    return { written: [], failure: { statement: failed, error: toSvcError(checked.reason), rolledBack: true } };
  } catch (error) {
    try {
      await exec('ROLLBACK');
      const done = await committedCount(exec, batch.id);
      const written = await readWrittenValues(context, exec, batch, done);
      const retry = isTransient(error);
      const failed = batch.segments[done];
      // A single statement must be the blocked one.
      const statement = failed?.statements.length === 1 ? 0 : undefined;
      const blocked = { statement, error: toSvcError(error), transient: retry };
      if (retry || !failed) return { written, failure: blocked, retry };
      const failure = await diagnose(context, exec, failed, error);
      return { written, failure, split: failure.statement === undefined && batch.segments.length - done > 1 };
    } catch (rollbackError) {
      // The outcome on the server is unknown: the caller reads the history again.
      return { written: [], failure: { statement: undefined, error: lostConnectionOr(rollbackError, error) } };
    }
  }
}

function lostConnectionOr(rollbackError: unknown, first: unknown): unknown {
  const svcError = toSvcError(first);
  return isSvcError(svcError) && svcError.code === 'connection_lost' ? svcError : toSvcError(rollbackError);
}

async function committedCount(exec: ExecSql, id: string): Promise<number> {
  const [row] = await rowsOf(exec, "SELECT current_setting('svc.done', true) AS done");
  const [batch, done] = String(row?.done ?? '').split(':');
  return batch === id ? Number(done) : 0;
}

function writtenFromResults(batch: Batch, results: readonly Result[]): SegmentValues[] {
  const marked = new Map<string, Result['rows'][number]>();
  for (const { rows } of results) {
    for (const row of rows) if (typeof row.svc_write === 'string') marked.set(row.svc_write, row);
  }
  return batch.segments.map(({ writes }, index) =>
    writes.map((write, at) => engineFilledValues(recordGrammar, write, marked.get(`${index}.${at}`) ?? {})),
  );
}

/** Results before an error are lost, so the values that the engine filled in are read again. */
async function readWrittenValues(
  context: RunContext,
  exec: ExecSql,
  batch: Batch,
  done: number,
): Promise<SegmentValues[]> {
  const written: SegmentValues[] = [];
  for (const { writes } of batch.segments.slice(0, done)) {
    const values = [];
    for (const write of writes) {
      const [row] = engineFilledColumns(write).length > 0 ? await rowsOf(exec, readBackSql(write, context.schema)) : [];
      values.push(row ? engineFilledValues(recordGrammar, write, row) : {});
    }
    written.push(values);
  }
  return written;
}

/** Finds the statement that fails: runs the segment again, one statement at a time, and rolls it back. */
async function diagnose(
  context: RunContext,
  exec: ExecSql,
  segment: Segment<PostgresqlStep>,
  error: unknown,
): Promise<NonNullable<RunOutcome['failure']>> {
  const svcError = toSvcError(error);
  await exec('BEGIN');
  try {
    for (const [index, statement] of segment.statements.entries()) {
      try {
        await exec(statementText(context, statement.run));
      } catch (repeated) {
        if (codeOf(repeated) !== codeOf(error)) return { statement: undefined, error: svcError };
        return { statement: index, error: statementError(statement, error) };
      }
    }
    if (hasRawStatement(segment) && !(await holdsLock(context, exec)))
      return { statement: undefined, error: lockReleasedError() };
    try {
      // Deferred constraints would only be checked at a COMMIT.
      await exec('SET CONSTRAINTS ALL IMMEDIATE');
    } catch (repeated) {
      const onlyStatement = segment.statements.length === 1 ? 0 : undefined;
      if (codeOf(repeated) === codeOf(error)) return { statement: onlyStatement, error: svcError };
    }
  } finally {
    await exec('ROLLBACK');
  }
  return {
    statement: undefined,
    error: LOST_WRITE_CODES.has(codeOf(error)) && segment.writes.length > 0 ? lockLostError(error) : svcError,
  };
}

import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { RunObserver, RunOutcome } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { endsElapsed, type RecordWrite } from '../../../../core/records.ts';
import type { DynamoSegment } from '../compile/step.ts';
import { toSvcError } from '../connection/errors.ts';
import { MAX_WRITES, writeRecords } from '../records/record-writes.ts';
import { CreatePreflights } from './create-preflight.ts';
import { assertDroppable } from './drop-table.ts';
import type { RunContext } from './run-context.ts';
import { runStep } from './run-step.ts';

/**
 * Runs segments in order. Statements are never part of a transaction: DynamoDB has no transactional DDL, and this dialect
 * compiles none. Record writes of consecutive segments share one transaction with the registry writes of the statements
 * before and after them, so each statement costs one transaction.
 */
export async function runSegments(
  context: RunContext,
  segments: readonly DynamoSegment[],
  observer?: RunObserver,
): Promise<RunOutcome> {
  const written: RunOutcome['written'][number][] = [];
  const preflights = new CreatePreflights(context, segments);
  /** Segments whose statements have run but whose record writes are pending. */
  let pending: DynamoSegment[] = [];
  let registryWrites: readonly TransactWriteItem[] = [];
  let startedAt = performance.now();
  const commit = (values: RunOutcome['written'][number]): void => {
    written.push(values);
    observer?.onCommitted(values);
  };
  const flush = async (announcement: readonly TransactWriteItem[] = []): Promise<void> => {
    const writes = pending.flatMap((segment) => segment.writes);
    const others = [...registryWrites, ...announcement];
    const values = writes.length + others.length > 0 ? await writeRecords(context, writes, startedAt, others) : [];
    if (endsElapsed({ writes })) startedAt = performance.now();
    const flushed = pending;
    pending = [];
    registryWrites = [];
    for (const segment of flushed) commit(values.splice(0, segment.writes.length));
  };
  const failure = (error: unknown, statement?: number, rolledBack = false): RunOutcome => ({
    committed: written.length,
    written,
    failure: { statement, error: connectionLost(error), ...(rolledBack && { rolledBack }) },
  });
  try {
    await assertDroppable(context, segments);
  } catch (error) {
    return failure(error, undefined, true);
  }
  for (const [at, segment] of segments.entries()) {
    if (observer?.shouldContinue(at) === false) break;
    for (const [index, statement] of segment.statements.entries()) {
      try {
        if (preflights.mustFlushFirst) await flush();
      } catch (error) {
        return failure(error);
      }
      const preflight = await settle(preflights.next());
      try {
        await flush(preflight.status === 'fulfilled' ? preflight.value?.announcement : []);
      } catch (error) {
        return failure(error);
      }
      let changed = false;
      const onChange = () => {
        changed = true;
      };
      try {
        if (preflight.status === 'rejected') throw preflight.reason;
        registryWrites = await runStep({ ...context, onChange }, statement.run, preflight.value);
      } catch (error) {
        return failure(error, index, !changed);
      }
    }
    if (pending.length === 0 && segment.writes.length === 0) {
      // A statement without writes is done, whatever happens to later writes.
      commit([]);
      continue;
    }
    try {
      if (!fitsOneTransaction(pending, segment)) await flush();
    } catch (error) {
      return failure(error);
    }
    pending.push(segment);
  }
  try {
    await flush();
  } catch (error) {
    return failure(error);
  }
  return { committed: written.length, written };
}

const settle = async <T>(one: Promise<T>): Promise<PromiseSettledResult<T>> => {
  const [outcome] = await Promise.allSettled([one]);
  return outcome;
};

/** A transaction may write a record only once. */
function fitsOneTransaction(pending: readonly DynamoSegment[], next: DynamoSegment): boolean {
  const writes = pending.flatMap((segment) => segment.writes);
  if (writes.length + next.writes.length > MAX_WRITES) return pending.length === 0;
  const keys = new Set(writes.map(recordKeyOf));
  return !next.writes.some((write) => keys.has(recordKeyOf(write)));
}

const recordKeyOf = ({ definition, record }: RecordWrite): string =>
  JSON.stringify([definition.collection, record[definition.key]]);

/** A server that becomes unreachable during a run is a lost connection. */
function connectionLost(error: unknown): unknown {
  const svcError = toSvcError(error);
  if (!isSvcError(svcError) || svcError.code !== 'connection_failed') return svcError;
  return new SvcError('connection_lost', 'The connection to DynamoDB was lost.', {
    ...(svcError.why !== undefined && { why: svcError.why }),
    next: ['Run the command again: it checks what took effect.'],
    cause: svcError.cause,
  });
}

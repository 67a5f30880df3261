import type { Segment } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { Writable } from '../records.ts';
import { type Execution, failure, historyWrite, noteWritten, rowAfter } from './execution.ts';
import type { HistoryRow } from './history.ts';
import { runJournaled } from './journal.ts';
import { isAtomic, type PlannedMigration } from './plan.ts';

/** Migrations that are sent together: each is still a transaction of its own. */
const BATCH = 50;
/** An interruption waits for what was sent: batches grow only while they are done in this time. */
const QUICK_MS = 100;

/** Runs planned migrations in order. Throws at the first that fails; those before it are committed and noted in the ledger. */
export async function execute(run: Execution, planned: readonly PlannedMigration[]): Promise<void> {
  const hook = run.adapter.hooks[`migration:${planned[0]?.direction ?? 'up'}`];
  // A tap may refuse each one: then nothing behind it may have run.
  const largest = hook.isUsed() ? 1 : BATCH;
  let batchSize = 1;
  let done = 0;
  while (done < planned.length) {
    refuseInterrupted(run.signal, done, planned.length);
    const batch: PlannedMigration[] = [];
    for (const next of planned.slice(done, done + batchSize)) {
      if (!isAtomic(next)) break;
      batch.push(next);
    }
    const single = planned[done];
    if (batch.length === 0 && single) {
      await announce(run, single);
      await runJournaled(run, single);
      done += 1;
      continue;
    }
    for (const next of batch) await announce(run, next);
    const clock = performance.now();
    await runAtomic(run, batch, done, planned.length);
    batchSize = performance.now() - clock < QUICK_MS ? Math.min(largest, batchSize * 4) : 1;
    done += batch.length;
  }
}

async function announce({ adapter, started }: Execution, planned: PlannedMigration): Promise<void> {
  const { direction, migration, tag } = planned;
  started?.(planned);
  try {
    await adapter.hooks[`migration:${direction}`].promise({
      database: adapter.database,
      env: adapter.env,
      direction,
      migration,
    });
  } catch (error) {
    throw new SvcError('hook_refused', `A plugin stopped the run before "${tag}".`, {
      why: error instanceof Error ? error.message : String(error),
      state: `Nothing of "${tag}" was run; migrations before it are applied.`,
      cause: error,
    });
  }
}

async function runAtomic(
  run: Execution,
  batch: readonly PlannedMigration[],
  before: number,
  total: number,
): Promise<void> {
  const { adapter, ledger, epoch } = run;
  let seq = ledger.lastSeq;
  const segments: Segment[] = batch.map((planned) => ({
    transactional: true,
    statements: planned.statements,
    writes: [historyWrite(ledger, rowAfter(planned, ledger, planned.direction === 'up' ? ++seq : 0, epoch))],
  }));
  const outcome = await adapter.connection.run(segments, epoch);
  for (const [index, planned] of batch.slice(0, outcome.committed).entries()) {
    const record = segments[index]?.writes[0]?.record;
    if (record) noteWritten(run, planned, record as unknown as Writable<HistoryRow>, outcome.written[index]?.[0] ?? {});
  }
  const failed = batch[outcome.committed];
  if (!outcome.failure && failed) throw new Error(`"${failed.tag}" was sent and neither committed nor failed`);
  if (outcome.failure && !failed) throw outcome.failure.error;
  if (outcome.failure && failed) {
    const through = before + outcome.committed;
    const counted = `${through} of ${total} migrations are ${failed.direction === 'up' ? 'applied' : 'rolled back'}`;
    throw failure(
      failed,
      outcome.failure,
      isSvcError(outcome.failure.error) && outcome.failure.error.code === 'connection_lost'
        ? `At least ${counted}, each as a whole or not at all; the next run finds out.`
        : `Nothing of it stays; ${counted}.`,
    );
  }
}

function refuseInterrupted(signal: AbortSignal | undefined, done: number, total: number): void {
  if (!signal?.aborted) return;
  throw new SvcError('interrupted', 'The run was interrupted.', {
    state: `${done} of ${total} migrations are through; what had begun is finished, the lock is released.`,
    next: ['svc db migrate'],
  });
}

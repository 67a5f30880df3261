import type { Adapter } from '../database/adapter.ts';
import type { RunOutcome, Segment } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { CLOCK, ELAPSED, type RecordWrite, recordWrite, type Writable } from '../records.ts';
import { version } from '../version.ts';
import { actor } from './actor.ts';
import { type HistoryRow, history } from './history.ts';
import { runJournaled } from './journal.ts';
import type { Ledger, LedgerEntry } from './ledger.ts';
import { isAtomic, type PlannedMigration } from './plan.ts';
import { nameOfTag } from './tag.ts';

/** Migrations that are sent together: each is still a transaction of its own. */
const BATCH = 50;
/** An interruption waits for what was sent: batches grow only while they are done in this time. */
const QUICK_MS = 100;

export interface Execution {
  readonly adapter: Adapter;
  readonly ledger: Ledger;
  readonly epoch: number;
  readonly signal?: AbortSignal | undefined;
  readonly started?: ((planned: PlannedMigration) => void) | undefined;
  readonly finished?: ((planned: PlannedMigration, entry: LedgerEntry) => void) | undefined;
}

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

/** Puts a committed row into the ledger and tells who listens. */
export function noteWritten(
  run: Execution,
  planned: PlannedMigration,
  record: Writable<HistoryRow>,
  engine: Readonly<Record<string, Date | number>>,
): void {
  const { migration, ...row } = { ...record, ...engine } as unknown as HistoryRow;
  const version = (run.ledger.entries.get(row.tag)?.version ?? 0) + 1;
  const entry: LedgerEntry = { row: row as LedgerEntry['row'], version, migration };
  run.ledger.set(entry);
  run.finished?.(planned, entry);
}

/** The row once the migration is through. */
export function rowAfter(planned: PlannedMigration, ledger: Ledger, seq: number, epoch: number): Writable<HistoryRow> {
  const up = planned.direction === 'up';
  const previous = ledger.entries.get(planned.tag)?.row;
  return {
    tag: planned.tag,
    seq: up ? seq : (previous?.seq ?? seq),
    // A migration by hand may leave its name to the tag.
    name: planned.migration.name ?? nameOfTag(planned.tag),
    origin: planned.origin,
    status: up ? 'completed' : 'rolled_back',
    applied_at: up ? CLOCK : (previous?.applied_at ?? null),
    rolled_back_at: up ? null : CLOCK,
    duration_ms: ELAPSED,
    checksum: planned.checksum,
    migration: planned.migration,
    step: up ? planned.statements.length : 0,
    steps: planned.statements.length,
    error: null,
    sdk_version: version,
    applied_by: actor(),
    epoch,
  };
}

export function historyWrite(ledger: Ledger, record: Writable<HistoryRow>): RecordWrite {
  const version = ledger.entries.get(record.tag as string)?.version;
  return recordWrite(history, record, version);
}

/** What failed, with the engine's words, the statement and the state that was left. */
export function failure(
  planned: PlannedMigration,
  failed: NonNullable<RunOutcome['failure']>,
  state: string,
  offset = 0,
): SvcError {
  const { error, statement } = failed;
  const index = statement === undefined ? undefined : offset + statement;
  const text = index === undefined ? undefined : planned.statements[index]?.text;
  const again = `Correct "${planned.tag}" or what stands in its way, then run the command again.`;
  const facts = {
    state,
    where:
      index === undefined ? planned.tag : `${planned.tag}, step ${index + 1} of ${planned.statements.length}: ${text}`,
    details: {
      tag: planned.tag,
      ...(index !== undefined && { step: index + 1, steps: planned.statements.length, statement: text }),
    },
  };
  if (isSvcError(error)) return error.with(error.next.length === 0 ? { ...facts, next: [again] } : facts);
  return new SvcError('migration_failed', `The migration "${planned.tag}" failed.`, {
    why: error instanceof Error ? error.message : String(error),
    next: [again],
    cause: error,
    ...facts,
  });
}

export function refuseInterrupted(signal: AbortSignal | undefined, done: number, total: number): void {
  if (!signal?.aborted) return;
  throw new SvcError('interrupted', 'The run was interrupted.', {
    state: `${done} of ${total} migrations are through; what had begun is finished, the lock is released.`,
    next: ['svc db migrate'],
  });
}

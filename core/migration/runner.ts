import type { RunOutcome } from '../dialect.ts';
import { describeError, SvcError } from '../errors.ts';
import { frozenClone } from '../tool/safe-json.ts';
import { assertLocksFit } from './assert-locks-fit.ts';
import { continueSteps, handleFailure, migrationError, RESUMES_FROM_JOURNAL } from './failure.ts';
import type { HistoryRecord } from './history.ts';
import {
  type Batch,
  checkpoint,
  type JournaledSegment,
  type MigrationRun,
  nextBatch,
  type RunPosition,
  recordCommitted,
  sentStatements,
  statementsBeforeStep,
} from './journal.ts';
import { writeKept } from './kept.ts';
import { runReviewed } from './plan-approval.ts';
import type { PlannedMigration } from './planned-migration.ts';
import { assertEffect, withVerification } from './verify-effect.ts';

const MAX_BATCH_STEPS = 50;
/** A dialect that cannot be interrupted within a batch gets batches that take about this long. */
const BATCH_MS = 100;

/**
 * Runs planned migrations in order, the first one from step `resumeAt`. Throws at the first failure; the migrations
 * before it are committed and in `run.history`.
 */
export async function runMigrations(
  run: MigrationRun,
  planned: readonly PlannedMigration[],
  resumeAt?: number,
): Promise<void> {
  if (resumeAt === undefined) {
    await assertLocksFit(run.target, planned);
    await assertPreflight(run, planned);
  }
  const work = async () => {
    const adopted = planned.flatMap((one) => one.adopted ?? []);
    if (adopted.length > 0) await run.target.connection.adopt?.(adopted, run.epoch);
    await writeKept(
      run.target,
      run.epoch,
      planned.flatMap(({ keeps = [] }) => keeps),
    );
    await new MigrationRunner(run, planned, resumeAt).run();
  };
  // What is resumed was approved when it began, or is a decision that was.
  await (resumeAt === undefined ? runReviewed(run, planned, work) : work());
}

export interface EngineResult {
  readonly tag: string;
  readonly status: 'completed' | 'skipped' | 'rolled_back';
  readonly durationMs: number;
  /** The statements sent to the database. */
  readonly statements: readonly string[];
}

/** Runs one planned migration and returns its result. */
export async function runMigration(run: MigrationRun, planned: PlannedMigration): Promise<EngineResult> {
  await runMigrations(run, [planned]);
  const status = planned.direction === 'up' ? 'completed' : 'rolled_back';
  const row = run.history.records.get(planned.tag)?.row;
  if (row?.status !== status)
    throw new Error(`"${planned.tag}" was run, but its status in the history is ${row?.status}`);
  return { tag: planned.tag, status, durationMs: row.duration_ms ?? 0, statements: sentStatements(run, planned) };
}

/** Throws if the engine reports that one of the statements is certain to fail. Nothing has run yet. */
async function assertPreflight({ target }: MigrationRun, planned: readonly PlannedMigration[]): Promise<void> {
  const report = await target.connection.preflight?.(
    planned.flatMap(({ statements }) => statements),
    planned.flatMap(({ operations = [] }) => operations),
  );
  const failure = report?.failures[0];
  if (!failure) return;
  let statement = failure.statement;
  for (const migration of planned) {
    const { length } = migration.statements;
    if (statement < length)
      throw migrationError(migration, { statement, error: failure.error }, 'Nothing was changed.');
    statement -= length;
  }
}

/** Sends batches of steps until every migration is done. */
class MigrationRunner {
  readonly #run: MigrationRun;
  readonly #planned: readonly PlannedMigration[];
  /** A hook may stop the run before each migration, so no batch contains steps of two. */
  readonly #hasHook: boolean;
  /** The dialect can be stopped between the segments of a batch. */
  readonly #isInterruptible: boolean;
  #position: RunPosition;
  /** How many migrations were reported as started. */
  #announced: number;
  #batchSteps: number;
  /** When the migration at the position started, by performance.now(). */
  #startedAt = performance.now();

  constructor(run: MigrationRun, planned: readonly PlannedMigration[], resumeAt: number | undefined) {
    const { dialect, hooks } = run.target;
    this.#run = run;
    this.#planned = planned;
    this.#hasHook = hooks[`migration:${planned[0]?.direction ?? 'up'}`].isUsed();
    this.#isInterruptible = dialect.capabilities.runsSegmentsSingly === true;
    this.#position = { migration: 0, step: resumeAt ?? 0 };
    this.#announced = resumeAt === undefined ? 0 : 1;
    this.#batchSteps = this.#isInterruptible ? MAX_BATCH_STEPS : 1;
  }

  async run(): Promise<void> {
    while (this.#position.migration < this.#planned.length) {
      this.#assertNotInterrupted(this.#position);
      const batch = await this.#nextBatch();
      await this.#announce(batch);
      const sentAt = performance.now();
      if (this.#position.step === 0) this.#startedAt = sentAt;
      await this.#send(batch, sentAt);
      await this.#verifyLastStatement(batch);
      this.#adjustBatchSize(performance.now() - sentAt);
      this.#advance(batch.end, sentAt);
    }
  }

  async #nextBatch(): Promise<Batch> {
    const reachable = this.#hasHook ? this.#planned.slice(0, this.#position.migration + 1) : this.#planned;
    const batch = nextBatch(this.#run, reachable, this.#position, this.#batchSteps);
    const segments: JournaledSegment[] = [];
    for (const one of batch.segments) {
      const { planned, segment, startsAt } = one;
      const isVerified = startsAt && segment.transactional && segment.statements.length > 0;
      segments.push(
        isVerified ? { ...one, segment: await withVerification(this.#run, planned, startsAt.step, segment) } : one,
      );
    }
    return { ...batch, segments };
  }

  /** Only a statement outside a transaction that has to be verified ends a batch without an update of the history. */
  async #verifyLastStatement({ segments, end }: Batch): Promise<void> {
    const last = segments.at(-1);
    if (!last || last.segment.transactional) return;
    try {
      await assertEffect(this.#run, last.planned, end.step - 1);
    } catch (error) {
      throw await this.#errorOf({ statement: 0, error }, last, new Map());
    }
  }

  /** Reports the migrations of the batch as started. `#shouldStart` does so for an interruptible dialect without a hook. */
  async #announce({ end }: Batch): Promise<void> {
    if (this.#isInterruptible && !this.#hasHook) return;
    const started = end.step > 0 ? end.migration + 1 : end.migration;
    for (const migration of this.#planned.slice(this.#announced, started)) {
      this.#run.onStarted?.(migration);
      await runHook(this.#run, migration);
    }
    this.#announced = Math.max(this.#announced, started);
  }

  async #send({ segments }: Batch, sentAt: number): Promise<void> {
    const { target, history, epoch, signal, sentText } = this.#run;
    const before = new Map(segments.map(({ planned: { tag } }) => [tag, history.records.get(tag)]));
    let recorded = 0;
    const onCommitted = (written: RunOutcome['written'][number]): void => {
      const segment = segments[recorded++];
      if (segment) recordCommitted(this.#run, segment, written[0] ?? {});
    };
    const outcome = await target.connection.run(
      segments.map(({ segment }) => segment),
      epoch,
      sentAt - this.#startedAt,
      {
        shouldContinue: (index) => this.#shouldStart(segments[index]?.startsAt),
        onCommitted,
        shouldRetry: () => !signal?.aborted,
        onBlocked: (sessions) => this.#run.onBlocked?.(sessions),
        onSent: (index, text) => {
          const [statement] = segments[index]?.segment.statements ?? [];
          if (statement) sentText.set(statement, text);
        },
      },
    );
    for (const written of outcome.written.slice(recorded, outcome.committed)) onCommitted(written);
    const stopped = segments[outcome.committed];
    if (outcome.failure) throw await this.#errorOf(outcome.failure, stopped, before);
    if (stopped) await this.#stopBefore(stopped);
  }

  /** Whether to start the step at this position. An interruption stops the run unless its migration was announced. */
  #shouldStart(startsAt: RunPosition | undefined): boolean {
    if (!startsAt) return true;
    const { migration, step } = startsAt;
    if (this.#run.signal?.aborted && (step > 0 || migration >= this.#announced)) return false;
    for (const started of this.#planned.slice(this.#announced, migration + 1)) this.#run.onStarted?.(started);
    this.#announced = Math.max(this.#announced, migration + 1);
    return true;
  }

  async #errorOf(
    failure: NonNullable<RunOutcome['failure']>,
    stopped: JournaledSegment | undefined,
    before: ReadonlyMap<string, HistoryRecord | undefined>,
  ): Promise<unknown> {
    if (!stopped) return failure.error;
    const { planned } = stopped;
    const doneCount = this.#planned.indexOf(planned);
    const done = planned.direction === 'up' ? 'applied' : 'rolled back';
    const progress = `${doneCount} of ${this.#planned.length} migrations are ${done}`;
    const handled = await handleFailure(this.#run, stopped, failure, before.get(planned.tag), progress);
    const error = doneCount > 0 ? handled.with({ details: { changed: true } }) : handled;
    return failure.transient && this.#run.signal?.aborted ? interruptedWhileWaiting(error, planned) : error;
  }

  /** The interruption stopped the run before this segment. */
  async #stopBefore({ planned, startsAt }: JournaledSegment): Promise<void> {
    if (!startsAt || !this.#run.signal?.aborted) {
      throw new Error(`"${planned.tag}" was sent and neither committed nor failed`);
    }
    if (startsAt.step > 0) await this.#writeCheckpoint(planned, startsAt.step);
    this.#assertNotInterrupted(startsAt);
  }

  /** The update that would record the previous step as done was not sent. */
  async #writeCheckpoint(planned: PlannedMigration, step: number): Promise<void> {
    const segment = checkpoint(this.#run, planned, step);
    const { failure, written } = await this.#run.target.connection.run([segment.segment], this.#run.epoch);
    if (failure) throw migrationError(planned, failure, RESUMES_FROM_JOURNAL, segment.firstStatement);
    recordCommitted(this.#run, segment, written[0]?.[0] ?? {});
  }

  #adjustBatchSize(tookMs: number): void {
    if (this.#isInterruptible) return;
    const size = Math.floor(this.#batchSteps * Math.min(4, BATCH_MS / tookMs));
    this.#batchSteps = Math.max(1, Math.min(MAX_BATCH_STEPS, size));
  }

  #advance(end: RunPosition, sentAt: number): void {
    if (end.migration > this.#position.migration && end.step > 0) this.#startedAt = sentAt;
    this.#position = end;
  }

  #assertNotInterrupted({ migration, step }: RunPosition): void {
    if (!this.#run.signal?.aborted) return;
    const current = this.#planned[migration];
    const isDown = this.#planned[0]?.direction === 'down';
    if (current && step > 0) {
      throw new SvcError('interrupted', 'The run was interrupted.', {
        state: `${statementsBeforeStep(current, step)} of ${current.statements.length} steps of "${current.tag}" are committed and journaled; the lock is released.`,
        next: continueSteps(current),
      });
    }
    throw new SvcError('interrupted', 'The run was interrupted.', {
      state: `${migration} of ${this.#planned.length} migrations are finished, none is left partly applied, and the lock is released.`,
      next: [isDown ? 'svc db migrate status' : 'svc db migrate'],
    });
  }
}

async function runHook({ target }: MigrationRun, { direction, migration, tag }: PlannedMigration): Promise<void> {
  const hook = target.hooks[`migration:${direction}`];
  if (!hook.isUsed()) return;
  try {
    await hook.promise(frozenClone({ database: target.database, env: target.env, direction, migration }));
  } catch (error) {
    throw new SvcError('hook_refused', `A plugin stopped the run before "${tag}".`, {
      why: error instanceof Error ? error.message : String(error),
      state: `"${tag}" was not started; migrations before it are ${direction === 'up' ? 'applied' : 'rolled back'}.`,
      cause: error,
    });
  }
}

function interruptedWhileWaiting(error: SvcError, { direction }: PlannedMigration): SvcError {
  return new SvcError('interrupted', 'The run was interrupted while it waited for another session.', {
    why: describeError(error),
    ...(error.state !== undefined && { state: error.state }),
    ...(error.where !== undefined && { where: error.where }),
    next: [direction === 'down' ? 'svc db migrate status' : 'svc db migrate'],
    details: error.details,
    cause: error,
  });
}

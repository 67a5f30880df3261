import type { RunOutcome } from '../dialect.ts';
import { SvcError, sentences } from '../errors.ts';
import { nextStages, type Position, pauseAt, statementsBefore } from './course.ts';
import { type Execution, failure, GOES_ON, note } from './execution.ts';
import { failed } from './failed.ts';
import { refuseForeseen } from './foreseen.ts';
import type { PlannedMigration } from './plan.ts';

/** Steps that are sent together; what commits with what is not touched by it. */
const BATCH = 50;
/** Where the dialect does not heed it in between, an interruption waits for what was sent: as much as is done in about this time. */
const QUICK_MS = 100;

/**
 * Runs planned migrations in order, the first from that step on. Throws at the first that fails; those before it are
 * committed and noted in the ledger.
 */
export async function execute(run: Execution, planned: readonly PlannedMigration[], resumeAt?: number): Promise<void> {
  const { connection, dialect, hooks } = run.adapter;
  const stepwise = dialect.capabilities.stepwise === true;
  // A tap may refuse each one: then nothing behind it may have run.
  const singly = hooks[`migration:${planned[0]?.direction ?? 'up'}`].isUsed();
  if (resumeAt === undefined) await refuseForeseen(run, planned);
  let position: Position = { migration: 0, step: resumeAt ?? 0 };
  let announced = resumeAt === undefined ? 0 : 1;
  let size = stepwise ? BATCH : 1;
  let begunAt = performance.now();
  while (position.migration < planned.length) {
    refuseInterrupted(run.signal, position, planned);
    const reach = singly ? planned.slice(0, position.migration + 1) : planned;
    const { stages, end } = nextStages(run, reach, position, size);
    const begun = end.step > 0 ? end.migration + 1 : end.migration;
    if (singly || !stepwise) {
      for (const next of planned.slice(announced, begun)) await announce(run, next);
      announced = Math.max(announced, begun);
    }
    const before = new Map(stages.map(({ planned: { tag } }) => [tag, run.ledger.entries.get(tag)]));
    const clock = performance.now();
    if (position.step === 0) begunAt = clock;
    const segments = stages.map(({ segment }) => segment);
    let noted = 0;
    const committed = (written: RunOutcome['written'][number]): void => {
      const stage = stages[noted++];
      if (stage) note(run, stage, written[0] ?? {});
    };
    const outcome = await connection.run(segments, run.epoch, clock - begunAt, {
      goesOn(segment) {
        const begins = stages[segment]?.begins;
        if (!begins) return true;
        // One that was announced is begun.
        if (run.signal?.aborted && (begins.step > 0 || begins.migration >= announced)) return false;
        for (; announced <= begins.migration; announced += 1) run.started?.(planned[announced] as PlannedMigration);
        return true;
      },
      committed,
      waitsOn: () => !run.signal?.aborted,
      sent(segment, text) {
        const [statement] = stages[segment]?.segment.statements ?? [];
        if (statement) run.sent.set(statement, text);
      },
    });
    for (const written of outcome.written.slice(noted, outcome.committed)) committed(written);
    const stopped = stages[outcome.committed];
    if (outcome.failure) {
      if (!stopped) throw outcome.failure.error;
      const through = planned.indexOf(stopped.planned);
      const counted = `${through} of ${planned.length} migrations are ${stopped.planned.direction === 'up' ? 'applied' : 'rolled back'}`;
      const told = await failed(run, stopped, outcome.failure, before.get(stopped.planned.tag), counted);
      const error = through > 0 ? told.with({ details: { changed: true } }) : told;
      throw outcome.failure.passing && run.signal?.aborted ? stoppedWaiting(error, stopped.planned) : error;
    }
    if (stopped) {
      const { begins } = stopped;
      if (!begins || !run.signal?.aborted)
        throw new Error(`"${stopped.planned.tag}" was sent and neither committed nor failed`);
      if (begins.step > 0) await pause(run, stopped.planned, begins.step);
      refuseInterrupted(run.signal, begins, planned);
    }
    const pace = QUICK_MS / (performance.now() - clock);
    if (!stepwise) size = Math.max(1, Math.min(BATCH, Math.floor(size * Math.min(4, pace))));
    if (end.migration > position.migration && end.step > 0) begunAt = clock;
    position = end;
  }
}

/** A run that ended before a step left it to us to write down that the one before is done. */
async function pause(run: Execution, planned: PlannedMigration, step: number): Promise<void> {
  const stage = pauseAt(run, planned, step);
  const { failure: lost, written } = await run.adapter.connection.run([stage.segment], run.epoch);
  if (lost) throw failure(planned, lost, GOES_ON, stage.offset);
  note(run, stage, written[0]?.[0] ?? {});
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
      state: `Nothing of "${tag}" was run; migrations before it are ${direction === 'up' ? 'applied' : 'rolled back'}.`,
      cause: error,
    });
  }
}

/** Who waits for another session, and is interrupted meanwhile, waits no longer. */
function stoppedWaiting(error: SvcError, { direction }: PlannedMigration): SvcError {
  return new SvcError('interrupted', 'The run was interrupted while another session stood in its way.', {
    why: sentences(error),
    ...(error.state !== undefined && { state: error.state }),
    ...(error.where !== undefined && { where: error.where }),
    next: [direction === 'down' ? 'svc db migrate status' : 'svc db migrate'],
    details: error.details,
    cause: error,
  });
}

function refuseInterrupted(
  signal: AbortSignal | undefined,
  { migration, step }: Position,
  planned: readonly PlannedMigration[],
): void {
  if (!signal?.aborted) return;
  const current = planned[migration];
  const isDown = planned[0]?.direction === 'down';
  if (current && step > 0) {
    throw new SvcError('interrupted', 'The run was interrupted.', {
      state: `${statementsBefore(current, step)} of ${current.statements.length} steps of "${current.tag}" are committed and journaled; the lock is released.`,
      next: [
        isDown
          ? `svc db migrate resolve ${current.tag} --retry    goes on with the next step of the rollback`
          : 'svc db migrate    goes on with the next step',
      ],
    });
  }
  throw new SvcError('interrupted', 'The run was interrupted.', {
    state: `${migration} of ${planned.length} migrations are through; what had begun is finished, the lock is released.`,
    next: [isDown ? 'svc db migrate status' : 'svc db migrate'],
  });
}

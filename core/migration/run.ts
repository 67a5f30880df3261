import type { Adapter } from '../database/adapter.ts';
import type { SchemaModel } from '../schema/model.ts';
import { execute } from './execute.ts';
import type { Execution } from './execution.ts';
import { checkOwner, Ledger } from './ledger.ts';
import type { PlannedMigration } from './plan.ts';
import { chosen, planDown, planUp, readable, refuseUnseen, tellOutOfOrder, unknownTag } from './planning.ts';
import { type Defined, reconcile, refuseTrouble } from './reconcile.ts';
import type { RollbackOptions, RunOptions } from './run-options.ts';
import { type SessionOptions, underLock } from './session.ts';

export interface RunReport {
  readonly migrations: readonly {
    readonly tag: string;
    readonly status: 'completed' | 'rolled_back';
    readonly durationMs: number;
    readonly statements: number;
  }[];
  /** Statements that were run. */
  readonly steps: number;
  readonly durationMs: number;
}

/** Applies what is pending, in tag order. With nothing to do it neither locks nor writes. */
export async function migrate(
  adapter: Adapter,
  defined: readonly Defined[],
  options: RunOptions = {},
): Promise<RunReport> {
  const clock = performance.now();
  if (options.to !== undefined && !defined.some(({ tag }) => tag === options.to)) {
    throw unknownTag(options.to, 'No file defines it.');
  }
  const ledger = await readable(adapter, options);
  const standing = reconcile(defined, ledger);
  refuseTrouble(standing);
  if (chosen(standing.pending, options.to).length === 0 && standing.interrupted.length === 0 && !options.adopt)
    return report([], clock);
  const confirmed = options.confirm && (await planUp(adapter, ledger, defined, options));
  if (confirmed) await options.confirm?.(confirmed);
  return locked(adapter, options, clock, async (run) => {
    const planned = await planUp(adapter, run.ledger, defined, options);
    refuseUnseen(planned, confirmed);
    tellOutOfOrder(planned, run.ledger, options);
    return planned;
  });
}

/** Takes back the last `count` migrations of every origin, or all after `to`, in reverse order of application. */
export async function rollback(adapter: Adapter, options: RollbackOptions = {}): Promise<RunReport> {
  const clock = performance.now();
  const ledger = await readable(adapter, options);
  const first = await planDown(adapter, ledger, options);
  if (first.length === 0 && reconcile([], ledger).interrupted.length === 0) return report([], clock);
  if (options.confirm) await options.confirm(first);
  return locked(adapter, options, clock, async (run) => {
    const planned = await planDown(adapter, run.ledger, options);
    refuseUnseen(planned, options.confirm ? first : undefined);
    return planned;
  });
}

/** The model that the history tells. Takes no lock. */
export async function historyModel(adapter: Adapter): Promise<SchemaModel> {
  await checkOwner(adapter);
  return (await Ledger.read(adapter.connection)).model(adapter.connection);
}

async function locked(
  adapter: Adapter,
  options: RunOptions,
  clock: number,
  planning: (run: Execution) => Promise<PlannedMigration[]>,
): Promise<RunReport> {
  const { onEvent } = options;
  const finished: RunReport['migrations'][number][] = [];
  const watch: SessionOptions['watch'] = {
    started: ({ tag }) => onEvent?.({ type: 'started', tag }),
    finished: (planned, { row }) => {
      const { tag, statements } = planned;
      const status = row.status === 'rolled_back' ? 'rolled_back' : 'completed';
      const durationMs = row.duration_ms ?? 0;
      finished.push({ tag, status, durationMs, statements: statements.length });
      onEvent?.({ type: 'finished', tag, status, durationMs, statements: statements.map(({ text }) => text) });
    },
  };
  return underLock(adapter, { ...options, watch, onWait: () => onEvent?.({ type: 'waiting' }) }, async (run) => {
    const before = run.ledger.completed().at(-1)?.row.tag;
    const planned = await planning(run);
    const last = planned.at(-1);
    if (last) {
      onEvent?.({
        type: 'planned',
        direction: last.direction,
        migrations: planned,
        to: last.tag,
        ...(before !== undefined && { from: before }),
      });
      await execute(run, planned);
    }
    return report(finished, clock);
  });
}

function report(migrations: RunReport['migrations'], clock: number): RunReport {
  return {
    migrations,
    steps: migrations.reduce((sum, { statements }) => sum + statements, 0),
    durationMs: performance.now() - clock,
  };
}

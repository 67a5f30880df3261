import type { Adapter } from '../database/adapter.ts';
import { isSvcError } from '../errors.ts';
import type { SchemaModel } from '../schema/model.ts';
import { execute } from './execute.ts';
import type { Execution } from './execution.ts';
import { checkOwner, Ledger, type LedgerEntry } from './ledger.ts';
import type { PlannedMigration } from './plan.ts';
import {
  chosen,
  planAll,
  planAllDown,
  planDown,
  planUp,
  readable,
  refuseUnderway,
  refuseUnseen,
  staying,
  tellOutOfOrder,
  unknownTag,
} from './planning.ts';
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
  const confirmed = options.confirm && (await planAll(adapter, ledger, defined, options));
  if (confirmed) await options.confirm?.(confirmed);
  return locked(adapter, options, clock, async (run, back) => {
    for (const tag of back) options.onEvent?.({ type: 'notice', message: finished(tag) });
    const planned = await planUp(adapter, run.ledger, defined, options, back);
    refuseUnseen(planned, confirmed);
    tellOutOfOrder(planned, run.ledger, options);
    return planned;
  });
}

const finished = (tag: string): string =>
  `The rollback of "${tag}", which was interrupted, is finished. It is pending, and waits with what comes after it for the next run.`;

/** Takes back the last `count` migrations of every origin, or all after `to`, in reverse order of application. */
export async function rollback(adapter: Adapter, options: RollbackOptions = {}): Promise<RunReport> {
  const clock = performance.now();
  const ledger = await readable(adapter, options);
  const stays = staying(ledger, options);
  const first = await planAllDown(adapter, ledger, stays);
  if (first.length === 0) return report([], clock);
  if (options.confirm) await options.confirm(first);
  try {
    return await locked(adapter, { ...options, admits: refuseUnderway }, clock, async (run) => {
      const planned = await planDown(adapter, run.ledger, stays);
      refuseUnseen(planned, first);
      return planned;
    });
  } catch (error) {
    throw isSvcError(error) ? error.with({ next: goingOn(error.next, stays) }) : error;
  }
}

/** A count is from the end of the history: the same command again would take back one more for each that is back. */
function goingOn(next: readonly string[], stays: LedgerEntry | undefined): string[] {
  const command = stays ? `svc db migrate rollback --to ${stays.row.tag}` : 'svc db migrate status';
  const told = next.map((line) =>
    line.replace(/^Run the command again: /, `${command}    `).replace(/the command again\.?/, command),
  );
  return told.some((line) => line.includes(command)) ? told : [...told, command];
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
  planning: (run: Execution, back: ReadonlySet<string>) => Promise<PlannedMigration[]>,
): Promise<RunReport> {
  const { onEvent } = options;
  const finished: RunReport['migrations'][number][] = [];
  const watch: SessionOptions['watch'] = {
    started: ({ tag }) => onEvent?.({ type: 'started', tag }),
    finished: ({ tag }, { row }, statements) => {
      const status = row.status === 'rolled_back' ? 'rolled_back' : 'completed';
      const durationMs = row.duration_ms ?? 0;
      finished.push({ tag, status, durationMs, statements: statements.length });
      onEvent?.({ type: 'finished', tag, status, durationMs, statements });
    },
  };
  return underLock(adapter, { ...options, watch, onWait: () => onEvent?.({ type: 'waiting' }) }, async (run, back) => {
    const before = run.ledger.completed().at(-1)?.row.tag;
    const planned = await planning(run, back).catch((error) => {
      if (finished.length === 0 || !isSvcError(error)) throw error;
      const state = `What was interrupted is finished: ${finished.map(({ tag }) => tag).join(', ')}. Nothing else was changed.`;
      throw error.with({ state, details: { changed: true } });
    });
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

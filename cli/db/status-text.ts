import { nextStepsToAlign } from '../../core/migration/order.ts';
import type { KeptEntry } from '../../core/migration/purge.ts';
import { resolveCommands } from '../../core/migration/reconcile.ts';
import type { StatusEntry } from '../../core/migration/status.ts';
import type { CommandResult } from '../base.ts';
import { formatMinute, oneLine } from '../output.ts';

/** What is wrong with an entry that is neither completed nor pending. */
export function describeProblem({ state, step = 0, steps = 0, error, file, rollingBack }: StatusEntry): string {
  const prefix = rollingBack ? 'rollback ' : '';
  switch (state) {
    case 'failed':
      // The recorded error may already start with the step.
      return `${prefix}failed at ${error?.startsWith('step ') ? '' : `step ${Math.min(step + 1, steps)} of ${steps}${error === undefined ? '' : ': '}`}${oneLine(error ?? '')}`;
    case 'running':
      return `${prefix}running: step ${Math.min(step + 1, steps)} of ${steps}`;
    case 'interrupted':
      return `${prefix}interrupted at step ${Math.min(step + 1, steps)} of ${steps}`;
    case 'edited':
      return `edited after it was applied${file === undefined ? '' : `: ${file}`}`;
    default:
      return 'file is missing';
  }
}

/** `orders, dropped by 20261120_103000_cleanup, kept until 2026-12-20 10:30` */
export function keptText({ table, field, tag, keptUntil }: KeptEntry): string {
  const what = field === undefined ? table : `${table}.${field}`;
  return `${what}, dropped by ${tag}, kept until ${formatMinute(keptUntil)}`;
}

/** What resolves the first problem of a database. */
export function nextActions(entries: readonly StatusEntry[], outOfOrder: readonly string[]): readonly string[] {
  const failed = entries.find(({ state }) => state === 'failed');
  if (failed) return resolveCommands({ step: 0, steps: 1, ...failed }, failed.rollingBack === true);
  const rollback = entries.find((entry) => entry.state === 'interrupted' && entry.rollingBack);
  if (rollback) return [`svc db migrate resolve ${rollback.tag} --retry    completes its rollback`];
  const missing = entries.find(({ state }) => state === 'missing');
  if (missing) return [`Restore its file, or: svc db migrate export ${missing.tag}`];
  const edited = entries.find(({ state }) => state === 'edited');
  if (edited) return [`Restore ${edited.file ?? edited.tag}, and make the change in a new migration.`];
  if (outOfOrder.length > 0) return nextStepsToAlign(outOfOrder);
  return entries.some(({ state }) => state === 'pending' || state === 'interrupted') ? ['svc db migrate'] : [];
}

/** The code and exit status of the worst state. */
export function statusResult(
  entries: readonly StatusEntry[],
  outOfOrder: readonly string[],
): Pick<CommandResult, 'code' | 'exit'> {
  const states = new Set(entries.map(({ state }) => state));
  if (states.has('failed')) return { code: 'migration_half_done', exit: 6 };
  if (states.has('edited')) return { code: 'migration_edited', exit: 5 };
  if (states.has('missing')) return { code: 'migration_missing', exit: 5 };
  if (outOfOrder.length > 0) return { code: 'order_conflict', exit: 5 };
  return states.has('pending') || states.has('running') || states.has('interrupted')
    ? { code: 'pending', exit: 4 }
    : {};
}

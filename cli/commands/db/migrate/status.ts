import { Command, Option } from 'clipanion';
import { nextStepsToAlign } from '../../../../core/migration/order.ts';
import { resolveCommands } from '../../../../core/migration/reconcile.ts';
import { type StatusEntry, type StatusReport, status } from '../../../../core/migration/status.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand, forEachDatabase } from '../../../db/command.ts';
import { formatDuration, formatMinute, oneLine } from '../../../output.ts';

export default class Status extends DatabaseCommand {
  static override paths = [['db', 'migrate', 'status']];
  static override usage = Command.Usage({
    description: 'Shows applied and pending migrations.',
    details:
      'Takes no lock and writes nothing. Times are UTC. FAILED exits with 4 if a migration was interrupted, 5 if files and history differ, 6 if a migration failed.',
    examples: [
      ['Every database', 'svc db migrate status'],
      ['In CI: exits with 4 if migrations are pending', 'svc db migrate status --check'],
    ],
  });

  check = Option.Boolean('--check', false, {
    description: 'Also exits with 4 if migrations are pending.',
  });

  async run(): Promise<CommandResult> {
    const databases = await forEachDatabase(this, async (tag) => {
      const [target, defined] = await Promise.all([this.connect(tag), this.migrations(tag)]);
      const report = await status(target, defined);
      await target.connection.close();
      this.print(
        [
          headline(report, await this.label(tag)),
          ...report.entries.map((entry) => this.#line(entry)),
          ...report.outOfOrder.map((line) => `${this.colors.red('[!]')} applied out of order: ${line}`),
        ].join('\n'),
      );
      return report;
    });
    const entries = databases.flatMap((database) => database.entries);
    const problem = databases.find((one) => one.entries.some(needsAction) || one.outOfOrder.length > 0);
    const outOfOrder = databases.flatMap((database) => database.outOfOrder);
    if (problem && databases.length > 1) this.failedDatabase = problem.database;
    return {
      data: { env: (await this.runtime()).env, databases },
      nextActions: nextActions(problem?.entries ?? entries, problem?.outOfOrder ?? []),
      ...((this.check || databases.some(({ state }) => state === 'FAILED')) && checkResult(entries, outOfOrder)),
    };
  }

  #line(entry: StatusEntry): string {
    const { tag, state, appliedAt, durationMs } = entry;
    if (state === 'pending') return `[ ] ${tag}`;
    if (state === 'running') return `[>] ${tag}  ${describeProblem(entry)}`;
    if (state !== 'completed') return `${this.colors.red('[!]')} ${tag}  ${describeProblem(entry)}`;
    const when = appliedAt ? `applied ${formatMinute(appliedAt)}` : 'applied';
    const took = durationMs === undefined ? '' : `  ${formatDuration(durationMs)}`;
    return `${this.colors.green('[x]')} ${tag}  ${when}${took}`;
  }
}

function headline({ state, pending }: StatusReport, label: string): string {
  return `${state === 'PENDING' ? `PENDING ${pending}` : state}  ${label}`;
}

function describeProblem({ state, step = 0, steps = 0, error, file, rollingBack }: StatusEntry): string {
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

/** Whether a command must resolve the state. */
const needsAction = ({ state, rollingBack }: StatusEntry): boolean =>
  state === 'failed' || state === 'missing' || state === 'edited' || (state === 'interrupted' && rollingBack === true);

function nextActions(entries: readonly StatusEntry[], outOfOrder: readonly string[]): readonly string[] {
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

function checkResult(
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

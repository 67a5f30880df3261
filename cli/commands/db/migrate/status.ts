import { Command, Option } from 'clipanion';
import { type StatusEntry, type StatusReport, status } from '../../../../core/migration/status.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand, forEachDatabase } from '../../../db/command.ts';
import { describeProblem, keptText, nextActions, statusResult } from '../../../db/status-text.ts';
import { formatDuration, formatMinute } from '../../../output.ts';

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
          ...report.kept.map((one) => `[k] ${keptText(one)}`),
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
      ...((this.check || databases.some(({ state }) => state === 'FAILED')) && statusResult(entries, outOfOrder)),
    };
  }

  #line(entry: StatusEntry): string {
    const { tag, state, appliedAt, durationMs } = entry;
    if (state === 'pending') return `[ ] ${tag}`;
    if (state === 'contract') return `[c] ${tag}  waits for svc db migrate contract`;
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

/** Whether a command must resolve the state. */
const needsAction = ({ state, rollingBack }: StatusEntry): boolean =>
  state === 'failed' || state === 'missing' || state === 'edited' || (state === 'interrupted' && rollingBack === true);

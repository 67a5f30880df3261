import { Command, Option } from 'clipanion';
import { resolutions } from '../../../../core/migration/half-done.ts';
import { settled } from '../../../../core/migration/order.ts';
import { type StatusEntry, type StatusReport, status } from '../../../../core/migration/status.ts';
import type { Answer } from '../../../base.ts';
import { DatabaseCommand } from '../../../db/command.ts';
import { eachDatabase } from '../../../db/each-database.ts';
import { milliseconds, minute } from '../../../db/words.ts';
import { oneLine } from '../../../print.ts';

export default class Status extends DatabaseCommand {
  static override paths = [['db', 'migrate', 'status']];
  static override usage = Command.Usage({
    description: 'Shows what is applied and what is pending.',
    details: 'Takes no lock and writes nothing. Times are UTC.',
    examples: [
      ['Every database', 'svc db migrate status'],
      ['In a pipeline: ends with 4 while migrations are pending', 'svc db migrate status --check'],
    ],
  });

  check = Option.Boolean('--check', false, {
    description:
      'Ends with 4 where migrations are pending, 5 where files and history differ, 6 where one is half done.',
  });

  async run(): Promise<Answer> {
    const databases = await eachDatabase(this, async (tag) => {
      const [adapter, defined] = await Promise.all([this.connect(tag), this.migrations(tag)]);
      const report = await status(adapter, defined);
      await adapter.connection.close();
      this.print(
        [
          headline(report, await this.label(tag)),
          ...report.entries.map((entry) => this.#line(entry)),
          ...report.disorder.map((line) => `${this.colors.red('[!]')} the order of application: ${line}`),
        ].join('\n'),
      );
      return report;
    });
    const entries = databases.flatMap((database) => database.entries);
    const troubled = databases.find((one) => one.entries.some(isTrouble) || one.disorder.length > 0);
    const disorder = databases.flatMap((database) => database.disorder);
    if (troubled && databases.length > 1) this.about = troubled.database;
    return {
      data: { env: (await this.runtime()).env, databases },
      nextActions: nextActions(troubled?.entries ?? entries, troubled?.disorder ?? []),
      ...(this.check && outcome(entries, disorder)),
    };
  }

  #line(entry: StatusEntry): string {
    const { tag, state, appliedAt, durationMs } = entry;
    if (state === 'pending') return `[ ] ${tag}`;
    if (state === 'running') return `[>] ${tag}  ${trouble(entry)}`;
    if (state !== 'completed') return `${this.colors.red('[!]')} ${tag}  ${trouble(entry)}`;
    const when = appliedAt ? `applied ${minute(appliedAt)}` : 'applied';
    const took = durationMs === undefined ? '' : `  ${milliseconds(durationMs)}`;
    return `${this.colors.green('[x]')} ${tag}  ${when}${took}`;
  }
}

function headline({ state, pending }: StatusReport, label: string): string {
  return `${state === 'PENDING' ? `PENDING ${pending}` : state}  ${label}`;
}

function trouble({ state, step = 0, steps = 0, error, file, back }: StatusEntry): string {
  const way = back ? 'rollback ' : '';
  switch (state) {
    case 'failed':
      // What the engine recorded begins with the step.
      return `${way}failed at ${error?.startsWith('step ') ? '' : `step ${Math.min(step + 1, steps)} of ${steps}${error === undefined ? '' : ': '}`}${oneLine(error ?? '')}`;
    case 'running':
      return `${way}running: step ${Math.min(step + 1, steps)} of ${steps}`;
    case 'interrupted':
      return `${way}interrupted at step ${Math.min(step + 1, steps)} of ${steps}`;
    case 'edited':
      return `edited after it was applied${file === undefined ? '' : `: ${file}`}`;
    default:
      return 'its file is missing';
  }
}

/** What one command on one database mends. */
const isTrouble = ({ state, back }: StatusEntry): boolean =>
  state === 'failed' || state === 'missing' || state === 'edited' || (state === 'interrupted' && back === true);

function nextActions(entries: readonly StatusEntry[], disorder: readonly string[]): readonly string[] {
  const failed = entries.find(({ state }) => state === 'failed');
  if (failed) return resolutions({ step: 0, steps: 1, ...failed }, failed.back === true);
  const back = entries.find((entry) => entry.state === 'interrupted' && entry.back);
  if (back) return [`svc db migrate resolve ${back.tag} --retry    finishes its rollback`];
  const missing = entries.find(({ state }) => state === 'missing');
  if (missing) return [`Restore its file, or: svc db migrate export ${missing.tag}`];
  const edited = entries.find(({ state }) => state === 'edited');
  if (edited) return [`Restore ${edited.file ?? edited.tag}, and put the change into a new migration.`];
  if (disorder.length > 0) return settled(disorder);
  return entries.some(({ state }) => state === 'pending' || state === 'interrupted') ? ['svc db migrate'] : [];
}

function outcome(entries: readonly StatusEntry[], disorder: readonly string[]): Pick<Answer, 'code' | 'exit'> {
  const states = new Set(entries.map(({ state }) => state));
  if (states.has('failed')) return { code: 'migration_half_done', exit: 6 };
  if (states.has('edited')) return { code: 'migration_edited', exit: 5 };
  if (states.has('missing')) return { code: 'migration_missing', exit: 5 };
  if (disorder.length > 0) return { code: 'order_conflict', exit: 5 };
  return states.has('pending') || states.has('running') || states.has('interrupted')
    ? { code: 'pending', exit: 4 }
    : {};
}

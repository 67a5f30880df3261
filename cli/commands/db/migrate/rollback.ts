import { Command, Option } from 'clipanion';
import { SvcError } from '../../../../core/errors.ts';
import { planRollback } from '../../../../core/migration/planning.ts';
import { rollback } from '../../../../core/migration/run.ts';
import type { Answer } from '../../../base.ts';
import { ONE_DATABASE } from '../../../db/command.ts';
import { consentToRollback, type Destroyed, destroyedBy } from '../../../db/consent.ts';
import { MigratorCommand } from '../../../db/migrator-command.ts';
import { countOf } from '../../../db/numbers.ts';
import { planData, planText, preambleData } from '../../../db/plan-text.ts';
import { progress } from '../../../db/progress.ts';
import { counted, milliseconds } from '../../../db/words.ts';

export default class Rollback extends MigratorCommand {
  static override paths = [['db', 'migrate', 'rollback']];
  static override usage = Command.Usage({
    description: 'Takes back the last migrations.',
    details:
      'One without -n. Migrations of every origin count, in reverse order of application. Rows that a drop destroyed do not come back.',
    examples: [
      ['The last one', 'svc db migrate rollback'],
      ['The last three', 'svc db migrate rollback -n 3'],
      ['Everything after one', 'svc db migrate rollback --to 20261120_103000_orders'],
    ],
  });

  override db = Option.String('--db', { description: ONE_DATABASE });
  count = Option.String('-n,--count', { description: 'How many; default 1.' });
  to = Option.String('--to', { description: 'The migration to go back to, which stays.' });
  dryRun = Option.Boolean('--dry-run', false, { description: 'Prints the statements and runs nothing.' });
  yes = Option.Boolean('--yes,-y', false, { description: 'Answers questions, and lets into a protected environment.' });
  verbose = Option.Boolean('-v,--verbose', false, { description: 'Shows every statement.' });

  async run(): Promise<Answer> {
    const count = countOf('-n', this.count);
    if (count !== undefined && this.to !== undefined) {
      throw new SvcError('usage', '-n and --to say two different things.', {
        state: 'Nothing was changed.',
        next: ['Use one of them.'],
      });
    }
    const tag = await this.oneTag('rollback');
    const label = await this.label(tag);
    const adapter = await this.connect(tag);
    const which = { ...(count !== undefined && { count }), ...(this.to !== undefined && { to: this.to }) };
    if (this.dryRun) {
      const planned = await planRollback(adapter, which);
      this.print(
        planText(
          `${label}: ${counted(planned.length, 'migration')} back`,
          planned,
          this.context.stdout,
          adapter.connection.preamble,
        ),
      );
      return { data: { database: tag, ...preambleData(adapter.connection), plan: planData(planned) } };
    }
    const consent = consentToRollback(this, label, this.yes);
    let destroyed: readonly Destroyed[] = [];
    const report = await rollback(adapter, {
      ...which,
      signal: this.signal,
      confirm: async (plan) => {
        destroyed = destroyedBy(plan);
        await consent(plan);
      },
      onEvent: progress(this, label, this.verbose),
      ...this.lock,
    });
    const { migrations, steps, durationMs } = report;
    this.print(
      migrations.length === 0
        ? `Nothing to roll back in ${label}.`
        : `${counted(migrations.length, 'migration')} rolled back, ${counted(steps, 'step')}, ${milliseconds(durationMs)}`,
    );
    return { data: { database: tag, ...report, destroyed } };
  }
}

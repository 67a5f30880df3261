import { Command, Option } from 'clipanion';
import { SvcError } from '../../../../core/errors.ts';
import { rollback } from '../../../../core/migration/migrate.ts';
import { previewRollback } from '../../../../core/migration/preview.ts';
import type { CommandResult } from '../../../base.ts';
import { countRowsOption, PlanCommand, SINGLE_DATABASE } from '../../../db/command.ts';
import { consentToRollback, type DestructiveStatement, destructiveStatements } from '../../../db/consent.ts';
import { planData, planText, preambleData } from '../../../db/plan-text.ts';
import { progress } from '../../../db/progress.ts';
import { parseCount } from '../../../flag-values.ts';
import { formatDuration, plural } from '../../../output.ts';

export default class Rollback extends PlanCommand {
  static override paths = [['db', 'migrate', 'rollback']];
  static override usage = Command.Usage({
    description: 'Rolls back the last migrations.',
    details:
      'Without -n, rolls back one. Includes migrations of the API, in reverse order of application. Data that a drop destroyed is not restored.',
    examples: [
      ['The last one', 'svc db migrate rollback'],
      ['The last three', 'svc db migrate rollback -n 3'],
      ['Without a terminal, although tables have rows', 'svc db migrate rollback --allow-destructive'],
      ['Everything after one', 'svc db migrate rollback --to 20261120_103000_orders'],
    ],
  });

  override db = Option.String('--db', { description: SINGLE_DATABASE });
  count = Option.String('-n,--count', { description: 'The number of migrations. Default: 1.' });
  to = Option.String('--to', { description: 'The migration to roll back to, which stays applied.' });
  override dryRun = Option.Boolean('--dry-run', false, { description: 'Prints the statements without running them.' });
  override countRows = countRowsOption();
  yes = Option.Boolean('-y,--yes', false, { description: 'Skips prompts and allows a protected environment.' });
  allowDestructive = Option.Boolean('--allow-destructive', false, {
    description: 'Allows statements that destroy data, without a prompt.',
  });
  verbose = Option.Boolean('-v,--verbose', false, { description: 'Shows every statement.' });

  async run(): Promise<CommandResult> {
    const count = parseCount('-n', this.count);
    if (count !== undefined && this.to !== undefined) {
      throw new SvcError('usage', '-n and --to cannot be combined.', {
        state: 'Nothing was changed.',
        next: ['Use one of them.'],
      });
    }
    const tag = await this.singleTag('rollback');
    const label = await this.label(tag);
    const target = await this.connect(tag);
    const which = { ...(count !== undefined && { count }), ...(this.to !== undefined && { to: this.to }) };
    if (this.dryRun) {
      const planned = await previewRollback(target, { ...which, ...(await this.ask()) });
      this.print(
        planText(
          `${label}: ${plural(planned.length, 'migration')} to roll back`,
          planned.map((one) => ({ ...one, dialect: target.dialect })),
          this.context.stdout,
          target.connection.preamble,
        ),
      );
      return { data: { database: tag, ...preambleData(target.connection), plan: planData(planned) } };
    }
    const consent = consentToRollback(this, label, target, this);
    let destroyed: readonly DestructiveStatement[] = [];
    const report = await rollback(target, {
      ...which,
      ...consent,
      signal: this.signal,
      confirm: async (plan) => {
        destroyed = destructiveStatements(plan);
        await consent.confirm(plan);
      },
      onEvent: progress(this, label, this.verbose),
      ...this.lock,
      ...(await this.ask()),
    });
    const { migrations, steps, durationMs } = report;
    this.print(
      migrations.length === 0
        ? `Nothing to roll back in ${label}.`
        : `${plural(migrations.length, 'migration')} rolled back, ${plural(steps, 'step')}, ${formatDuration(durationMs)}`,
    );
    return { data: { database: tag, ...report, destroyed } };
  }
}

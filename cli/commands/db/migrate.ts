import { Command, Option } from 'clipanion';
import { plan } from '../../../core/migration/planning.ts';
import { migrate, type RunReport } from '../../../core/migration/run.ts';
import type { Answer } from '../../base.ts';
import { consentToMigrate } from '../../db/consent.ts';
import { eachDatabase } from '../../db/each-database.ts';
import { MigratorCommand } from '../../db/migrator-command.ts';
import { planData, planText, preambleData } from '../../db/plan-text.ts';
import { progress } from '../../db/progress.ts';
import { counted, milliseconds } from '../../db/words.ts';

export default class Migrate extends MigratorCommand {
  static override paths = [['db', 'migrate']];
  static override usage = Command.Usage({
    description: 'Applies pending migrations.',
    details:
      'Each migration commits together with its row in the history. Running it again applies nothing twice; two at once wait for one another.',
    examples: [
      ['What is pending, in the linked environment', 'svc db migrate'],
      [
        'In another environment, up to one migration',
        'svc db migrate --env staging --db main --to 20261120_103000_orders',
      ],
      ['Only show the statements', 'svc db migrate --dry-run'],
    ],
  });

  to = Option.String('--to', { description: 'The last migration to apply.' });
  dryRun = Option.Boolean('--dry-run', false, { description: 'Prints the statements and runs nothing.' });
  yes = Option.Boolean('--yes,-y', false, { description: 'Answers questions, and lets into a protected environment.' });
  allowDestructive = Option.Boolean('--allow-destructive', false, {
    description: 'Allows statements that destroy data.',
  });
  adopt = Option.Boolean('--adopt', false, {
    description: 'Takes over a database of another product, tag or environment.',
  });
  verbose = Option.Boolean('-v,--verbose', false, { description: 'Shows every statement.' });

  async run(): Promise<Answer> {
    if (this.to !== undefined) await this.oneTag('--to');
    if (this.adopt) await this.oneTag('--adopt');
    const databases = await eachDatabase(this, (tag) => (this.dryRun ? this.#show(tag) : this.#apply(tag)));
    return { data: { databases } };
  }

  async #show(tag: string): Promise<object> {
    const adapter = await this.connect(tag);
    const planned = await plan(adapter, await this.migrations(tag), { ...this.#options(), allowDestructive: true });
    this.print(
      planText(
        `${await this.label(tag)}: ${counted(planned.length, 'migration')}`,
        planned,
        this.context.stdout,
        adapter.connection.preamble,
      ),
    );
    return { ...preambleData(adapter.connection), plan: planData(planned) };
  }

  async #apply(tag: string): Promise<RunReport> {
    const label = await this.label(tag);
    const [adapter, defined] = await Promise.all([this.connect(tag), this.migrations(tag)]);
    const confirm = await consentToMigrate(this, label, this);
    const report = await migrate(adapter, defined, {
      ...this.#options(),
      allowDestructive: this.allowDestructive,
      signal: this.signal,
      onEvent: progress(this, label, this.verbose),
      ...this.lock,
      ...(confirm && { confirm }),
    });
    await adapter.connection.close();
    const { migrations, steps, durationMs } = report;
    this.print(
      migrations.length === 0
        ? `Nothing to do in ${label}.`
        : `${counted(migrations.length, 'migration')}, ${counted(steps, 'step')}, ${milliseconds(durationMs)}`,
    );
    return report;
  }

  #options(): { to?: string; adopt: boolean } {
    return { ...(this.to !== undefined && { to: this.to }), adopt: this.adopt };
  }
}

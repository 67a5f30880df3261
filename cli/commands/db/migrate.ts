import { Command, Option } from 'clipanion';
import { lintLines, lintMigrations, withRows } from '../../../config/load/lint.ts';
import { migrate, type RunReport } from '../../../core/migration/migrate.ts';
import { previewMigrate } from '../../../core/migration/preview.ts';
import type { CommandResult } from '../../base.ts';
import { countRowsOption, forEachDatabase, PlanCommand } from '../../db/command.ts';
import { consentToMigrate } from '../../db/consent.ts';
import { neededPermissionData, planData, planText, preambleData } from '../../db/plan-text.ts';
import { progress } from '../../db/progress.ts';
import { parseAge } from '../../flag-values.ts';
import { formatDuration, plural } from '../../output.ts';

export default class Migrate extends PlanCommand {
  static override paths = [['db', 'migrate']];
  static override usage = Command.Usage({
    description: 'Applies pending migrations.',
    details:
      'Runs each pending migration once and records it in the history. Concurrent runs wait for each other. Subcommands: svc db migrate status, rollback, contract, purge, resolve, create, export and baseline.',
    examples: [
      ['All pending migrations in the linked environment', 'svc db migrate'],
      [
        'Up to one migration, in another environment',
        'svc db migrate --env staging --db main --to 20261120_103000_orders',
      ],
      ['Only show the statements', 'svc db migrate --dry-run'],
      ['A rollback brings dropped data back for 30 days', 'svc db migrate --keep 30d'],
    ],
  });

  to = Option.String('--to', { description: 'Stops after this migration.' });
  override dryRun = Option.Boolean('--dry-run', false, { description: 'Prints the statements without running them.' });
  override countRows = countRowsOption();
  yes = Option.Boolean('-y,--yes', false, { description: 'Skips prompts and allows a protected environment.' });
  allowDestructive = Option.Boolean('--allow-destructive', false, {
    description: 'Allows statements that destroy data.',
  });
  keep = Option.String('--keep', {
    description:
      'Keeps dropped tables and fields for this long, such as 30d, for a rollback. Then: svc db migrate purge',
  });
  adopt = Option.Boolean('--adopt', false, {
    description: 'Takes over a database that belongs to another product, tag or environment.',
  });
  /** Applies those that complete an earlier one. */
  protected readonly contract: boolean = false;
  verbose = Option.Boolean('-v,--verbose', false, { description: 'Shows every statement.' });

  async run(): Promise<CommandResult> {
    if (this.to !== undefined) await this.singleTag('--to');
    if (this.adopt) await this.singleTag('--adopt');
    const databases = await forEachDatabase(this, (tag) => (this.dryRun ? this.#show(tag) : this.#apply(tag)));
    return { data: { databases } };
  }

  async #show(tag: string): Promise<object> {
    const target = await this.connect(tag);
    const defined = await this.migrations(tag);
    const previewed = await previewMigrate(target, defined, {
      ...this.#options(),
      ...(await this.ask()),
      allowDestructive: true,
    });
    const fresh = previewed.filter(({ isInterrupted }) => !isInterrupted);
    const runs = new Set(fresh.map(({ migration }) => migration.tag));
    const report = await lintMigrations(
      await this.runtime(),
      tag,
      defined.map(({ migration }) => migration),
      (migration) => runs.has(migration.tag),
    );
    const findings = await withRows(target.connection, report.findings);
    const planned = previewed.map((one) => ({ ...one, lint: lintLines(findings, one.migration.tag) }));
    this.print(
      planText(
        `${await this.label(tag)}: ${plural(planned.length, 'migration')}`,
        planned.map((one) => ({ ...one, dialect: target.dialect })),
        this.context.stdout,
        target.connection.preamble,
      ),
    );
    return { ...preambleData(target.connection), ...neededPermissionData(planned), plan: planData(planned) };
  }

  async #apply(tag: string): Promise<RunReport> {
    const label = await this.label(tag);
    const [target, defined] = await Promise.all([this.connect(tag), this.migrations(tag)]);
    const confirm = await consentToMigrate(this, label, this);
    const report = await migrate(target, defined, {
      ...this.#options(),
      allowDestructive: this.allowDestructive,
      signal: this.signal,
      onEvent: progress(this, label, this.verbose),
      ...this.lock,
      ...(await this.ask()),
      ...(confirm && { confirm }),
    });
    await target.connection.close();
    const { migrations, steps, durationMs } = report;
    this.print(
      migrations.length === 0
        ? `Nothing to ${this.contract ? 'contract' : 'do'} in ${label}.`
        : `${plural(migrations.length, 'migration')}, ${plural(steps, 'step')}, ${formatDuration(durationMs)}`,
    );
    const { contracts } = report;
    const when = this.contract ? 'first svc db migrate' : 'once no program uses the old names, svc db migrate contract';
    if (contracts.length > 0) this.note(`${contracts.join(', ')}: ${when}`);
    return report;
  }

  #options(): { to?: string; keepMs?: number; adopt: boolean; contract: boolean } {
    return {
      contract: this.contract,
      ...(this.to !== undefined && { to: this.to }),
      ...(this.keep !== undefined && { keepMs: parseAge('--keep', this.keep, 'Nothing was changed.') }),
      adopt: this.adopt,
    };
  }
}

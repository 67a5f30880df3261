import { Command, Option } from 'clipanion';
import { type KeptEntry, previewPurge, purge } from '../../../../core/migration/purge.ts';
import type { CommandResult } from '../../../base.ts';
import { countRowsOption, forEachDatabase, PlanCommand } from '../../../db/command.ts';
import { consentToMigrate } from '../../../db/consent.ts';
import { planData, planText, preambleData } from '../../../db/plan-text.ts';
import { progress } from '../../../db/progress.ts';
import { keptText } from '../../../db/status-text.ts';

export default class Purge extends PlanCommand {
  static override paths = [['db', 'migrate', 'purge']];
  static override usage = Command.Usage({
    description: 'Drops what --keep has kept long enough.',
    details:
      'What svc db migrate --keep has kept is dropped for good once its time has come. svc db migrate status lists it. A rollback then creates it again without its data.',
    examples: [
      ['Only show what is due', 'svc db migrate purge --dry-run'],
      ['In a scheduled job', 'svc db migrate purge --allow-destructive'],
      ['Also what is to be kept longer', 'svc db migrate purge --all'],
    ],
  });

  all = Option.Boolean('--all', false, { description: 'Also drops what is to be kept longer.' });
  override dryRun = Option.Boolean('--dry-run', false, { description: 'Prints the statements without running them.' });
  override countRows = countRowsOption();
  yes = Option.Boolean('-y,--yes', false, { description: 'Skips prompts and allows a protected environment.' });
  allowDestructive = Option.Boolean('--allow-destructive', false, {
    description: 'Allows statements that destroy data.',
  });

  async run(): Promise<CommandResult> {
    const databases = await forEachDatabase(this, (tag) => (this.dryRun ? this.#show(tag) : this.#purge(tag)));
    return { data: { databases } };
  }

  async #show(tag: string): Promise<object> {
    const target = await this.connect(tag);
    const { kept, planned } = await previewPurge(target, { all: this.all, ...(await this.ask()) });
    const label = await this.label(tag);
    const steps = planned.map((one) => ({ ...one, dialect: target.dialect }));
    this.print(
      kept.length === 0
        ? `Nothing to purge in ${label}.`
        : planText(`${label}: purge`, steps, this.context.stdout, target.connection.preamble),
    );
    return { ...preambleData(target.connection), kept, plan: planData(planned) };
  }

  async #purge(tag: string): Promise<{ readonly purged: readonly KeptEntry[] }> {
    const label = await this.label(tag);
    const target = await this.connect(tag);
    const confirm = await consentToMigrate(this, label, this);
    const purged = await purge(target, {
      all: this.all,
      allowDestructive: this.allowDestructive,
      signal: this.signal,
      onEvent: progress(this, label, false),
      ...this.lock,
      ...(await this.ask()),
      ...(confirm && { confirm }),
    });
    await target.connection.close();
    this.print(
      purged.length === 0
        ? `Nothing to purge in ${label}.`
        : purged.map((one) => `dropped ${keptText(one)}`).join('\n'),
    );
    return { purged };
  }
}

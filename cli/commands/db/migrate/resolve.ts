import { Command, Option } from 'clipanion';
import { SvcError } from '../../../../core/errors.ts';
import { type Resolution, resolve } from '../../../../core/migration/resolve.ts';
import type { Answer } from '../../../base.ts';
import { ONE_DATABASE } from '../../../db/command.ts';
import { MigratorCommand } from '../../../db/migrator-command.ts';

export default class Resolve extends MigratorCommand {
  static override paths = [['db', 'migrate', 'resolve']];
  static override usage = Command.Usage({
    description: 'Decides about a migration that stopped half-way.',
    details:
      'The decision is kept in _svc_audit. --forget takes the migration out of the history: it is pending again. Of a rollback that stopped half-way --applied says that its steps were undone, --rolled-back that the rest of it was done.',
    examples: [
      ['Run the steps that are missing', 'svc db migrate resolve 20261120_103000_orders --retry'],
      ['The rest was done by hand', 'svc db migrate resolve 20261120_103000_orders --applied'],
    ],
  });

  override db = Option.String('--db', { description: ONE_DATABASE });
  tag = Option.String({ required: true });
  retry = Option.Boolean('--retry', false, { description: 'Runs the rest.' });
  applied = Option.Boolean('--applied', false, { description: 'It is applied: what was missing was done by hand.' });
  rolledBack = Option.Boolean('--rolled-back', false, {
    description:
      'It is rolled back: what there was of it was undone by hand. Of an applied one the catalog has to show that.',
  });
  failed = Option.Boolean('--failed', false, { description: 'Marks it as failed: nothing runs until it is resolved.' });
  forget = Option.Boolean('--forget', false, { description: 'Removes it from the history.' });
  yes = Option.Boolean('--yes,-y', false, { description: 'Lets into a protected environment.' });

  async run(): Promise<Answer> {
    const action = this.#action();
    const database = await this.oneTag('resolve');
    await this.refuseProtected(this.yes);
    const adapter = await this.connect(database);
    const report = await resolve(adapter, this.tag, action, {
      signal: this.signal,
      defined: await this.migrations(database),
      ...this.lock,
    });
    this.print(`${report.tag} is ${report.status.replace('_', ' ')} in ${await this.label(database)}.`);
    return { data: { database, ...report }, nextActions: ['svc db migrate status'] };
  }

  #action(): Resolution {
    const flags: Record<Resolution, boolean> = {
      retry: this.retry,
      applied: this.applied,
      'rolled-back': this.rolledBack,
      failed: this.failed,
      forget: this.forget,
    };
    const said = (Object.keys(flags) as Resolution[]).filter((action) => flags[action]);
    const [action] = said;
    if (action !== undefined && said.length === 1) return action;
    throw new SvcError('usage', 'resolve needs exactly one decision.', {
      why: said.length === 0 ? 'There is none.' : `There are ${said.map((flag) => `--${flag}`).join(' and ')}.`,
      state: 'Nothing was changed.',
      next: ['--retry, --applied, --rolled-back, --failed or --forget'],
    });
  }
}

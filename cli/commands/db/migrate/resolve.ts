import { Command, Option } from 'clipanion';
import { SvcError } from '../../../../core/errors.ts';
import { type Resolution, resolveMigration } from '../../../../core/migration/resolve.ts';
import { assertNoAgent } from '../../../agent.ts';
import type { CommandResult } from '../../../base.ts';
import { PlanCommand, SINGLE_DATABASE } from '../../../db/command.ts';

export default class Resolve extends PlanCommand {
  static override paths = [['db', 'migrate', 'resolve']];
  static override usage = Command.Usage({
    description: 'Resolves a migration that stopped halfway.',
    details:
      'The decision is recorded in _svc_audit. For a rollback that stopped halfway, --applied means that its finished steps were reverted manually, and --rolled-back that the remaining ones were completed.',
    examples: [
      ['Run the remaining steps', 'svc db migrate resolve 20261120_103000_orders --retry'],
      ['The remaining steps were done manually', 'svc db migrate resolve 20261120_103000_orders --applied'],
    ],
  });

  override db = Option.String('--db', { description: SINGLE_DATABASE });
  tag = Option.String({ required: true });
  retry = Option.Boolean('--retry', false, { description: 'Runs the remaining steps.' });
  applied = Option.Boolean('--applied', false, {
    description: 'Marks it as applied: the remaining steps were done manually.',
  });
  rolledBack = Option.Boolean('--rolled-back', false, {
    description:
      'Marks it as rolled back: its finished steps were reverted manually. For an applied migration, the catalog must confirm this.',
  });
  failed = Option.Boolean('--failed', false, {
    description: 'Marks it as failed: no migration runs until it is resolved.',
  });
  forget = Option.Boolean('--forget', false, {
    description: 'Removes it from the history, so that it is pending again.',
  });
  yes = Option.Boolean('-y,--yes', false, { description: 'Allows a protected environment.' });

  async run(): Promise<CommandResult> {
    const action = this.#action();
    const database = await this.singleTag('resolve');
    assertNoAgent(await this.runtime(), 'decide about a migration', true);
    await this.assertNotProtected(this.yes);
    const target = await this.connect(database);
    const report = await resolveMigration(target, this.tag, action, {
      signal: this.signal,
      defined: await this.migrations(database),
      ...this.lock,
      ...(await this.ask()),
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
    const selected = (Object.keys(flags) as Resolution[]).filter((action) => flags[action]);
    const [action] = selected;
    if (action !== undefined && selected.length === 1) return action;
    throw new SvcError('usage', 'resolve needs exactly one action.', {
      why: selected.length === 0 ? 'No action is set.' : `Set: ${selected.map((flag) => `--${flag}`).join(' and ')}.`,
      state: 'Nothing was changed.',
      next: ['--retry, --applied, --rolled-back, --failed or --forget'],
    });
  }
}

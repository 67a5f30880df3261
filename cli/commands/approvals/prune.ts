import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../config/load/runtime.ts';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { SvcError } from '../../../core/errors.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import type { CommandResult } from '../../base.ts';
import { parseAge } from '../../flag-values.ts';
import { plural } from '../../output.ts';
import { confirm } from '../../prompt.ts';

export default class ApprovalsPrune extends ApprovalsCommand {
  static override paths = [['approvals', 'prune']];
  static override usage = Command.Usage({
    description: 'Removes old decided requests with their audit, and old ended executions.',
    details: 'Keeps waiting requests, running executions, and approved calls that may still run.',
    examples: [['Older than a quarter', 'svc approvals prune --older-than 90d --yes']],
  });

  olderThan = Option.String('--older-than', { required: true, description: 'Age such as 12h, 90d or 4w.' });
  yes = Option.Boolean('--yes', false, { description: 'Skips the confirmation.' });

  async work(approvals: Approvals, runtime: Runtime): Promise<CommandResult> {
    const olderThanMs = parseAge('--older-than', this.olderThan);
    const message = `Remove decided requests and ended executions older than ${this.olderThan}, with their audit?`;
    const flag = `svc approvals prune --older-than ${this.olderThan} --yes`;
    if (!this.yes && !(await confirm(this, { message, flag }))) {
      throw new SvcError('declined', 'Nothing was removed.');
    }
    const removed = await approvals.prune({ olderThanMs });
    const { Agents } = await import('../../../config/sdk/agents.ts');
    const agents = new Agents(async () => runtime);
    try {
      const executions = await agents.prune({ olderThanMs });
      this.print(`${plural(removed, 'request')} and ${plural(executions, 'execution')} removed`);
      return { data: { removed, executions } };
    } finally {
      await agents.close();
    }
  }
}

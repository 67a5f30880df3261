import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import type { Runtime } from '../../../config/runtime.ts';
import { SvcError } from '../../../core/errors.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { durationOf } from '../../approvals/moments.ts';
import { confirm } from '../../ask.ts';
import type { Answer } from '../../base.ts';
import { counted } from '../../db/words.ts';

export default class ApprovalsPrune extends ApprovalsCommand {
  static override paths = [['approvals', 'prune']];
  static override usage = Command.Usage({
    description: 'Removes requests that are long over, with their audit, and executions that have long ended.',
    details: 'What waits or runs, and what was approved and has not run, stays.',
    examples: [['What is over for a quarter', 'svc approvals prune --older-than 90d --yes']],
  });

  olderThan = Option.String('--older-than', { required: true, description: 'As 12h, 90d or 4w.' });
  yes = Option.Boolean('--yes', false, { description: 'Does not ask.' });

  async work(approvals: Approvals, runtime: Runtime): Promise<Answer> {
    const olderThanMs = durationOf('--older-than', this.olderThan);
    const message = `Remove what began more than ${this.olderThan} ago and is over? Its audit goes with it.`;
    if (!this.yes && !(await confirm(this, { message, flag: '--yes' }))) {
      throw new SvcError('declined', 'Nothing was removed.');
    }
    const removed = await approvals.prune({ olderThanMs });
    const { Agents } = await import('../../../config/agents.ts');
    const agents = new Agents(async () => runtime);
    try {
      const executions = await agents.prune({ olderThanMs });
      this.print(`${counted(removed, 'request')} and ${counted(executions, 'execution')} removed`);
      return { data: { removed, executions } };
    } finally {
      await agents.close();
    }
  }
}

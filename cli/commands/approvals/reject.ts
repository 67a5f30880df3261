import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import { SvcError } from '../../../core/errors.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { decide, look, picked } from '../../approvals/decide.ts';
import { canAsk, confirm, words } from '../../ask.ts';
import type { Answer } from '../../base.ts';

export default class ApprovalsReject extends ApprovalsCommand {
  static override paths = [['approvals', 'reject']];
  static override usage = Command.Usage({
    description: 'Keeps a tool call from running; the agent is told the reason.',
    details: 'On a terminal the whole request is shown first, and without an id one can be picked.',
    examples: [
      ['With a reason', "svc approvals reject apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --reason 'Paid back yesterday'"],
    ],
  });

  requestId = Option.String({ required: false });
  reason = Option.String('--reason', { description: 'Told to the agent, and kept with the decision.' });
  shown = Option.String('--shown', {
    description: 'For requests with sensitive parameters: what `show --reveal --json` gave.',
  });
  yes = Option.Boolean('--yes', false, { description: 'Does not ask.' });

  async work(approvals: Approvals): Promise<Answer> {
    const requestId = await picked(this, approvals, this.requestId);
    const record = await look(this, approvals, requestId);
    let { reason } = this;
    if (canAsk(this) && !this.yes && record.status === 'waiting') {
      reason ??= await words(this, { message: 'Why not? The agent is told:', flag: '--reason' });
      if (!(await confirm(this, { message: 'Keep it from running?', flag: '--yes' }))) {
        throw new SvcError('declined', 'Not rejected.', { state: 'The request keeps waiting.' });
      }
    }
    const shown = this.shown ?? record.shown;
    return decide(this, approvals, requestId, {
      approve: false,
      ...(reason !== undefined && { reason }),
      ...(shown !== undefined && { shown }),
    });
  }
}

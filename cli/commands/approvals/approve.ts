import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import { displayed } from '../../../core/approval/display.ts';
import { SvcError } from '../../../core/errors.ts';
import { changesOf } from '../../approvals/changes.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { decide, look, picked } from '../../approvals/decide.ts';
import { canAsk, confirm } from '../../ask.ts';
import type { Answer } from '../../base.ts';

export default class ApprovalsApprove extends ApprovalsCommand {
  static override paths = [['approvals', 'approve']];
  static override usage = Command.Usage({
    description: 'Lets a tool call run, as it was asked for or with changed parameters.',
    details: 'On a terminal the whole request is shown first, and without an id one can be picked.',
    examples: [
      ['As it was asked', 'svc approvals approve apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --yes'],
      ['With less', 'svc approvals approve apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --set amount=15'],
      ['One of those that wait', 'svc approvals approve'],
    ],
  });

  requestId = Option.String({ required: false });
  set = Option.Array('--set', [], {
    description: '<parameter>=<value>: changes that parameter, in its own type; may be repeated.',
  });
  reason = Option.String('--reason', { description: 'Kept with the decision.' });
  shown = Option.String('--shown', {
    description: 'For requests with sensitive parameters: what `show --reveal --json` gave.',
  });
  yes = Option.Boolean('--yes', false, { description: 'Does not ask.' });

  async work(approvals: Approvals): Promise<Answer> {
    const requestId = await picked(this, approvals, this.requestId);
    const record = await look(this, approvals, requestId);
    const modifiedParams = changesOf(this.set, record.definition?.schema);
    if (canAsk(this) && !this.yes && record.status === 'waiting') {
      const change = modifiedParams ? ` with ${displayed(JSON.stringify(modifiedParams))}` : '';
      if (!(await confirm(this, { message: `Let it run${change}?`, flag: '--yes' }))) {
        throw new SvcError('declined', 'Not approved.', { state: 'The request keeps waiting.' });
      }
    }
    const shown = this.shown ?? record.shown;
    return decide(this, approvals, requestId, {
      approve: true,
      ...(this.reason !== undefined && { reason: this.reason }),
      ...(modifiedParams && { modifiedParams }),
      ...(shown !== undefined && { shown }),
    });
  }
}

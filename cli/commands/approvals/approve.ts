import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { displayText } from '../../../core/approval/display.ts';
import { SvcError } from '../../../core/errors.ts';
import {
  ApprovalsCommand,
  parseModifiedParams,
  pickRequest,
  showRequest,
  submitDecision,
} from '../../approvals/decide.ts';
import type { CommandResult } from '../../base.ts';
import { canPrompt, confirm } from '../../prompt.ts';

export default class ApprovalsApprove extends ApprovalsCommand {
  static override paths = [['approvals', 'approve']];
  static override usage = Command.Usage({
    description: 'Approves a tool call, optionally with changed parameters.',
    details: 'In a terminal, shows the full request first. Without an id, lets you pick one.',
    examples: [
      ['Approve as requested', 'svc approvals approve apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --yes'],
      [
        'Approve with a changed parameter',
        'svc approvals approve apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --set amount=15',
      ],
      ['Choose from the waiting requests', 'svc approvals approve'],
    ],
  });

  requestId = Option.String({ required: false });
  set = Option.Array('--set', [], {
    description: 'Changes a parameter. Repeatable.',
  });
  reason = Option.String('--reason', { description: 'The reason, stored with the decision.' });
  reviewToken = Option.String('--review-token', {
    description: 'For sensitive parameters: the reviewToken from `show --reveal --json`.',
  });
  yes = Option.Boolean('--yes', false, { description: 'Skips the confirmation.' });

  async work(approvals: Approvals): Promise<CommandResult> {
    const requestId = await pickRequest(this, approvals, this.requestId);
    const record = await showRequest(this, approvals, requestId);
    const modifiedParams = parseModifiedParams(this.set, record.definition?.schema);
    if (canPrompt(this) && !this.yes && record.status === 'waiting') {
      const change = modifiedParams ? ` with ${displayText(JSON.stringify(modifiedParams))}` : '';
      if (!(await confirm(this, { message: `Approve${change}?`, flag: '--yes' }))) {
        throw new SvcError('declined', 'The request was not approved.', { state: 'The request is still waiting.' });
      }
    }
    const reviewToken = this.reviewToken ?? record.reviewToken;
    return submitDecision(this, approvals, requestId, {
      approve: true,
      ...(this.reason !== undefined && { reason: this.reason }),
      ...(modifiedParams && { modifiedParams }),
      ...(reviewToken !== undefined && { reviewToken }),
    });
  }
}

import { Command, Option } from 'clipanion';
import { SvcError } from '../../../core/errors.ts';
import { RequestsCommand } from '../../approvals/command.ts';
import { pickRequest, type RequestSource, shownRequest, showRequest, submitDecision } from '../../approvals/decide.ts';
import { questionText } from '../../approvals/request-text.ts';
import type { CommandResult } from '../../base.ts';
import { canPrompt, confirm, promptText } from '../../prompt.ts';

export default class ApprovalsReject extends RequestsCommand {
  static override paths = [['approvals', 'reject']];
  static override usage = Command.Usage({
    description: 'Rejects a tool call. The agent receives the reason.',
    details: 'In a terminal, shows the full request first. Without an id, lets you pick one.',
    examples: [
      [
        'Reject with a reason',
        "svc approvals reject apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --reason 'Already refunded'",
      ],
    ],
  });

  requestId = Option.String({ required: false });
  reason = Option.String('--reason', { description: 'The reason, sent to the agent and stored with the decision.' });
  reviewToken = Option.String('--review-token', {
    description: 'For sensitive parameters, without a terminal: the reviewToken from `show --reveal --json`.',
  });
  override = Option.Boolean('--override', false, {
    description:
      'Decides alone, in place of the votes of the rule, if it allows that. Needs --reason, and SVC_TOKEN or a login.',
  });
  yes = Option.Boolean('--yes', false, { description: 'Skips the confirmation.' });

  async workOn(source: RequestSource): Promise<CommandResult> {
    const requestId = await pickRequest(this, source, this.requestId);
    const { record } = await showRequest(this, source, requestId);
    let { reason } = this;
    if (canPrompt(this) && !this.yes && record.status === 'waiting') {
      reason ??= await promptText(this, { message: 'Reason for the agent:', flag: '--reason' });
      const question = questionText('Reject', shownRequest(record, source));
      if (!(await confirm(this, { message: `${question}?`, flag: '--yes' }))) {
        throw new SvcError('declined', 'The request was not rejected.', { state: 'The request is still waiting.' });
      }
    }
    const reviewToken = this.reviewToken ?? record.reviewToken;
    return submitDecision(this, source, requestId, {
      approve: false,
      ...(reason !== undefined && { reason }),
      ...(this.override && { override: true }),
      ...(reviewToken !== undefined && { reviewToken }),
    });
  }
}

import { Command, Option } from 'clipanion';
import { inlineJson } from '../../../core/display/json.ts';
import { SvcError } from '../../../core/errors.ts';
import { RequestsCommand } from '../../approvals/command.ts';
import {
  assertShown,
  parseModifiedParams,
  pickRequest,
  type RequestSource,
  shownRequest,
  showRequest,
  submitDecision,
} from '../../approvals/decide.ts';
import { questionText } from '../../approvals/request-text.ts';
import type { CommandResult } from '../../base.ts';
import { canPrompt, confirm } from '../../prompt.ts';

export default class ApprovalsApprove extends RequestsCommand {
  static override paths = [['approvals', 'approve']];
  static override usage = Command.Usage({
    description: 'Approves a tool call, optionally with changed parameters.',
    details:
      'In a terminal, shows the full request first. Without an id, lets you pick one. ' +
      'Elsewhere, --yes and --review-token are needed.',
    examples: [
      ['Show a request, then approve it', 'svc approvals approve apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11'],
      [
        'Approve with a changed parameter',
        'svc approvals approve apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --set amount=15',
      ],
      ['Choose from the waiting requests', 'svc approvals approve'],
      [
        'Approve in a script what `svc approvals show --json` printed',
        'svc approvals approve apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --review-token "$TOKEN" --yes',
      ],
    ],
  });

  requestId = Option.String({ required: false });
  set = Option.Array('--set', [], {
    description: 'Changes a parameter. Repeatable.',
  });
  reason = Option.String('--reason', { description: 'The reason, stored with the decision.' });
  reviewToken = Option.String('--review-token', {
    description:
      'Proof that the request was shown: the reviewToken from `show --json`, with --reveal if a parameter is masked.',
  });
  override = Option.Boolean('--override', false, {
    description:
      'Decides alone, in place of the votes of the rule, if it allows that. Needs --reason, and SVC_TOKEN or a login.',
  });
  yes = Option.Boolean('--yes', false, { description: 'Skips the confirmation.' });

  async workOn(source: RequestSource): Promise<CommandResult> {
    const requestId = await pickRequest(this, source, this.requestId);
    const presented = await showRequest(this, source, requestId);
    const { record } = presented;
    const modifiedParams = parseModifiedParams(this.set, record.definition?.schema);
    assertShown(presented, { yes: this.yes, reviewToken: this.reviewToken, flags: this.#flags() });
    if (canPrompt(this) && !this.yes && record.status === 'waiting') {
      const change = modifiedParams ? ` with ${inlineJson(modifiedParams)}` : '';
      const question = questionText('Approve', shownRequest(record, source));
      if (!(await confirm(this, { message: `${question}${change}?`, flag: '--yes' }))) {
        throw new SvcError('declined', 'The request was not approved.', { state: 'The request is still waiting.' });
      }
    }
    const reviewToken = this.reviewToken ?? record.reviewToken;
    return submitDecision(this, source, requestId, {
      approve: true,
      ...(this.reason !== undefined && { reason: this.reason }),
      ...(modifiedParams && { modifiedParams }),
      ...(this.override && { override: true }),
      ...(reviewToken !== undefined && { reviewToken }),
    });
  }

  /** The flags of the decision itself, to repeat in a suggested command. */
  #flags(): string[] {
    const changes = this.set.flatMap((change) => ['--set', change]);
    if (this.override) changes.push('--override');
    return this.reason === undefined ? changes : [...changes, '--reason', this.reason];
  }
}

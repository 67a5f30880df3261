import { Command, Option } from 'clipanion';
import { RequestsCommand } from '../../../approvals/command.ts';
import type { RequestSource } from '../../../approvals/decide.ts';
import type { CommandResult } from '../../../base.ts';

export default class ApprovalsStandingRevoke extends RequestsCommand {
  static override paths = [['approvals', 'standing', 'revoke']];
  static override usage = Command.Usage({
    description: 'Ends a standing rule: from then on, such calls need a decision.',
    details:
      'Calls that it has approved are unchanged. With `--server`, only one that you have made, or that you may make.',
    examples: [['It is not needed any more', 'svc approvals standing revoke std_019aa1b2-0000-7000-8000-000000000000']],
  });

  standingId = Option.String();

  async workOn({ approvals }: RequestSource): Promise<CommandResult> {
    const revoked = await approvals.revokeStandingRule(this.standingId);
    this.print(
      `The standing rule ${revoked.standingId} is revoked. It was used ${revoked.used} of ${revoked.uses} times.`,
    );
    return { data: { ...revoked } };
  }
}

import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../../config/load/runtime.ts';
import type { Approvals } from '../../../../config/sdk/approvals.ts';
import { displayText } from '../../../../core/display/text.ts';
import { ApprovalsCommand } from '../../../approvals/command.ts';
import type { CommandResult } from '../../../base.ts';

export default class PeopleTokenRevoke extends ApprovalsCommand {
  static override paths = [['people', 'token', 'revoke']];
  static override usage = Command.Usage({
    description: 'Revokes a token: from then on it proves nothing.',
    details: 'Decisions that were made with it stay.',
    examples: [['A token that was lost', 'svc people token revoke 4fZQ1mT0bXyA']],
  });

  tokenId = Option.String();

  async work(_: Approvals, runtime: Runtime): Promise<CommandResult> {
    const { People } = await import('../../../../config/sdk/people.ts');
    const revoked = await new People(async () => runtime).revokeToken(this.tokenId);
    this.print(`The token ${revoked.tokenId} of ${displayText(revoked.principal)} is revoked.`);
    return { data: { ...revoked } };
  }
}

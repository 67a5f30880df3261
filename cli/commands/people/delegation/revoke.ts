import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../../config/load/runtime.ts';
import type { Approvals } from '../../../../config/sdk/approvals.ts';
import { displayText } from '../../../../core/display/text.ts';
import { ApprovalsCommand } from '../../../approvals/command.ts';
import type { CommandResult } from '../../../base.ts';

export default class PeopleDelegationRevoke extends ApprovalsCommand {
  static override paths = [['people', 'delegation', 'revoke']];
  static override usage = Command.Usage({
    description: 'Ends a delegation.',
    details: 'Votes that were given by it stay.',
    examples: [['Back from the holiday', 'svc people delegation revoke dlg_019aa1b2-0000-7000-8000-000000000000']],
  });

  delegationId = Option.String();

  async work(_: Approvals, runtime: Runtime): Promise<CommandResult> {
    const { People } = await import('../../../../config/sdk/people.ts');
    const { to, from, ...rest } = await new People(async () => runtime).revokeDelegation(this.delegationId);
    this.print(`${displayText(to)} no longer decides for ${displayText(from)}.`);
    return { data: { to, from, ...rest } };
  }
}

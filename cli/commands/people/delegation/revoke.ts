import { Command, Option } from 'clipanion';
import type { People } from '../../../../config/sdk/people.ts';
import { displayText } from '../../../../core/display/text.ts';
import { DelegationsCommand } from '../../../approvals/command.ts';
import type { CommandResult } from '../../../base.ts';

export default class PeopleDelegationRevoke extends DelegationsCommand {
  static override paths = [['people', 'delegation', 'revoke']];
  static override usage = Command.Usage({
    description: 'Ends a delegation.',
    details: 'Votes that were given by it stay. With `--server`, only one that you have made.',
    examples: [['Back from the holiday', 'svc people delegation revoke dlg_019aa1b2-0000-7000-8000-000000000000']],
  });

  delegationId = Option.String();

  async workOn(people: Pick<People, 'revokeDelegation'>): Promise<CommandResult> {
    const { to, from, ...rest } = await people.revokeDelegation(this.delegationId);
    this.print(`${displayText(to)} no longer decides for ${displayText(from)}.`);
    return { data: { to, from, ...rest } };
  }
}

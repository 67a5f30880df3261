import { Command } from 'clipanion';
import type { People } from '../../../../config/sdk/people.ts';
import type { Delegation } from '../../../../core/approval/delegations.ts';
import { displayText } from '../../../../core/display/text.ts';
import { DelegationsCommand } from '../../../approvals/command.ts';
import { endText } from '../../../approvals/end-text.ts';
import type { CommandResult } from '../../../base.ts';

export default class PeopleDelegationList extends DelegationsCommand {
  static override paths = [['people', 'delegation', 'list']];
  static override usage = Command.Usage({
    description: 'Lists who decides in whose place.',
    details: 'Includes what has ended or was revoked. With `--server`, only those from or to you.',
    examples: [['All delegations', 'svc people delegation list']],
  });

  async workOn(people: Pick<People, 'delegations'>): Promise<CommandResult> {
    const delegations: Delegation[] = [];
    for await (const delegation of people.delegations()) delegations.push(delegation);
    const now = Date.now();
    for (const delegation of delegations) this.print(delegationLine(delegation, now));
    if (delegations.length === 0) this.note('There are no delegations.');
    return { data: { delegations } };
  }
}

function delegationLine({ delegationId, from, to, until, revokedAt }: Delegation, now: number): string {
  return `${delegationId}  ${displayText(to)} for ${displayText(from)}  ${endText(until, revokedAt, now)}`;
}

import { Command } from 'clipanion';
import type { Runtime } from '../../../../config/load/runtime.ts';
import type { Approvals } from '../../../../config/sdk/approvals.ts';
import type { Delegation } from '../../../../core/approval/delegations.ts';
import { displayText } from '../../../../core/display/text.ts';
import { ApprovalsCommand } from '../../../approvals/command.ts';
import { endText } from '../../../approvals/end-text.ts';
import type { CommandResult } from '../../../base.ts';

export default class PeopleDelegationList extends ApprovalsCommand {
  static override paths = [['people', 'delegation', 'list']];
  static override usage = Command.Usage({
    description: 'Lists who decides in whose place.',
    details: 'Includes what has ended or was revoked.',
    examples: [['All delegations', 'svc people delegation list']],
  });

  async work(_: Approvals, runtime: Runtime): Promise<CommandResult> {
    const { People } = await import('../../../../config/sdk/people.ts');
    const delegations: Delegation[] = [];
    for await (const delegation of new People(async () => runtime).delegations()) delegations.push(delegation);
    const now = Date.now();
    for (const delegation of delegations) this.print(delegationLine(delegation, now));
    if (delegations.length === 0) this.note('There are no delegations.');
    return { data: { delegations } };
  }
}

function delegationLine({ delegationId, from, to, until, revokedAt }: Delegation, now: number): string {
  return `${delegationId}  ${displayText(to)} for ${displayText(from)}  ${endText(until, revokedAt, now)}`;
}

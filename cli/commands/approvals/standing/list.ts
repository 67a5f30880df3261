import { Command } from 'clipanion';
import type { Approvals } from '../../../../config/sdk/approvals.ts';
import type { StandingRule } from '../../../../core/approval/standing-rules.ts';
import { StandingCommand } from '../../../approvals/command.ts';
import { standingLine } from '../../../approvals/standing-text.ts';
import type { CommandResult } from '../../../base.ts';

export default class ApprovalsStandingList extends StandingCommand {
  static override paths = [['approvals', 'standing', 'list']];
  static override usage = Command.Usage({
    description: 'Lists the standing rules, with how often each was used.',
    details: 'Includes those that have ended or were revoked.',
    examples: [['All standing rules', 'svc approvals standing list']],
  });

  async workOn(approvals: Pick<Approvals, 'standingRules'>): Promise<CommandResult> {
    const standingRules: StandingRule[] = [];
    for await (const standing of approvals.standingRules()) standingRules.push(standing);
    const now = Date.now();
    for (const standing of standingRules) this.print(standingLine(standing, now));
    if (standingRules.length === 0) this.note('There are no standing rules.');
    return { data: { standingRules } };
  }
}

import { Command } from 'clipanion';
import type { StandingRule } from '../../../../core/approval/standing-rules.ts';
import { RequestsCommand } from '../../../approvals/command.ts';
import type { RequestSource } from '../../../approvals/decide.ts';
import { standingLine } from '../../../approvals/standing-text.ts';
import type { CommandResult } from '../../../base.ts';

export default class ApprovalsStandingList extends RequestsCommand {
  static override paths = [['approvals', 'standing', 'list']];
  static override usage = Command.Usage({
    description: 'Lists the standing rules, with how often each was used.',
    details: 'Includes those that have ended or were revoked.',
    examples: [['All standing rules', 'svc approvals standing list']],
  });

  async workOn({ approvals }: RequestSource): Promise<CommandResult> {
    const standingRules: StandingRule[] = [];
    for await (const standing of approvals.standingRules()) standingRules.push(standing);
    const now = Date.now();
    for (const standing of standingRules) this.print(standingLine(standing, now));
    if (standingRules.length === 0) this.note('There are no standing rules.');
    return { data: { standingRules } };
  }
}

import { Command } from 'clipanion';
import type { Runtime } from '../../../../config/load/runtime.ts';
import type { Approvals } from '../../../../config/sdk/approvals.ts';
import type { PersonToken } from '../../../../core/approval/person-tokens.ts';
import { displayText } from '../../../../core/display/text.ts';
import { ApprovalsCommand } from '../../../approvals/command.ts';
import { endText } from '../../../approvals/end-text.ts';
import type { CommandResult } from '../../../base.ts';

export default class PeopleTokenList extends ApprovalsCommand {
  static override paths = [['people', 'token', 'list']];
  static override usage = Command.Usage({
    description: 'Lists the tokens of people, without their text.',
    details: 'Includes those that have expired or were revoked.',
    examples: [['All tokens', 'svc people token list']],
  });

  async work(_: Approvals, runtime: Runtime): Promise<CommandResult> {
    const { People } = await import('../../../../config/sdk/people.ts');
    const tokens: PersonToken[] = [];
    for await (const token of new People(async () => runtime).tokens()) tokens.push(token);
    const now = Date.now();
    for (const token of tokens) this.print(tokenLine(token, now));
    if (tokens.length === 0) this.note('There are no tokens.');
    return { data: { tokens } };
  }
}

function tokenLine({ tokenId, principal, groups, expiresAt, revokedAt }: PersonToken, now: number): string {
  const member = groups.length === 0 ? 'no groups' : groups.map((group) => displayText(group)).join(', ');
  return `${tokenId}  ${displayText(principal)}  ${member}  ${endText(expiresAt, revokedAt, now)}`;
}

import { Command, Option } from 'clipanion';
import type { ApprovalDetails } from '../../../config/sdk/approval-details.ts';
import { statusText, timeLeft } from '../../../core/approval/record-text.ts';
import { foldLine } from '../../../core/display/fold.ts';
import { RequestsCommand } from '../../approvals/command.ts';
import { currentPerson, DEFAULT_COLUMNS, type RequestSource, shownRequest } from '../../approvals/decide.ts';
import {
  decisionLines,
  escalationLines,
  historyLines,
  requestLines,
  unattendedLines,
  voteLines,
} from '../../approvals/request-text.ts';
import type { CommandResult } from '../../base.ts';
import { columnsOf } from '../../output.ts';
import { canPrompt } from '../../prompt.ts';

export default class ApprovalsShow extends RequestsCommand {
  static override paths = [['approvals', 'show']];
  static override usage = Command.Usage({
    description: 'Shows a request and its history.',
    details:
      'Without --reveal, sensitive parameters are masked. If none is masked, the command to approve the request follows, ' +
      'with the review token that a script needs.',
    examples: [['One request', 'svc approvals show apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11']],
  });

  requestId = Option.String();
  reveal = Option.Boolean('--reveal', false, {
    description: 'Shows sensitive parameters.',
  });

  async workOn(source: RequestSource): Promise<CommandResult> {
    const record = await source.approvals.get(this.requestId, { reveal: this.reveal, ...currentPerson() });
    const width = columnsOf(this.context.stdout) ?? DEFAULT_COLUMNS;
    const status = record.status === 'waiting' ? `waiting, ${timeLeft(record, new Date())}` : statusText(record);
    const after = [
      `status     ${status}`,
      ...unattendedLines(record),
      ...voteLines(record),
      ...(record.status === 'waiting' ? escalationLines(record) : []),
      ...decisionLines(record),
      ...historyLines(record).map((line) => `  ${line}`),
    ];
    for (const line of requestLines(shownRequest(record, source), width)) this.print(line);
    for (const line of after.flatMap((one) => foldLine(one, width, '  '))) this.print(line);
    return { data: { request: record }, nextActions: nextActions(record, canPrompt(this)) };
  }
}

function nextActions({ requestId, status, reviewToken }: ApprovalDetails, isTerminal: boolean): string[] {
  if (status !== 'waiting') return [];
  if (reviewToken === undefined) return [`svc approvals show ${requestId} --reveal    shows what is masked`];
  return [
    `svc approvals approve ${requestId} --review-token ${reviewToken}${isTerminal ? '' : ' --yes'}`,
    `svc approvals reject ${requestId} --reason <reason>`,
  ];
}

import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { ApprovalsCommand, toolDescription } from '../../approvals/decide.ts';
import { decisionLines, historyLines, requestLines, statusText, timeLeft } from '../../approvals/request-text.ts';
import type { CommandResult } from '../../base.ts';

export default class ApprovalsShow extends ApprovalsCommand {
  static override paths = [['approvals', 'show']];
  static override usage = Command.Usage({
    description: 'Shows a request and its history.',
    details: 'Without --reveal, sensitive parameters are masked.',
    examples: [['One request', 'svc approvals show apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11']],
  });

  requestId = Option.String();
  reveal = Option.Boolean('--reveal', false, {
    description: 'Shows sensitive parameters; with --json also the value for --review-token.',
  });

  async work(approvals: Approvals): Promise<CommandResult> {
    const record = await approvals.get(this.requestId, { reveal: this.reveal });
    for (const line of requestLines({ ...record, ...toolDescription(record) })) this.print(line);
    this.print(
      `status     ${record.status === 'waiting' ? `waiting, ${timeLeft(record, new Date())}` : statusText(record)}`,
    );
    for (const line of decisionLines(record)) this.print(line);
    for (const line of historyLines(record)) this.print(`  ${line}`);
    return { data: { request: record } };
  }
}

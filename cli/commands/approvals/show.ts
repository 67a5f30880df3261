import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { describedBy } from '../../approvals/decide.ts';
import { decidedText, decision, history, timeLeft, whole } from '../../approvals/text.ts';
import type { Answer } from '../../base.ts';

export default class ApprovalsShow extends ApprovalsCommand {
  static override paths = [['approvals', 'show']];
  static override usage = Command.Usage({
    description: 'Shows a request with everything that happened to it.',
    details: 'Sensitive parameters are masked without --reveal.',
    examples: [['All of one request', 'svc approvals show apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11']],
  });

  requestId = Option.String();
  reveal = Option.Boolean('--reveal', false, {
    description: 'Shows sensitive parameters, and with --json the value that --shown takes.',
  });

  async work(approvals: Approvals): Promise<Answer> {
    const record = await approvals.get(this.requestId, { reveal: this.reveal });
    for (const line of whole({ ...record, ...describedBy(record) })) this.print(line);
    this.print(
      `status     ${record.status === 'waiting' ? `waiting, ${timeLeft(record, new Date())}` : decidedText(record)}`,
    );
    for (const line of decision(record)) this.print(line);
    for (const line of history(record)) this.print(`  ${line}`);
    return { data: { request: record } };
  }
}

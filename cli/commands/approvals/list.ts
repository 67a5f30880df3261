import { Command, Option } from 'clipanion';
import { APPROVAL_STATUSES, type ApprovalStatus } from '../../../core/approval/request.ts';
import { SvcError } from '../../../core/errors.ts';
import { RequestsCommand } from '../../approvals/command.ts';
import type { RequestSource } from '../../approvals/decide.ts';
import { listLines } from '../../approvals/request-text.ts';
import type { CommandResult } from '../../base.ts';
import { parseCount } from '../../flag-values.ts';
import { columnsOf } from '../../output.ts';

export default class ApprovalsList extends RequestsCommand {
  static override paths = [['approvals', 'list']];
  static override usage = Command.Usage({
    description: 'Lists the tool calls that wait for approval, oldest first.',
    details: 'Sensitive parameters are masked.',
    examples: [
      ['Waiting requests', 'svc approvals list'],
      [
        'Rejected requests of one agent, newest first',
        'svc approvals list --status rejected --agent payouts --newest-first',
      ],
    ],
  });

  status = Option.String('--status', { description: `One of ${APPROVAL_STATUSES.join(', ')}. Default: waiting.` });
  agent = Option.String('--agent', { description: 'Only requests of this agent.' });
  execution = Option.String('--execution', { description: 'Only requests of this execution, in any status.' });
  newestFirst = Option.Boolean('--newest-first', false, { description: 'Lists the newest first.' });
  limit = Option.String('--limit', { description: 'Requests per page, 1 to 1,000. Default: 100.' });
  cursor = Option.String('--cursor', { description: 'Continues after a page, which prints this value.' });

  async workOn({ approvals }: RequestSource): Promise<CommandResult> {
    const limit = parseCount('--limit', this.limit);
    const page = await approvals.list({
      ...(this.status !== undefined && { status: statusOf(this.status) }),
      ...(this.agent !== undefined && { agentTag: this.agent }),
      ...(this.execution !== undefined && { executionId: this.execution }),
      ...(limit !== undefined && { limit }),
      ...(this.cursor !== undefined && { cursor: this.cursor }),
      newestFirst: this.newestFirst,
    });
    const isNarrow = [this.status, this.agent, this.execution, this.cursor].some((word) => word !== undefined);
    const now = new Date();
    const width = columnsOf(this.context.stdout) ?? Number.POSITIVE_INFINITY;
    for (const record of page.records) {
      for (const line of listLines(record, now, width)) this.print(this.complete(line));
    }
    if (page.records.length === 0) this.note(isNarrow ? 'No requests found.' : 'No requests are waiting.');
    if (page.cursor !== undefined) this.note(`More requests: --cursor ${page.cursor}`);
    return { data: { ...page } };
  }
}

function statusOf(text: string): ApprovalStatus {
  const status = APPROVAL_STATUSES.find((one) => one === text);
  if (status) return status;
  throw new SvcError('usage', `--status must be one of ${APPROVAL_STATUSES.join(', ')}, not "${text}".`);
}

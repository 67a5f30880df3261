import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import { STATUSES } from '../../../core/approval/list.ts';
import type { ApprovalStatus } from '../../../core/approval/request.ts';
import { SvcError } from '../../../core/errors.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { listed } from '../../approvals/text.ts';
import type { Answer } from '../../base.ts';
import { countOf } from '../../db/numbers.ts';

export default class ApprovalsList extends ApprovalsCommand {
  static override paths = [['approvals', 'list']];
  static override usage = Command.Usage({
    description: 'Lists the tool calls that wait for a human, the oldest first.',
    details: 'Sensitive parameters are masked.',
    examples: [
      ['What waits', 'svc approvals list'],
      [
        'What an agent was refused, the newest first',
        'svc approvals list --status rejected --agent payouts --newest-first',
      ],
    ],
  });

  status = Option.String('--status', { description: `One of ${STATUSES.join(', ')}; default waiting.` });
  agent = Option.String('--agent', { description: 'Requests of this agent.' });
  execution = Option.String('--execution', { description: 'Requests of this execution, whatever their status.' });
  newestFirst = Option.Boolean('--newest-first', false, { description: 'Turns the order around.' });
  limit = Option.String('--limit', { description: '1 to 1,000; default 100.' });
  cursor = Option.String('--cursor', { description: 'Goes on after a page: what the page gave.' });

  async work(approvals: Approvals): Promise<Answer> {
    const limit = countOf('--limit', this.limit);
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
    for (const record of page.records) for (const line of listed(record, now)) this.print(line);
    if (page.records.length === 0) this.note(isNarrow ? 'No such request.' : 'Nothing waits.');
    if (page.cursor !== undefined) this.note(`There are more: --cursor ${page.cursor}`);
    return { data: { ...page } };
  }
}

function statusOf(text: string): ApprovalStatus {
  const status = STATUSES.find((one) => one === text);
  if (status) return status;
  throw new SvcError('usage', `--status takes one of ${STATUSES.join(', ')}, not "${text}".`);
}

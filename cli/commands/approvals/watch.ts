import { setTimeout as wait } from 'node:timers/promises';
import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import { type ListQuery, STATUSES } from '../../../core/approval/list.ts';
import type { ApprovalRecord } from '../../../core/approval/request.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { decided, listed } from '../../approvals/text.ts';
import type { Answer } from '../../base.ts';

/** Between two looks at the store. */
const PAUSE_MS = 1_000;
/** What was made and decided between two looks is looked for among what was made so lately: clocks differ. */
const LATELY_MS = 60_000;

export default class ApprovalsWatch extends ApprovalsCommand {
  static override paths = [['approvals', 'watch']];
  static override usage = Command.Usage({
    description: 'Tells of requests as they come and as they are decided, until it is stopped.',
    details: 'With --json a line of JSON each.',
    examples: [
      ['Of all agents', 'svc approvals watch'],
      ['For a program', 'svc approvals watch --agent payouts --json'],
    ],
  });

  agent = Option.String('--agent', { description: 'Requests of this agent.' });

  async work(approvals: Approvals): Promise<Answer | undefined> {
    const waiting = new Map<string, ApprovalRecord>();
    let over = await this.#over(approvals);
    while (!this.signal.aborted) {
      const found = await this.#found(approvals, { status: 'waiting' });
      const lately = await this.#over(approvals);
      for (const [requestId, record] of [...found, ...lately]) {
        if (waiting.has(requestId) || over.has(requestId)) continue;
        waiting.set(requestId, record);
        this.#tell('requested', record, () => listed(record, new Date()));
      }
      for (const requestId of waiting.keys()) {
        if (found.has(requestId) && !lately.has(requestId)) continue;
        waiting.delete(requestId);
        const record = lately.get(requestId) ?? (await approvals.get(requestId).catch(() => undefined));
        // Past its time and not swept yet, it still says that it waits.
        if (record) this.#tell('decided', record, () => decided(record));
      }
      over = lately;
      await wait(PAUSE_MS, undefined, { signal: this.signal }).catch(() => undefined);
    }
    return undefined;
  }

  async #over(approvals: Approvals): Promise<ReadonlyMap<string, ApprovalRecord>> {
    const since = new Date(Date.now() - LATELY_MS);
    const over = STATUSES.filter((status) => status !== 'waiting');
    const pages = await Promise.all(over.map((status) => this.#found(approvals, { status, since })));
    return new Map(pages.flatMap((page) => [...page]));
  }

  async #found(approvals: Approvals, query: ListQuery): Promise<ReadonlyMap<string, ApprovalRecord>> {
    const found = new Map<string, ApprovalRecord>();
    let cursor: string | undefined;
    do {
      const page = await approvals.list({
        ...query,
        limit: 1000,
        ...(this.agent !== undefined && { agentTag: this.agent }),
        ...(cursor !== undefined && { cursor }),
      });
      for (const record of page.records) found.set(record.requestId, record);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  #tell(event: 'requested' | 'decided', record: ApprovalRecord, lines: () => readonly string[]): void {
    if (this.json) this.jsonLine({ event, request: record });
    else for (const line of lines()) this.print(line);
  }
}

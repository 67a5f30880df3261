import { setTimeout as wait } from 'node:timers/promises';
import { Command, Option } from 'clipanion';
import type { ListQuery } from '../../../core/approval/list-approvals.ts';
import { APPROVAL_STATUSES, type ApprovalRecord } from '../../../core/approval/request.ts';
import { describeError, isSvcError } from '../../../core/errors.ts';
import { RequestsCommand } from '../../approvals/command.ts';
import type { RequestSource } from '../../approvals/decide.ts';
import { decidedLines, listLines } from '../../approvals/request-text.ts';
import type { CommandResult } from '../../base.ts';
import { columnsOf } from '../../output.ts';

const POLL_MS = 1_000;
/** A server counts the calls of each person. */
const SERVER_POLL_MS = 3_000;
/** This window finds requests that were created and decided between two polls, despite clock differences. */
const RECENT_MS = 60_000;

type Requests = ReadonlyMap<string, ApprovalRecord>;

export default class ApprovalsWatch extends RequestsCommand {
  static override paths = [['approvals', 'watch']];
  static override printsJsonLines = true;
  static override usage = Command.Usage({
    description: 'Streams new requests and decisions until it is stopped.',
    details: 'With --json, prints one JSON object per line.',
    examples: [
      ['All agents', 'svc approvals watch'],
      ['For a program', 'svc approvals watch --agent payouts --json'],
    ],
  });

  agent = Option.String('--agent', { description: 'Only requests of this agent.' });

  async workOn({ approvals, runtime }: RequestSource): Promise<CommandResult | undefined> {
    const waiting = new Map<string, ApprovalRecord>();
    const width = columnsOf(this.context.stdout) ?? Number.POSITIVE_INFINITY;
    const look = async (decidedBefore: Requests | undefined): Promise<Requests> => {
      const waitingNow = await this.#fetchAll(approvals, { status: 'waiting' });
      const decided = await this.#recentlyDecided(approvals);
      for (const [requestId, record] of [...waitingNow, ...decided]) {
        if (waiting.has(requestId) || (decidedBefore ?? decided).has(requestId)) continue;
        waiting.set(requestId, record);
        this.#printEvent('requested', record, () => listLines(record, new Date(), width));
      }
      for (const requestId of waiting.keys()) {
        if (waitingNow.has(requestId) && !decided.has(requestId)) continue;
        waiting.delete(requestId);
        const record = decided.get(requestId) ?? (await approvals.get(requestId).catch(() => undefined));
        // An overdue request that has not been expired yet still has the status waiting.
        if (record) this.#printEvent('decided', record, () => decidedLines(record, width));
      }
      return decided;
    };
    let decided: Requests | undefined;
    let isDown = false;
    while (!this.signal.aborted) {
      try {
        decided = await look(decided);
        isDown = false;
      } catch (error) {
        if (this.signal.aborted) break;
        if (!isSvcError(error) || error.code !== 'server_failed') throw error;
        if (!isDown) this.warn(`${describeError(error)} Trying again until it does.`);
        isDown = true;
      }
      await wait(runtime ? POLL_MS : SERVER_POLL_MS, undefined, { signal: this.signal }).catch(() => undefined);
    }
    return undefined;
  }

  async #recentlyDecided(approvals: RequestSource['approvals']): Promise<Requests> {
    const since = new Date(Date.now() - RECENT_MS);
    const decided = APPROVAL_STATUSES.filter((status) => status !== 'waiting');
    const pages = await Promise.all(decided.map((status) => this.#fetchAll(approvals, { status, since })));
    return new Map(pages.flatMap((page) => [...page]));
  }

  async #fetchAll(approvals: RequestSource['approvals'], query: ListQuery): Promise<Requests> {
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

  #printEvent(event: 'requested' | 'decided', record: ApprovalRecord, lines: () => readonly string[]): void {
    if (this.json) this.jsonLine({ event, request: record });
    else for (const line of lines()) this.print(line);
  }
}

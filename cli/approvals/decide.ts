import type { Approvals, ShownRecord } from '../../config/approvals.ts';
import type { SignalAnswer } from '../../core/approval/signal.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { actor } from '../../core/migration/actor.ts';
import { canAsk, choose } from '../ask.ts';
import type { Answer, SvcCommand } from '../base.ts';
import { choiceText, whole } from './text.ts';

export interface Verdict {
  readonly approve: boolean;
  readonly reason?: string;
  readonly modifiedParams?: { readonly [name: string]: Json };
  /** Of a view that showed sensitive parameters. */
  readonly shown?: string;
}

/** Shows the whole request where somebody watches, decides it, and says what stands. */
export async function decide(
  command: SvcCommand,
  approvals: Approvals,
  requestId: string,
  verdict: Verdict,
): Promise<Answer> {
  const { executionId } = await approvals.get(requestId);
  const { approve, reason, modifiedParams, shown } = verdict;
  const answer: SignalAnswer = await approvals
    .signal(
      {
        executionId,
        signal: approve ? 'approve' : 'reject',
        payload: { requestId, ...(reason !== undefined && { reason }), ...(modifiedParams && { modifiedParams }) },
      },
      { actor: `command line, ${actor()}`, ...(shown !== undefined && { shown }) },
    )
    .catch((error) => {
      throw isSvcError(error) && error.code === 'approval_unseen' ? error.with({ next: lookFirst(requestId) }) : error;
    });
  command.print(`${answer.requestId} is ${answer.status}, decided at ${answer.decidedAt}`);
  return { data: { ...answer } };
}

/** Without a terminal two commands do what one does there. */
function lookFirst(requestId: string): string[] {
  return [
    `svc approvals show ${requestId} --reveal --json`,
    'Then decide with --shown and the value of request.shown in its answer.',
  ];
}

/** The request that was named, or one that is picked on a terminal. */
export async function picked(command: SvcCommand, approvals: Approvals, named: string | undefined): Promise<string> {
  if (named !== undefined) return named;
  if (!canAsk(command)) {
    throw new SvcError('usage', 'Which request? Its id is missing.', {
      state: 'Nothing was decided.',
      next: ['svc approvals list    shows those that wait'],
    });
  }
  const { records } = await approvals.list({ limit: 50 });
  if (records.length === 0)
    throw new SvcError('approval_unknown', 'No request waits.', { state: 'Nothing was decided.' });
  const now = new Date();
  return choose(
    command,
    { message: 'Which request?', flag: '<requestId>' },
    records.map((record) => ({
      name: choiceText(record, now),
      value: record.requestId,
    })),
  );
}

/** On a terminal everything is shown before anything is decided, sensitive parameters too: gives what says so. */
export async function look(command: SvcCommand, approvals: Approvals, requestId: string): Promise<ShownRecord> {
  const reveal = canAsk(command);
  const record = await approvals.get(requestId, { reveal });
  if (reveal) for (const line of whole({ ...record, ...describedBy(record) })) command.note(line);
  return record;
}

export function describedBy({ definition }: ShownRecord): { readonly description?: string } {
  return definition ? { description: definition.description } : {};
}

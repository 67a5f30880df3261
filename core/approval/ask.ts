import type { Tool } from '../agent/tool.ts';
import { SvcError } from '../errors.ts';
import type { ApprovalDesk, Row } from './desk.ts';
import { callDigest, callKey } from './digest.ts';
import { newRequestId } from './id.ts';
import type { Parameters } from './request.ts';
import { type ApprovalRow, EXPIRY_SHARDS } from './rows.ts';
import { denied } from './transition.ts';
import type { Seat } from './waiting.ts';

/** A call, checked. */
export interface CheckedCall {
  readonly executionId: string;
  readonly tool: Tool;
  /** As they were put to the gate: a tool's other definition may read them otherwise. */
  readonly given: unknown;
  readonly parameters: Parameters;
  /** The caller's own name of the call, unique in its execution. */
  readonly toolCallId?: string;
  /** Chosen by a caller who has stored it with the call: its name of the call. */
  readonly requestId?: string;
}

/** A call that needs a decision. */
export interface Question extends CheckedCall {
  readonly agentTag: string;
  readonly reason: string;
  readonly timeoutMs: number;
  readonly groupId?: string;
  /** A policy's no: stored as decided. */
  readonly denied?: string;
}

export interface Asked {
  readonly row: Row;
  readonly made: boolean;
  /** Of what was put to the gate. */
  readonly digest: string;
  /** Taken before anybody could decide: no hint of a decision is missed. */
  readonly seat: Seat;
}

/**
 * Stores the request before anybody hears of it. A call that has one already gets that: `made` is false. Throws
 * `call_conflict` where the same name was given to another call.
 */
export async function ask(desk: ApprovalDesk, question: Question): Promise<Asked> {
  const { executionId, tool, parameters } = question;
  const digest = callDigest(executionId, tool.digest, parameters);
  const requestId = question.requestId ?? (await named(desk, question));
  await desk.keepTool(tool);
  const seat = desk.room.sit(requestId);
  try {
    for (;;) {
      const record = newRow(question, requestId, digest, await desk.clock.now());
      if ((await desk.rows.insert(record)) === 'inserted')
        return { row: { record, version: 1 }, made: true, digest, seat };
      const found = await desk.read(requestId);
      // It was pruned between the two.
      if (!found) continue;
      if (!(await isSame(desk, question, digest, found))) throw conflict(question, requestId);
      return { row: found, made: false, digest, seat };
    }
  } catch (error) {
    seat.leave();
    throw error;
  }
}

/** The request that a call has from when it needed one, if it has any. Throws `call_conflict` as `ask` does. */
export async function askedBefore(desk: ApprovalDesk, call: CheckedCall): Promise<Asked | undefined> {
  const { executionId, toolCallId, tool, parameters } = call;
  let { requestId } = call;
  if (requestId === undefined && toolCallId !== undefined) {
    requestId = (await desk.calls.get(callKey(executionId, toolCallId)))?.record.requestId;
  }
  if (requestId === undefined) return undefined;
  const found = await desk.sit(requestId);
  if (!found) return undefined;
  const digest = callDigest(executionId, tool.digest, parameters);
  try {
    if (await isSame(desk, call, digest, found.row)) return { ...found, made: false, digest };
    throw conflict(call, requestId);
  } catch (error) {
    found.seat.leave();
    throw error;
  }
}

/** Whether the request is of this call, by the definition of the tool that it was made under. */
async function isSame(
  desk: ApprovalDesk,
  { executionId, tool, given }: CheckedCall,
  digest: string,
  { record: { body } }: Row,
): Promise<boolean> {
  if (body.tool !== tool.tag) return false;
  if (body.toolDigest === tool.digest) return body.digest === digest;
  const checked = await desk.check(body.toolDigest, given);
  return checked.ok && callDigest(executionId, body.toolDigest, checked.parameters) === body.digest;
}

/** The id under which a named call is asked; written before the request, so that a crash in between leaves no request that nobody would find. */
async function named(desk: ApprovalDesk, { executionId, toolCallId }: CheckedCall): Promise<string> {
  const requestId = newRequestId();
  if (toolCallId === undefined) return requestId;
  const call = callKey(executionId, toolCallId);
  for (;;) {
    if ((await desk.calls.insert({ call, requestId })) === 'inserted') return requestId;
    const found = await desk.calls.get(call);
    if (found) return found.record.requestId;
  }
}

function newRow(question: Question, requestId: string, digest: string, now: number): ApprovalRow {
  const { agentTag, executionId, tool, parameters, reason, timeoutMs, groupId, toolCallId } = question;
  const timestamp = new Date(now).toISOString();
  const row: ApprovalRow = {
    requestId,
    status: 'waiting',
    agentTag,
    executionId,
    shard: Number.parseInt(requestId.slice(-1), 16) % EXPIRY_SHARDS || 0,
    expiresAt: new Date(now + timeoutMs),
    body: {
      tool: tool.tag,
      toolDigest: tool.digest,
      parameters,
      digest,
      reason,
      timestamp,
      timeoutMs,
      ...(tool.sensitive.length > 0 && { sensitive: tool.sensitive }),
      ...(groupId !== undefined && { groupId }),
      ...(toolCallId !== undefined && { toolCallId }),
      run: 'none',
      events: [],
    },
  };
  return question.denied === undefined ? row : denied(row, question.denied, now);
}

function conflict({ executionId, toolCallId }: CheckedCall, requestId: string): SvcError {
  return new SvcError('call_conflict', 'Another call of the same name was put to the gate before.', {
    why: 'Its tool or its parameters were others: an approval of the one must not release the other.',
    state: 'Nothing ran. The first call keeps its request.',
    next: ['Give each tool call an id of its own.'],
    details: { executionId, requestId, ...(toolCallId !== undefined && { toolCallId }) },
  });
}

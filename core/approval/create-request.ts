import { SvcError } from '../errors.ts';
import { callDigest, callKey } from '../tool/call-digest.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import type { Tool } from '../tool/tool.ts';
import { newRequestId } from './request.ts';
import { type ApprovalRow, EXPIRY_SHARDS } from './schema.ts';
import type { ApprovalService, RequestRow } from './service.ts';
import { withDenial } from './state.ts';
import type { Subscription } from './watcher.ts';

/** A call whose parameters are valid. */
export interface ValidatedCall {
  readonly executionId: string;
  readonly tool: Tool;
  /** The parameters before validation: another definition of the tool may read them differently. */
  readonly rawParameters: unknown;
  readonly parameters: ToolParameters;
  /** The caller's name for the call, unique in its execution. */
  readonly toolCallId?: string;
  /** An id chosen by a caller that has stored it with the call; used in place of `toolCallId`. */
  readonly requestId?: string;
}

/** A call that needs a decision. */
interface RequestInput extends ValidatedCall {
  readonly agentTag: string;
  readonly reason: string;
  readonly timeoutMs: number;
  readonly groupId?: string;
  /** Reason of a policy that denied the call: the request is stored as rejected. */
  readonly denied?: string;
}

export interface CreatedRequest {
  readonly row: RequestRow;
  /** False if the call already had a request. */
  readonly isNew: boolean;
  /** Digest of the call as passed to the gate. */
  readonly digest: string;
  /** Opened before anyone could decide, so that no change is missed. */
  readonly subscription: Subscription;
}

/** Stores a request, or returns the existing one. Throws `call_conflict` if that belongs to another call. */
export async function createRequest(service: ApprovalService, input: RequestInput): Promise<CreatedRequest> {
  const { executionId, tool, parameters } = input;
  const digest = callDigest(executionId, tool.digest, parameters);
  const requestId = input.requestId ?? (await reserveRequestId(service, input));
  await service.storeTool(tool);
  const subscription = service.watcher.subscribe(requestId);
  try {
    for (;;) {
      const record = newRow(input, requestId, digest, await service.clock.now());
      if ((await service.rows.insert(record)) === 'inserted')
        return { row: { record, version: 1 }, isNew: true, digest, subscription };
      const row = await service.read(requestId);
      // Pruned between the insert and the read.
      if (!row) continue;
      if (!(await isSameCall(service, input, digest, row))) throw callConflict(input, requestId);
      return { row, isNew: false, digest, subscription };
    }
  } catch (error) {
    subscription.unsubscribe();
    throw error;
  }
}

/** The request that a call already has. Throws `call_conflict` as `createRequest` does. */
export async function findRequest(service: ApprovalService, call: ValidatedCall): Promise<CreatedRequest | undefined> {
  const { executionId, toolCallId, tool, parameters } = call;
  let { requestId } = call;
  if (requestId === undefined && toolCallId !== undefined) {
    requestId = (await service.calls.get(callKey(executionId, toolCallId)))?.record.requestId;
  }
  if (requestId === undefined) return undefined;
  const found = await service.readAndSubscribe(requestId);
  if (!found) return undefined;
  try {
    const digest = callDigest(executionId, tool.digest, parameters);
    if (await isSameCall(service, call, digest, found.row)) return { ...found, isNew: false, digest };
    throw callConflict(call, requestId);
  } catch (error) {
    found.subscription.unsubscribe();
    throw error;
  }
}

/** Compares by the definition of the tool at the time of the request. */
async function isSameCall(
  service: ApprovalService,
  { executionId, tool, rawParameters }: ValidatedCall,
  digest: string,
  { record: { body } }: RequestRow,
): Promise<boolean> {
  if (body.tool !== tool.tag) return false;
  if (body.toolDigest === tool.digest) return body.digest === digest;
  const validated = await service.validateParameters(body.toolDigest, rawParameters);
  return validated.ok && callDigest(executionId, body.toolDigest, validated.parameters) === body.digest;
}

/** The request id of a call. Stored before the request, so that every stored request can be found after a crash. */
async function reserveRequestId(service: ApprovalService, { executionId, toolCallId }: ValidatedCall): Promise<string> {
  const requestId = newRequestId();
  if (toolCallId === undefined) return requestId;
  const call = callKey(executionId, toolCallId);
  for (;;) {
    if ((await service.calls.insert({ call, requestId })) === 'inserted') return requestId;
    const found = await service.calls.get(call);
    if (found) return found.record.requestId;
  }
}

function newRow(input: RequestInput, requestId: string, digest: string, now: number): ApprovalRow {
  const { agentTag, executionId, tool, parameters, reason, timeoutMs, groupId, toolCallId } = input;
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
  return input.denied === undefined ? row : withDenial(row, input.denied, now);
}

function callConflict({ executionId, toolCallId }: ValidatedCall, requestId: string): SvcError {
  return new SvcError('call_conflict', 'A different call with the same id already has a request.', {
    why: 'Its tool or parameters differ, so its approval cannot be used for this call.',
    state: 'Nothing ran. The first call keeps its request.',
    next: ['Give each tool call its own id.'],
    details: { executionId, requestId, ...(toolCallId !== undefined && { toolCallId }) },
  });
}

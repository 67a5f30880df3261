import { randomBytes } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson } from '../json.ts';
import { callDigest, callKey } from '../tool/call-digest.ts';
import { maskSensitive } from '../tool/mask-sensitive.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import { storableText } from '../tool/safe-json.ts';
import type { Tool } from '../tool/tool.ts';
import { requestDigest } from './approved-parameters.ts';
import { withOrigin } from './event-chain.ts';
import { armNotices } from './notice-times.ts';
import { toApprovalRecord } from './public-view.ts';
import { newRequestId } from './request.ts';
import { matchedRule, ruleAfter, rulesForCall, type StoredRules, unsatisfiable } from './rule.ts';
import { type ApprovalRow, EXPIRY_SHARDS } from './schema.ts';
import type { ApprovalService, RequestRow } from './service.ts';
import { withStandingRule } from './standing-rules.ts';
import { withDenial } from './state.ts';
import type { Subscription } from './watcher.ts';

const SALT_BYTES = 16;
const MAX_MODEL_TEXT = 2_000;

/** A call whose parameters are valid. */
export interface ValidatedCall {
  readonly agentTag: string;
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
  readonly reason: string;
  readonly timeoutMs: number;
  readonly validForMs: number;
  readonly groupId?: string;
  /** The id of the person who made the request. */
  readonly requester?: string;
  /** The model that made the call. */
  readonly model?: string;
  /** What the model wrote before the call. */
  readonly modelText?: string;
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

/**
 * Stores a request, or returns the existing one. Throws `call_conflict` if that belongs to another call, `rule_invalid` and
 * `approvers_missing` if no request can be stored that anybody may decide.
 */
export async function createRequest(service: ApprovalService, input: RequestInput): Promise<CreatedRequest> {
  const seen = await findSeenRequest(service, input);
  if (seen) return seen;
  const { requestId, isReserved } = await reserveRequestId(service, input);
  await Promise.all([service.storeTool(input.tool, requestId), service.presence.ensure()]);
  const subscription = service.watcher.subscribe(requestId);
  try {
    for (let mayExist = isReserved; ; mayExist = true) {
      const row = mayExist ? await service.read(requestId) : undefined;
      if (row) return { row, isNew: false, digest: await digestOfSameCall(service, input, row), subscription };
      const rules = rulesOf(service, input);
      const waiting = newRow(input, rules, requestId, service.presence.id, await service.clock.now());
      const record = await withStandingRule(service, waiting);
      await armNotices(service, record);
      if ((await service.rows.insert(record)) !== 'inserted') continue;
      const { approvalDecided } = service.hooks;
      if (record.status === 'approved')
        await service.notifyTaps('approvalDecided', approvalDecided, () => toApprovalRecord(record));
      return { row: { record, version: 1 }, isNew: true, digest: record.body.digest, subscription };
    }
  } catch (error) {
    subscription.unsubscribe();
    throw error;
  }
}

/** The request that a call already has. Throws `call_conflict` as `createRequest` does. */
export async function findRequest(service: ApprovalService, call: ValidatedCall): Promise<CreatedRequest | undefined> {
  const { executionId, toolCallId, requestId } = call;
  if (requestId !== undefined) return findById(service, call, requestId);
  if (toolCallId === undefined) return undefined;
  const seen = await findSeenRequest(service, call);
  if (seen) return seen;
  const key = callKey(executionId, toolCallId);
  const stored = (await service.calls.get(key))?.record.requestId;
  if (stored === undefined) return undefined;
  service.seenCalls.set(key, stored);
  return findById(service, call, stored);
}

/** As `findRequest`, in one read, for a call that this process has made or looked up before. */
async function findSeenRequest(service: ApprovalService, call: ValidatedCall): Promise<CreatedRequest | undefined> {
  const { executionId, toolCallId, requestId: chosen } = call;
  if (chosen !== undefined || toolCallId === undefined) return undefined;
  const key = callKey(executionId, toolCallId);
  const requestId = service.seenCalls.get(key);
  if (requestId === undefined) return undefined;
  const found = await findById(service, call, requestId);
  // Its request was never stored, or is pruned.
  if (!found) service.seenCalls.delete(key);
  return found;
}

async function findById(
  service: ApprovalService,
  call: ValidatedCall,
  requestId: string,
): Promise<CreatedRequest | undefined> {
  const found = await service.readAndSubscribe(requestId);
  if (!found) return undefined;
  try {
    return { ...found, isNew: false, digest: await digestOfSameCall(service, call, found.row) };
  } catch (error) {
    found.subscription.unsubscribe();
    throw error;
  }
}

/** The digest of a call that already has a request. Throws `call_conflict` if the request is that of another call. */
async function digestOfSameCall(
  service: ApprovalService,
  call: ValidatedCall,
  { record }: RequestRow,
): Promise<string> {
  if (!(await isSameCall(service, call, record))) throw callConflict(call, record.requestId);
  return requestDigest(record, { toolDigest: call.tool.digest, parameters: call.parameters });
}

/** Compares by the definition of the tool at the time of the request. */
async function isSameCall(
  service: ApprovalService,
  { agentTag, executionId, tool, parameters, rawParameters }: ValidatedCall,
  record: ApprovalRow,
): Promise<boolean> {
  const { body } = record;
  if (record.agentTag !== agentTag || record.executionId !== executionId || body.tool !== tool.tag) return false;
  const validated =
    body.toolDigest === tool.digest
      ? { ok: true as const, parameters }
      : await service.validateParameters(body.toolDigest, rawParameters);
  if (!validated.ok) return false;
  // The second comparison is for stored parameters that were changed: their call is the same, and its approval stale.
  return (
    canonicalJson(validated.parameters) === canonicalJson(body.parameters) ||
    requestDigest(record, { parameters: validated.parameters }) === body.digest
  );
}

/**
 * The request id of a call, and whether an earlier call has reserved it. Stored before the request, so that every stored
 * request can be found after a crash.
 */
async function reserveRequestId(
  service: ApprovalService,
  { executionId, toolCallId, requestId: chosen }: ValidatedCall,
): Promise<{ readonly requestId: string; readonly isReserved: boolean }> {
  const requestId = chosen ?? newRequestId();
  if (chosen !== undefined || toolCallId === undefined) return { requestId, isReserved: false };
  const call = callKey(executionId, toolCallId);
  for (;;) {
    const isInserted = (await service.calls.insert({ call, requestId })) === 'inserted';
    const reserved = isInserted ? requestId : (await service.calls.get(call))?.record.requestId;
    if (reserved === undefined) continue;
    service.seenCalls.set(call, reserved);
    return { requestId: reserved, isReserved: !isInserted };
  }
}

/** The rules that decide who may decide. Without one that people can satisfy, the request would only time out. */
function rulesOf(service: ApprovalService, input: RequestInput): StoredRules | undefined {
  const { agentTag, tool, parameters, requester, denied } = input;
  if (service.rules.length === 0 || denied !== undefined) return undefined;
  const rules = rulesForCall(service.rules, { agentTag, tool, parameters });
  if (!rules) return undefined;
  const refuse = (code: 'rule_invalid' | 'approvers_missing', message: string, why: string, next: string): never => {
    service.warn(`A call of "${tool.tag}" cannot be approved. ${why}`);
    throw new SvcError(code, message, { why, state: 'Nothing ran, and no approval was requested.', next: [next] });
  };
  if ('problem' in rules) {
    const next = 'Correct match.where of the rule in approvals.rules.';
    return refuse('rule_invalid', 'A rule of approvals.rules cannot be applied to the call.', rules.problem, next);
  }
  const rule = matchedRule(rules);
  const { timeoutMs = input.timeoutMs } = rule ?? {};
  const excluded = { agentTag, ...(requester !== undefined && { requester }) };
  const why = rule && unsatisfiable(ruleAfter(rule, timeoutMs - 1), excluded);
  if (why === undefined) return rules;
  const next = 'Add people to the roles in approvals.roles, or let another person make the request.';
  return refuse(
    'approvers_missing',
    'Nobody can satisfy the rule for the call.',
    `${why} The rule: ${rule?.version}.`,
    next,
  );
}

function newRow(
  input: RequestInput,
  rules: StoredRules | undefined,
  requestId: string,
  waiter: string,
  now: number,
): ApprovalRow {
  const { agentTag, executionId, tool, parameters, reason, validForMs, groupId, toolCallId, requester, model } = input;
  const rule = matchedRule(rules);
  const { timeoutMs = input.timeoutMs } = rule ?? {};
  const timestamp = new Date(now).toISOString();
  const sensitive = tool.sensitive.length > 0 ? tool.sensitive : undefined;
  const salt = sensitive && randomBytes(SALT_BYTES).toString('base64url');
  const modelText = storedModelText(input);
  const named = { requestId, executionId, agentTag, tool: tool.tag, toolCallId, parameters };
  const call = { ...named, sensitive, salt, reason, modelText };
  const row = withOrigin({
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
      digest: callDigest({ ...call, toolDigest: tool.digest }),
      reason,
      timestamp,
      timeoutMs,
      validForMs,
      ...(sensitive && { sensitive }),
      ...(salt !== undefined && { salt }),
      ...(groupId !== undefined && { groupId }),
      ...(toolCallId !== undefined && { toolCallId }),
      ...(requester !== undefined && { requester }),
      ...(model !== undefined && { model }),
      ...(modelText !== undefined && { modelText }),
      ...(rules && { rules }),
      waiters: [waiter],
      run: 'none',
      events: [],
    },
  });
  return input.denied === undefined ? row : withDenial(row, input.denied, now);
}

/** Masked before it is cut: a part of a value would not be found. */
function storedModelText({ modelText = '', tool, parameters }: RequestInput): string | undefined {
  const text = maskSensitive(storableText(modelText).trim(), tool.sensitive, parameters);
  if (text === '') return undefined;
  return text.length <= MAX_MODEL_TEXT ? text : `${storableText(text.slice(0, MAX_MODEL_TEXT))}…`;
}

function callConflict({ executionId, toolCallId }: ValidatedCall, requestId: string): SvcError {
  return new SvcError('call_conflict', 'A different call with the same id already has a request.', {
    why: 'Its tool or parameters differ, so its approval cannot be used for this call.',
    state: 'Nothing ran. The first call keeps its request.',
    next: ['Give each tool call its own id.'],
    details: { executionId, requestId, ...(toolCallId !== undefined && { toolCallId }) },
  });
}

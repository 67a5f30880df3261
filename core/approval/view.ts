import type { ApprovalRecord, ApprovalRequest, Parameters } from './request.ts';
import type { ApprovalRow } from './rows.ts';
import { toldOutcome } from './transition.ts';

const MASKED = Object.freeze({ masked: true });

/** What a human is asked. Parameters called sensitive are masked but for who asks to see them. */
export function requestOf(row: ApprovalRow, reveal = false): ApprovalRequest {
  const { requestId, executionId, agentTag, expiresAt, body } = row;
  const { tool, reason, timestamp } = body;
  const parameters = reveal ? body.parameters : mask(body.parameters, body.sensitive);
  return { requestId, executionId, agentTag, tool, parameters, reason, timestamp, timeout: expiresAt.toISOString() };
}

/** Pages have a thousand of them: written field by field, as spreading each that may be missing takes three times as long. */
export function recordOf(row: ApprovalRow, reveal = false): ApprovalRecord {
  const { run, groupId, toolCallId, decision, sensitive, timestamp, events } = row.body;
  const record = requestOf(row, reveal) as { -readonly [K in keyof ApprovalRecord]: ApprovalRecord[K] };
  record.status = row.status;
  if (decision?.cause !== undefined) record.cause = decision.cause;
  record.run = run;
  if (groupId !== undefined) record.groupId = groupId;
  if (toolCallId !== undefined) record.toolCallId = toolCallId;
  if (decision) {
    record.decidedAt = decision.at;
    record.decidedBy = decision.by;
    if (decision.reason !== undefined) record.decisionReason = decision.reason;
    const { modifiedParams } = decision;
    if (modifiedParams) record.modifiedParams = reveal ? modifiedParams : mask(modifiedParams, sensitive);
  }
  const told = reveal || !sensitive ? toldOutcome(row.body) : undefined;
  if (told) record.outcome = told;
  record.events = [{ type: 'requested', at: timestamp }, ...events];
  return record;
}

function mask(parameters: Parameters, sensitive: readonly string[] = []): Parameters {
  if (sensitive.length === 0) return parameters;
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, sensitive.includes(name) ? MASKED : value]),
  );
}

/** A copy that nobody can change for the others who are told. */
export function frozen<T>(value: T): T {
  return freeze(structuredClone(value));
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) freeze(member);
  return Object.freeze(value);
}

import { errorMessage } from '../errors.ts';
import { isPlainObject, type Json } from '../json.ts';
import { MAX_PARAMETERS_BYTES } from '../tool/call-digest.ts';
import type { ParameterProblem } from '../tool/json-schema.ts';
import { maskSensitive } from '../tool/mask-sensitive.ts';
import { failureResult, modelText } from '../tool/model-result.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import { isTooDeep, storableText } from '../tool/safe-json.ts';
import { withoutPassword } from '../url.ts';
import type { Outcome, OutcomeStatus } from './request.ts';
import type { ApprovalRow } from './schema.ts';

/** The result of a gated call. A rejection is returned as a result, never thrown. @experimental */
export class CallOutcome {
  /** A `PendingStatus` only with `waitMs`. */
  readonly status: OutcomeStatus | PendingStatus;
  readonly result: Json;
  /** Names of the parameters that the reviewer changed; the tool ran with the new values. */
  declare readonly changed?: readonly string[];
  /** Their values with which the tool ran, sensitive ones masked; absent if they are too long for a note. */
  declare readonly executedWith?: { readonly [name: string]: Json };
  /** Absent if no approval was needed. */
  declare readonly requestId?: string;
  /** ISO 8601, UTC: when a request that was left expires, if nobody decides. Absent for any other outcome. */
  declare readonly expiresAt?: string;

  // A class, because a method of an object costs every ungated call as much as the rest of the gate.
  /** @internal */
  constructor(ended: CallResult | PendingResult) {
    const { status, result, changed, executedWith, requestId, expiresAt }: Omit<CallOutcome, 'forModel'> = ended;
    this.status = status;
    this.result = result;
    if (changed !== undefined) this.changed = changed;
    if (executedWith !== undefined) this.executedWith = executedWith;
    if (requestId !== undefined) this.requestId = requestId;
    if (expiresAt !== undefined) this.expiresAt = expiresAt;
  }

  /**
   * The text for the model, whatever the outcome: `result` as JSON and, if the reviewer changed parameters, a line that
   * says which, and with what the tool ran. Use it as the content of the tool message.
   */
  forModel(): string {
    return modelText(this);
  }
}

/**
 * Statuses of a call that was left with `waitMs`: it waits for a decision, it was decided and has not run, or another process
 * runs it. @experimental
 */
export type PendingStatus = 'waiting' | 'decided' | 'running';

/** The data of a call without an outcome yet. */
export type PendingResult = Pick<CallOutcome, 'result'> &
  Required<Pick<CallOutcome, 'requestId' | 'expiresAt'>> & { readonly status: PendingStatus };

export function isPending(result: CallResult | PendingResult): result is PendingResult {
  return 'expiresAt' in result;
}

export function pendingResult(status: PendingStatus, { requestId, expiresAt, body }: ApprovalRow): PendingResult {
  const message = 'The call has no result yet: it waits for approval, or runs. Do not call it again.';
  const result = { error: 'approval_pending', message, tool: body.tool, requestId };
  return { status, result, requestId, expiresAt: expiresAt.toISOString() };
}

/** The data of an outcome. */
export type CallResult = Omit<CallOutcome, 'forModel' | 'status' | 'expiresAt'> & { readonly status: OutcomeStatus };

interface CalledTool {
  readonly tool: string;
  readonly parameters: ToolParameters;
}

/** Why a tool did not run, or may not have run. */
export type NotRunCode =
  | 'approval_rejected'
  | 'approval_cancelled'
  | 'policy_denied'
  | 'approval_stale'
  | 'approval_lapsed'
  | 'interrupted';

const STATUS: Readonly<Record<NotRunCode, OutcomeStatus>> = {
  approval_rejected: 'rejected',
  approval_cancelled: 'cancelled',
  policy_denied: 'denied',
  approval_stale: 'stale',
  approval_lapsed: 'lapsed',
  interrupted: 'interrupted',
};

const MESSAGES: Readonly<Record<NotRunCode, string>> = {
  approval_rejected: 'The approval request was rejected. The tool did not run.',
  approval_cancelled: 'The approval request was cancelled. The tool did not run.',
  policy_denied: 'A policy does not allow this call. The tool did not run.',
  approval_stale: 'The tool or the request has changed since it was shown for approval. The tool did not run.',
  approval_lapsed: 'The approval was no longer valid when the call could start. The tool did not run.',
  interrupted: 'The tool was interrupted. It is not known whether it took effect.',
};

/** The documented shape and message of a timeout; agents may depend on both. */
export function timeoutOutcome({ tool, parameters }: CalledTool, timeoutMs: number): Outcome {
  const message = `The approval request timed out after ${timeoutMs} ms.`;
  return { status: 'rejected', result: { error: 'approval_timeout', message, tool, parameters } };
}

export function notRunOutcome(error: NotRunCode, { tool, parameters }: CalledTool, reason?: string): Outcome {
  return {
    status: STATUS[error],
    result: { error, message: MESSAGES[error], reason: reason ?? null, tool, parameters },
  };
}

/** The stored form of an outcome. Results created by the gate repeat the parameters, which the row already contains. */
export function withoutParameters({ status, result }: Outcome): Outcome {
  if (status === 'completed' || !isPlainObject(result)) return { status, result };
  const { parameters, ...rest } = result;
  return { status, result: rest };
}

/** Reverses `withoutParameters`. */
export function withParameters({ status, result }: Outcome, { parameters }: Pick<CalledTool, 'parameters'>): Outcome {
  return { status, result: status === 'completed' || !isPlainObject(result) ? result : { ...result, parameters } };
}

/** The tool is unknown or the parameters are invalid: nothing ran and no request was created. */
export function invalidOutcome(error: string, message: string, tool: string): Outcome {
  return { status: 'invalid', result: { error, message, tool } };
}

export function invalidParametersOutcome(tool: string, problems: readonly ParameterProblem[]): Outcome {
  return invalidOutcome('invalid_parameters', `The parameters are invalid: ${problemsText(problems)}.`, tool);
}

export function problemsText(problems: readonly ParameterProblem[]): string {
  return problems.map(({ parameter, why }) => (parameter === '' ? why : `${parameter} ${why}`)).join('; ');
}

export function parametersTooLargeOutcome(tool: string): Outcome {
  return invalidOutcome(
    'parameters_too_large',
    `The parameters are larger than ${MAX_PARAMETERS_BYTES / 1024} KiB.`,
    tool,
  );
}

const MAX_MESSAGE_LENGTH = 2_000;

/**
 * A handler's error as the model sees it: the message only, without credentials in URLs and without the values of
 * parameters that `sensitive` names. `requested`: the parameters before a reviewer changed them.
 */
export function failedOutcome(
  error: unknown,
  { tool, parameters }: CalledTool,
  sensitive?: readonly string[],
  requested: ToolParameters = parameters,
): Outcome {
  const text = storableText(
    maskSensitive(errorMessage(error), sensitive, parameters, requested)
      .replace(/[a-z][a-z0-9+.-]*:\/\/\S+/gi, withoutPassword)
      .slice(0, MAX_MESSAGE_LENGTH),
  );
  return { status: 'failed', result: { ...failureResult(text), tool, parameters } };
}

/** The largest result that is stored, in bytes of JSON. */
const MAX_RESULT_BYTES = 256 * 1024;

/** The outcome to store: a result that is too large or too deep is replaced by `result_not_kept`. */
export function storableOutcome(outcome: Outcome, tool: string): Outcome {
  const { status, result } = outcome;
  if (status !== 'completed') return outcome;
  if (isTooDeep(result)) return resultNotStored(outcome, tool, 'nested too deeply');
  return Buffer.byteLength(JSON.stringify(result)) > MAX_RESULT_BYTES ? resultNotStored(outcome, tool) : outcome;
}

export function resultNotStored({ status }: Outcome, tool: string, why = 'too large'): Outcome {
  const message = `The tool ran; its result was ${why} to store.`;
  return { status, result: { error: 'result_not_kept', message, tool } };
}

import { hostname } from 'node:os';
import { SvcError } from '../errors.ts';
import { storableText, truncatedText } from '../tool/safe-json.ts';
import { principalProblems } from './principal.ts';
import { type ApprovalRecord, type ApprovalRequest, isRequestId } from './request.ts';

/** A tool call as a model makes it. @experimental */
export interface GateCall {
  /** The tool's tag. */
  readonly tool: string;
  readonly parameters: unknown;
  /** Default: a new id. */
  readonly executionId?: string | undefined;
  /**
   * Identifies the call in its execution. A repeated call continues with its existing request, also after a crash and
   * even if no policy or setting requires approval any more. Without `executionId` no repetition is recognized.
   */
  readonly toolCallId?: string | undefined;
  /** Id for a new request, chosen by a caller that has stored it with the call; used in place of `toolCallId`. */
  readonly requestId?: string | undefined;
  /** Shared by the calls of one turn. */
  readonly groupId?: string | undefined;
  /** The id of the person for whom the call is made: where a rule applies, that person cannot decide it. */
  readonly requester?: string | undefined;
  /** The model that made the call, for the record, such as `openai/gpt-5`. */
  readonly model?: string | undefined;
  /**
   * What the model wrote in the turn before the call, for those who decide. Its first 2,000 characters are stored, with
   * the values of sensitive parameters masked. A repeated call keeps that of the first.
   */
  readonly modelText?: string | undefined;
}

/** Signals and callbacks of a call. @experimental */
export interface CallOptions {
  /** Aborting cancels a request that waits; a handler that runs receives the signal. */
  readonly signal?: AbortSignal | undefined;
  /** True: this caller alone owns the execution, and earlier claims on its calls are lost. False: the call is new. */
  readonly resumed?: boolean | undefined;
  /** Awaited once the tool may run, before it is claimed. If it throws, the tool does not run. */
  readonly beforeRun?: (() => Promise<void>) | undefined;
  /** Not awaited. An error or a rejected promise becomes a warning. */
  readonly onRequested?: ((request: ApprovalRequest) => unknown) | undefined;
  /** As `onRequested`. Timeouts and cancellations are decisions too. */
  readonly onDecided?: ((record: ApprovalRecord) => unknown) | undefined;
}

/** Options of a caller that does not hold the call until it is decided. @experimental */
export interface WaitOptions extends CallOptions {
  /**
   * Milliseconds, 0 or more, after which an undecided call is left waiting and the outcome says so. Aborting `signal` ends the
   * wait as well, and cancels nothing. Does not limit a tool that runs, here or in another process.
   */
  readonly waitMs?: number | undefined;
}

/** The longest id that a caller may give, in characters. */
const MAX_ID_LENGTH = 200;

/** Whether a value can be the id of an execution or of a call. */
export function isCallId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH && storableText(value) === value;
}

/** Throws `value_invalid`. */
export function assertCallFields(call: GateCall): void {
  const { executionId, toolCallId, requestId, groupId, requester, model, modelText } = call;
  if (modelText !== undefined && typeof modelText !== 'string') {
    throw new SvcError('value_invalid', 'The modelText of the call is invalid.', {
      why: 'It is not a string.',
      state: 'Nothing ran.',
    });
  }
  if (requester !== undefined && principalProblems({ id: requester }).length > 0) {
    throw new SvcError('value_invalid', 'The requester of the call is invalid.', {
      why: 'It is not the id of a principal.',
      state: 'Nothing ran.',
    });
  }
  for (const [name, value] of Object.entries({ executionId, toolCallId, groupId, model })) {
    if (value === undefined || isCallId(value)) continue;
    throw new SvcError('value_invalid', `The ${name} of the call is invalid.`, {
      why: `It is not a string of 1 to ${MAX_ID_LENGTH} characters.`,
      state: 'Nothing ran.',
    });
  }
  if (requestId === undefined || isRequestId(requestId)) return;
  throw new SvcError('value_invalid', 'The requestId of the call is invalid.', {
    why: 'It was not created by this SDK.',
    state: 'Nothing ran.',
  });
}

/** Abort reason that detaches from a call: its request keeps waiting, and another process may continue with it. */
export const DETACH: unique symbol = Symbol.for('svc.detach');

/** Abort reason that detaches like `DETACH`, but still stores the result of a running tool unless `isFinal`. */
export class Interruption extends Error {
  override readonly name = 'Interruption';
  readonly isFinal: () => boolean;

  constructor(isFinal: () => boolean) {
    super('The run was interrupted.');
    this.isFinal = isFinal;
  }
}

/** Also true for the reason of another copy of the SDK: a tool may call its gate with the signal of this one's run. */
const isInterruption = (reason: unknown): reason is Interruption =>
  reason instanceof Error && reason.name === 'Interruption' && 'isFinal' in reason;

/** Whether a signal detaches from its call, finally or temporarily; undefined for any other abort. */
export function detachKind(signal: AbortSignal | undefined): 'final' | 'temporary' | undefined {
  if (!signal?.aborted) return undefined;
  const { reason } = signal;
  if (isInterruption(reason)) return reason.isFinal() ? 'final' : 'temporary';
  return reason === DETACH ? 'final' : undefined;
}

/** Why a call was cancelled, as text that every store accepts. */
export function abortReason({ reason }: { readonly reason: unknown }): string {
  return truncatedText(reason);
}

/** The name of this process in events and claims. */
export const PROCESS_NAME = `${hostname()}:${process.pid}`;

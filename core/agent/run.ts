import { DETACH, Interruption } from '../approval/call.ts';
import type { ApprovalRecord, ApprovalRequest, OutcomeStatus } from '../approval/request.ts';
import { isPlainObject, type Json } from '../json.ts';
import { type ModelResult, modelText } from '../tool/model-result.ts';
import type { ExecutionState, ExecutionStatus, RunError, StepCall, Usage } from './execution-record.ts';

/** An event of a run. @experimental */
export type RunEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_call'; readonly tool: string; readonly parameters: Json }
  | { readonly type: 'approval_requested'; readonly request: ApprovalRequest }
  | { readonly type: 'approval_decided'; readonly record: ApprovalRecord }
  | ({ readonly type: 'tool_result' } & ToolResult)
  | { readonly type: 'finished'; readonly outcome: RunOutcome };

/** @experimental */
export interface ToolResult {
  readonly tool: string;
  readonly status: OutcomeStatus;
  /** The result sent to the model. */
  readonly result: Json;
  /** Names of the parameters that a human changed before the tool ran. */
  readonly changed?: readonly string[];
  /** Their values with which the tool ran, sensitive ones masked; absent if they are too long for a note. */
  readonly executedWith?: { readonly [name: string]: Json };
  /** `result` and `changed` as one text, for a model or a log. Sensitive parameters are masked. */
  forModel(): string;
}

/** How a run ended. @experimental */
export interface RunOutcome {
  readonly status: Exclude<ExecutionStatus, 'running'>;
  /** The text of the last model turn. */
  readonly text: string;
  readonly steps: readonly RunStep[];
  readonly usage: Usage;
  /** Why it failed. */
  readonly error?: RunError;
  /** Why it was cancelled. */
  readonly reason?: string;
}

/** A model turn with the results of its tool calls. @experimental */
export interface RunStep {
  readonly text: string;
  readonly calls: readonly (ToolResult & { readonly parameters: Json })[];
}

/**
 * An execution as this process sees it. Each iterator yields every event that this process has seen, from the first.
 * @experimental
 */
export class Run implements AsyncIterable<RunEvent> {
  readonly executionId: string;
  /** Rejects only if the outcome is unknown to this process: the client was closed, or the store is unavailable. */
  readonly result: Promise<RunOutcome>;
  #stopped: { readonly reason: unknown } | undefined;
  #attempt: AbortController | undefined;
  readonly #events: RunEvent[] = [];
  #settle!: { resolve(outcome: RunOutcome): void; reject(error: unknown): void };
  #ended: { readonly error?: unknown } | undefined;
  /** Wakes the iterators that have yielded every event. */
  #waiting: (() => void)[] = [];

  constructor(executionId: string) {
    this.executionId = executionId;
    this.result = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.result.catch(() => undefined);
  }

  /** Cancels pending requests, aborts `ctx.signal` of running handlers, and returns the outcome. */
  cancel(reason = 'The run was cancelled.'): Promise<RunOutcome> {
    this.abort(reason);
    return this.result;
  }

  /** The reason of the first `abort`. @internal */
  get stopped(): { readonly reason: unknown } | undefined {
    return this.#stopped;
  }

  /** The signal of one attempt to run it to its end. Aborts with the attempt or the run. @internal */
  startAttempt(): AbortSignal {
    this.#attempt = new AbortController();
    if (this.#stopped) this.#attempt.abort(this.#stopped.reason);
    return this.#attempt.signal;
  }

  /** Ends the attempt but not the run: requests stay pending, and approved tools that run are awaited. @internal */
  interrupt(): void {
    this.#attempt?.abort(new Interruption(() => this.#stopped?.reason === DETACH));
  }

  /** @internal */
  abort(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#attempt?.abort(this.#stopped.reason);
  }

  /** @internal */
  emit(event: RunEvent): void {
    this.#events.push(event);
    this.#wake();
  }

  /** @internal */
  finish(outcome: RunOutcome): void {
    if (this.#ended) return;
    this.#ended = {};
    this.#settle.resolve(outcome);
    this.emit({ type: 'finished', outcome });
  }

  /** Rejects the result: this process will not receive the outcome. @internal */
  detach(error: unknown): void {
    if (this.#ended) return;
    this.#ended = { error };
    this.#settle.reject(error);
    this.#wake();
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<RunEvent, undefined> {
    let position = 0;
    let isDone = false;
    const done = { done: true, value: undefined } as const;
    const next = async (): Promise<IteratorResult<RunEvent, undefined>> => {
      for (;;) {
        const event = this.#events[position];
        if (isDone) return done;
        if (event) {
          position += 1;
          return { value: event };
        }
        if (this.#ended) {
          isDone = true;
          if ('error' in this.#ended) throw this.#ended.error;
          return done;
        }
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    };
    const iterator: AsyncIterableIterator<RunEvent, undefined> = {
      next,
      // Wakes a pending `next`, so that it does not wait for another event.
      return: async () => {
        isDone = true;
        this.#wake();
        return done;
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** Builds the outcome of a stored execution. */
export function runOutcome(status: RunOutcome['status'], { steps, error, reason }: ExecutionState): RunOutcome {
  return {
    status,
    text: steps.at(-1)?.text ?? '',
    steps: steps.map(({ text, calls }) => ({ text, calls: calls.flatMap(callResults) })),
    usage: steps.reduce(
      (sum: Usage, { usage }) => ({
        inputTokens: sum.inputTokens + usage.inputTokens,
        outputTokens: sum.outputTokens + usage.outputTokens,
      }),
      { inputTokens: 0, outputTokens: 0 },
    ),
    ...(error !== undefined && { error }),
    ...(reason !== undefined && { reason }),
  };
}

function callResults(call: StepCall): RunStep['calls'] {
  const { outcome } = call;
  return outcome ? [withForModel({ ...redactResult(call, outcome), parameters: redactParameters(call) })] : [];
}

/** Adds `forModel`, not enumerable: events and steps are compared, cloned and serialized as data. */
export function withForModel<T extends ModelResult>(outcome: T): T & { forModel(): string } {
  return Object.defineProperty(outcome, 'forModel', { value: () => modelText(outcome) }) as T & { forModel(): string };
}

const MASKED = { masked: true } as const;

/** Masks sensitive parameters for events, outcomes and lists. Parameters that are not an object are masked whole. */
export function redactParameters({ parameters, sensitive }: Pick<StepCall, 'parameters' | 'sensitive'>): Json {
  if (sensitive === undefined) return parameters;
  if (!isPlainObject(parameters)) return MASKED;
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, sensitive.includes(name) ? MASKED : (value as Json)]),
  );
}

/** Masks sensitive parameters in a result that the SDK created; a result that a handler returned is unchanged. */
export function redactResult(
  call: StepCall,
  { status, result, ...change }: NonNullable<StepCall['outcome']>,
): Omit<ToolResult, 'forModel'> {
  const { tool, sensitive } = call;
  let redacted = result;
  if (sensitive !== undefined && isPlainObject(result) && 'parameters' in result) {
    const isFromSdk = status !== 'completed' || result.error === 'result_not_kept';
    const parameters = (result.parameters ?? null) as Json;
    if (isFromSdk) redacted = { ...result, parameters: redactParameters({ parameters, sensitive }) };
  }
  return { tool, status, result: redacted, ...change };
}

import { DETACH, Interruption } from '../approval/passage.ts';
import type { ApprovalRecord, ApprovalRequest, OutcomeStatus } from '../approval/request.ts';
import type { Json } from '../json.ts';
import type { ExecutionStatus, RunError, Usage } from './execution.ts';

/** What happens in a run, as it happens. @experimental */
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
  /** What the model sees. */
  readonly result: Json;
  /** Parameters that a human changed before the tool ran. */
  readonly changed?: readonly string[];
}

/** How a run ended. @experimental */
export interface RunOutcome {
  readonly status: Exclude<ExecutionStatus, 'running'>;
  /** The last words of the model. */
  readonly text: string;
  readonly steps: readonly RunStep[];
  readonly usage: Usage;
  /** Why it failed. */
  readonly error?: RunError;
  /** Why it was cancelled. */
  readonly reason?: string;
}

/** A turn of the model and what its calls gave. @experimental */
export interface RunStep {
  readonly text: string;
  readonly calls: readonly (ToolResult & { readonly parameters: Json })[];
}

/**
 * An execution, as long as this process has to do with it. Iterating gives every event from the first that this
 * process saw; several may iterate.
 * @experimental
 */
export class Run implements AsyncIterable<RunEvent> {
  readonly executionId: string;
  /** Rejects only where the end is not known here: the client was closed, or the store does not answer. */
  readonly result: Promise<RunOutcome>;
  #stopped: { readonly reason: unknown } | undefined;
  #attempt: AbortController | undefined;
  readonly #events: RunEvent[] = [];
  #settle!: { resolve(outcome: RunOutcome): void; reject(error: unknown): void };
  #ended: { readonly error?: unknown } | undefined;
  /** Those who have seen every event and wait for another. */
  #waiting: (() => void)[] = [];

  constructor(executionId: string) {
    this.executionId = executionId;
    this.result = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.result.catch(() => undefined);
  }

  /** Stops it: what waits is cancelled, what runs is told through `ctx.signal`. Gives the outcome. */
  cancel(reason = 'The run was cancelled.'): Promise<RunOutcome> {
    this.abort(reason);
    return this.result;
  }

  /** What it was stopped with. @internal */
  get stopped(): { readonly reason: unknown } | undefined {
    return this.#stopped;
  }

  /** For one attempt to bring it to its end: aborts when the run is stopped, and when the attempt is. @internal */
  attempt(): AbortSignal {
    this.#attempt = new AbortController();
    if (this.#stopped) this.#attempt.abort(this.#stopped.reason);
    return this.#attempt.signal;
  }

  /**
   * Ends the attempt without ending the run: what waits at the gate goes on waiting in the store, and what runs there
   * comes to its end.
   * @internal
   */
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

  /** The end is not known here. @internal */
  leave(error: unknown): void {
    if (this.#ended) return;
    this.#ended = { error };
    this.#settle.reject(error);
    this.#wake();
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<RunEvent, undefined> {
    let at = 0;
    let isLeft = false;
    const done = { done: true, value: undefined } as const;
    const next = async (): Promise<IteratorResult<RunEvent, undefined>> => {
      for (;;) {
        const event = this.#events[at];
        if (isLeft) return done;
        if (event) {
          at += 1;
          return { value: event };
        }
        if (this.#ended) {
          isLeft = true;
          if ('error' in this.#ended) throw this.#ended.error;
          return done;
        }
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    };
    const iterator: AsyncIterableIterator<RunEvent, undefined> = {
      next,
      // Who leaves while he waits is not kept until something happens.
      return: async () => {
        isLeft = true;
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

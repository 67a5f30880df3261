import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import type { ToolContext } from '../agent/tool.ts';
import { canonicalJson, type Json } from '../json.ts';
import { displayed, displayedJson } from './display.ts';
import { newExecutionId, newRequestId } from './id.ts';

export interface CallFacts {
  readonly agentTag: string;
  readonly executionId: string | undefined;
  readonly toolCallId: string | undefined;
  readonly requestId: string | undefined;
  readonly approvedBy?: string | undefined;
  readonly signal: (() => AbortSignal) | AbortSignal | undefined;
  readonly log: (line: string) => void;
}

/** What a handler is told. Most ask for little of it, and a call without approval must cost next to nothing. */
export class Context implements ToolContext {
  readonly #facts: CallFacts;
  #executionId: string | undefined;
  #name: string | undefined;
  #signal: AbortSignal | undefined;

  constructor(facts: CallFacts) {
    this.#facts = facts;
  }

  get agentTag(): string {
    return this.#facts.agentTag;
  }

  get executionId(): string {
    this.#executionId ??= this.#facts.executionId ?? newExecutionId();
    return this.#executionId;
  }

  /** A call that needed none may have an id that was reserved for it: that one is no request. */
  get requestId(): string | undefined {
    return this.#facts.approvedBy === undefined ? undefined : this.#facts.requestId;
  }

  get toolCallId(): string | undefined {
    return this.#facts.toolCallId;
  }

  get approvedBy(): string | undefined {
    return this.#facts.approvedBy;
  }

  /** Of the caller's own name first: asked for or not, it is the same call. One without a name is never run again. */
  get idempotencyKey(): string {
    const { requestId, toolCallId } = this.#facts;
    this.#name ??= toolCallId ?? requestId ?? newRequestId();
    return createHash('sha256')
      .update(canonicalJson([this.executionId, this.#name]))
      .digest('base64url');
  }

  get signal(): AbortSignal {
    const { signal } = this.#facts;
    this.#signal ??= (typeof signal === 'function' ? signal() : signal) ?? new AbortController().signal;
    return this.#signal;
  }

  /** Takes whatever it is given: what a tool has done must not count as failed for what it says of it. */
  log(message: string, data?: Json): void {
    const { agentTag, toolCallId, requestId } = this.#facts;
    const call = requestId ?? toolCallId ?? this.executionId;
    const more = data === undefined ? '' : ` ${loggedData(data)}`;
    this.#facts.log(
      `${agentTag} ${call}: ${displayed(typeof message === 'string' ? message : inspected(message))}${more}`,
    );
  }
}

/** What is no JSON (a bigint, an object that holds itself) as Node shows it. */
function loggedData(data: Json): string {
  try {
    return displayedJson(data);
  } catch {
    return displayed(inspected(data), { lines: true });
  }
}

function inspected(value: unknown): string {
  try {
    return inspect(value);
  } catch (error) {
    return `what cannot be shown (${error instanceof Error ? error.message : 'it throws'})`;
  }
}

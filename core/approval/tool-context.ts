import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { jsonLines } from '../display/json.ts';
import { displayText } from '../display/text.ts';
import { canonicalJson, type Json } from '../json.ts';
import type { ToolContext } from '../tool/tool.ts';
import { newExecutionId, newRequestId } from './request.ts';

interface ToolContextInput {
  readonly agentTag: string;
  readonly executionId: string | undefined;
  readonly toolCallId: string | undefined;
  readonly requestId: string | undefined;
  readonly approvedBy?: string | undefined;
  readonly signal: (() => AbortSignal) | AbortSignal | undefined;
  readonly log: (line: string) => void;
}

/** A handler's context. Values are computed on first read: most handlers read few, and ungated calls must stay cheap. */
export class LazyToolContext implements ToolContext {
  readonly #input: ToolContextInput;
  #executionId: string | undefined;
  #callName: string | undefined;
  #signal: AbortSignal | undefined;

  constructor(input: ToolContextInput) {
    this.#input = input;
  }

  get agentTag(): string {
    return this.#input.agentTag;
  }

  get executionId(): string {
    this.#executionId ??= this.#input.executionId ?? newExecutionId();
    return this.#executionId;
  }

  /** Undefined without approval: the reserved id of an ungated call names no request. */
  get requestId(): string | undefined {
    return this.#input.approvedBy === undefined ? undefined : this.#input.requestId;
  }

  get toolCallId(): string | undefined {
    return this.#input.toolCallId;
  }

  get approvedBy(): string | undefined {
    return this.#input.approvedBy;
  }

  /** Prefers `toolCallId`, so that the key does not depend on approval. A call without any id is never run again. */
  get idempotencyKey(): string {
    const { requestId, toolCallId } = this.#input;
    this.#callName ??= toolCallId ?? requestId ?? newRequestId();
    return createHash('sha256')
      .update(canonicalJson([this.executionId, this.#callName]))
      .digest('base64url');
  }

  get signal(): AbortSignal {
    const { signal } = this.#input;
    this.#signal ??= (typeof signal === 'function' ? signal() : signal) ?? new AbortController().signal;
    return this.#signal;
  }

  /** Never throws: a log line must not make a call fail after its effect. */
  log(message: string, data?: Json): void {
    const { agentTag, toolCallId, requestId } = this.#input;
    const call = requestId ?? toolCallId ?? this.executionId;
    const suffix = data === undefined ? '' : ` ${formatData(data)}`;
    this.#input.log(
      `${agentTag} ${call}: ${displayText(typeof message === 'string' ? message : inspectSafely(message))}${suffix}`,
    );
  }
}

/** Values that are not JSON (a bigint, a circular object) are formatted by `util.inspect`. */
function formatData(data: Json): string {
  try {
    return jsonLines(data, Number.POSITIVE_INFINITY).join('\n');
  } catch {
    return displayText(inspectSafely(data), { lines: true });
  }
}

function inspectSafely(value: unknown): string {
  try {
    return inspect(value);
  } catch (error) {
    return `[value cannot be formatted: ${error instanceof Error ? error.message : 'inspect threw'}]`;
  }
}

import type { InputSchema } from '../../core/tool/input-schema.ts';
import type { JsonSchema } from '../../core/tool/json-schema.ts';
import { LONGEST_WAIT_MS } from '../../core/tool/longest-wait.ts';
import type { ToolContext } from '../../core/tool/tool.ts';

/** The part of `svc.gate(…)` that the adapters use. */
export interface FrameworkGate {
  readonly approvalTimeout: number;
  guard(
    tag: string,
    definition: {
      readonly inputSchema: InputSchema;
      readonly description?: string;
      readonly sensitive?: readonly string[];
    },
    execute: (input: unknown, ctx: ToolContext, own: Execute) => unknown,
  ): Guarded;
}

/** Runs the framework's own tool, with the parameters that were approved. */
export type Execute = (parameters: unknown, signal: AbortSignal) => unknown;

export interface Guarded {
  run(call: FrameworkCall, options: CallOptions, own: Execute): Promise<FrameworkOutcome>;
  request(call: FrameworkCall, options?: CallOptions): Promise<FrameworkOutcome | undefined>;
}

export interface FrameworkCall {
  readonly parameters: unknown;
  readonly executionId: string;
  readonly toolCallId: string;
  readonly modelText?: string | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly waitMs?: number | undefined;
  readonly onRequested?: ((request: RequestedCall) => unknown) | undefined;
}

/** A request that was stored and announced. */
export interface RequestedCall {
  readonly requestId: string;
  readonly executionId: string;
  readonly tool: string;
  /** ISO 8601, UTC: when the request expires. */
  readonly timeout: string;
  readonly toolCallId?: string;
}

/** What a framework stores of a run that is suspended while a request waits. @experimental */
export interface PendingApproval {
  readonly requestId: string;
  readonly tool: string;
  /** ISO 8601, UTC. */
  readonly expiresAt: string;
}

/** The outcome of a gated call, as `gate.run` returns it. */
export interface FrameworkOutcome {
  readonly status: string;
  readonly result: unknown;
  readonly changed?: readonly string[];
  readonly executedWith?: { readonly [name: string]: never } | object;
  readonly requestId?: string;
  readonly expiresAt?: string;
  forModel(): string;
}

/** Longer than any request waits. With it, aborting a call that waits leaves its request: the run may be resumed again. */
export const ANY_TIME_MS = LONGEST_WAIT_MS;

/** Options of every adapter. @experimental */
export interface ApprovalOptions<Source> {
  /**
   * Names the run or conversation, together with the ids of its calls: the same after a restart, or a call that is made
   * again makes a second request.
   */
  readonly executionId: string | ((source: Source) => string);
  /** By the name of a tool: its JSON Schema, if its own schema has none. */
  readonly jsonSchema?: { readonly [tool: string]: JsonSchema };
  /** By the name of a tool: names of parameters to mask. */
  readonly sensitive?: { readonly [tool: string]: readonly string[] };
  /** Called with each new or repeated request that waits; not awaited. */
  readonly onRequested?: ((request: RequestedCall) => unknown) | undefined;
}

export function executionIdOf<Source>({ executionId }: ApprovalOptions<Source>, source: Source): string {
  return typeof executionId === 'function' ? executionId(source) : executionId;
}

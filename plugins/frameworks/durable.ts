import type { FrameworkOutcome, RequestedCall } from './shared.ts';

// Runs in the sandbox of a workflow too, so nothing is imported but types.

/** A tool of `gate.guard(…)`. @experimental */
export interface DurableTool {
  readonly tag: string;
  run(call: NamedCall, options?: CallOptions): Promise<FrameworkOutcome>;
  request(call: NamedCall, options?: CallOptions): Promise<FrameworkOutcome | undefined>;
}

/** A call of a workflow. @experimental */
export interface StepCall {
  /** Names the call in its workflow: no other call of the workflow has the same. */
  readonly toolCallId: string;
  readonly parameters: unknown;
  /** As in `gate.run`. */
  readonly groupId?: string;
  readonly requester?: string;
  readonly model?: string;
  readonly modelText?: string;
}

interface NamedCall extends StepCall {
  readonly executionId: string;
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly waitMs?: number | undefined;
  readonly onRequested?: ((request: RequestedCall) => unknown) | undefined;
}

/** The outcome of a step, as the engine stores it: what `gate.run` returns, as JSON. @experimental */
export interface StepOutcome extends Omit<FrameworkOutcome, 'forModel' | 'expiresAt'> {
  /** The text for a model. */
  readonly text: string;
}

export function stepOutcome(outcome: FrameworkOutcome): StepOutcome {
  return { ...outcome, text: outcome.forModel() };
}

/** Codes of errors of the call itself: however often the engine repeats the step, it fails. */
const FINAL_ERRORS: readonly string[] = ['value_invalid', 'agent_invalid', 'call_conflict', 'call_circular'];

/** The code of a final error. */
export function finalErrorOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return FINAL_ERRORS.find((final) => final === code);
}

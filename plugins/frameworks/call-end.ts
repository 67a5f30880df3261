import { changeNote, type ModelResult } from '../../core/tool/model-result.ts';
import type { CallOptions, Execute, FrameworkCall, FrameworkOutcome, Guarded, PendingApproval } from './shared.ts';

/** Runs a call, and keeps what the tool itself returned or threw in this process, which need not be JSON. */
export async function runGuarded(
  guarded: Guarded,
  call: FrameworkCall,
  options: CallOptions,
  execute: Execute,
): Promise<{ readonly outcome: FrameworkOutcome; readonly value: unknown; readonly error: unknown }> {
  let ran: { readonly value?: unknown; readonly error?: unknown } | undefined;
  const outcome = await guarded.run(call, options, async (parameters, signal) => {
    try {
      const value = await execute(parameters, signal);
      ran = { value };
      return value;
    } catch (error) {
      ran = { error };
      throw error;
    }
  });
  const value = ran && 'value' in ran ? ran.value : outcome.result;
  return { outcome, value, error: ran?.error };
}

/** A call that waits, with what to store of it; or what the model reads in place of a result; or the result, and what to add. */
export type CallEnd =
  | { readonly pending: PendingApproval }
  | { readonly refusal: string }
  | { readonly value: unknown; readonly note: string | undefined };

/** How a call ended. Throws what the tool threw. */
export function endOf(name: string, { outcome, value, error }: Awaited<ReturnType<typeof runGuarded>>): CallEnd {
  const { status, requestId = '', expiresAt } = outcome;
  if (expiresAt !== undefined) return { pending: { requestId, tool: name, expiresAt } };
  if (status === 'failed' && error !== undefined) throw error;
  return status === 'completed' ? { value, note: noteOf(outcome) } : { refusal: outcome.forModel() };
}

export function notCompleted(outcome: FrameworkOutcome, cause?: unknown): ToolCallNotCompleted {
  return new ToolCallNotCompleted(outcome, outcome.forModel(), cause);
}

/** What the model reads of an edit; undefined if there was none. */
export function noteOf(outcome: FrameworkOutcome): string | undefined {
  return outcome.changed && changeNote(outcome as Omit<ModelResult, 'result'>);
}

/** The note is a separate line, so that the model does not mistake it for the tool's result. */
export function withNoteLine(value: unknown, note: string): string {
  return `${typeof value === 'string' ? value : JSON.stringify(value ?? null)}\n${note}`;
}

/** Thrown in place of a result that a tool does not have: its message is the text for the model. @experimental */
export class ToolCallNotCompleted extends Error {
  override readonly name = 'ToolCallNotCompleted';
  /** `rejected`, `cancelled`, `denied`, `failed`, `interrupted`, `stale`, `lapsed` or `invalid`. */
  readonly status: string;
  readonly requestId: string | undefined;

  constructor({ status, requestId, ...outcome }: Omit<FrameworkOutcome, 'forModel'>, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    void outcome;
    this.status = status;
    this.requestId = requestId;
  }
}

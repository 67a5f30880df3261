import { endOf, runGuarded, withNoteLine } from './call-end.ts';
import { assertTimeout, guardTool, unusable, withoutId } from './guard-tool.ts';
import { ANY_TIME_MS, type ApprovalOptions, executionIdOf, type FrameworkGate } from './shared.ts';

export type { ApprovalOptions, FrameworkGate, RequestedCall } from './shared.ts';

/** @experimental */
export interface OpenAiAgentsOptions extends ApprovalOptions<{ readonly context?: unknown }> {
  /**
   * `hold`, the default: the call waits for the decision. `suspend`: the run ends with interruptions; call
   * `approveInterruptions(state)` and run the state again once the requests are decided, in any process.
   */
  readonly wait?: 'hold' | 'suspend';
}

interface RunContext {
  readonly context?: unknown;
}

interface Details {
  readonly toolCall?: { readonly callId?: string };
  readonly signal?: AbortSignal;
}

interface FunctionTool {
  readonly type: string;
  readonly name: string;
  readonly description?: string;
  readonly parameters?: unknown;
  readonly timeoutMs?: number;
  invoke(runContext: RunContext, input: string, details?: Details): Promise<unknown>;
}

/**
 * The function tools of an agent of OpenAI's Agents SDK, each of which waits for approval. Their types are unchanged. The
 * model reads why a call did not run as the result of the tool.
 * @example new Agent({ name, tools: [search, ...withApproval(gate, [refund], { executionId: chatId })] })
 * @experimental
 */
export function withApproval<const T extends readonly object[]>(
  gate: FrameworkGate,
  tools: T,
  options: OpenAiAgentsOptions,
): { -readonly [K in keyof T]: T[K] } {
  return tools.map((tool) => withGate(gate, tool as FunctionTool, options)) as { -readonly [K in keyof T]: T[K] };
}

function withGate(gate: FrameworkGate, tool: FunctionTool, options: OpenAiAgentsOptions) {
  const { type, name, description, timeoutMs, parameters: schema } = tool;
  if (type !== 'function') throw unusable(String(name), `it is a ${type} tool, which OpenAI or the computer runs`);
  const isHeld = options.wait !== 'suspend';
  if (isHeld) assertTimeout(gate, name, 'timeoutMs', timeoutMs);
  const guarded = guardTool(gate, { name, description, schema }, options, 'input');
  const { onRequested } = options;
  const call = (source: RunContext, parameters: unknown, toolCallId: string | undefined) => {
    if (toolCallId === undefined) throw withoutId(name);
    return { parameters, executionId: executionIdOf(options, source), toolCallId };
  };
  return {
    ...tool,
    ...(!isHeld && {
      needsApproval: async (source: RunContext, input: unknown, callId?: string) =>
        (await guarded.request(call(source, input, callId), { onRequested })) !== undefined,
    }),
    invoke: async (source: RunContext, input: string, details?: Details) => {
      const result = await runGuarded(
        guarded,
        call(source, parsed(input), details?.toolCall?.callId),
        { signal: details?.signal, onRequested, ...(!isHeld && { waitMs: ANY_TIME_MS }) },
        (parameters, signal) => tool.invoke(source, JSON.stringify(parameters), { ...details, signal }),
      );
      const end = endOf(name, result);
      if ('pending' in end) throw details?.signal?.reason;
      if ('refusal' in end) return end.refusal;
      return end.note === undefined ? end.value : withNote(end.value, end.note);
    },
  };
}

/** What is not JSON stays a string, which the gate rejects. */
function parsed(input: string): unknown {
  try {
    return JSON.parse(input === '' ? '{}' : input);
  } catch {
    return input;
  }
}

const CONTENT_TYPES = ['text', 'image', 'file'];

function withNote(value: unknown, note: string): unknown {
  const part = { type: 'text', text: note };
  const isContent = (one: unknown) => CONTENT_TYPES.includes((one as { readonly type?: string } | null)?.type ?? '');
  if (Array.isArray(value) && value.every(isContent)) return [...value, part];
  if (isContent(value)) return [value, part];
  return withNoteLine(value, note);
}

/**
 * Lets a suspended run call its tools; whether they run, and with which parameters, is what was decided on their requests. A
 * call that is not decided yet waits.
 * @experimental
 */
export function approveInterruptions<I>(state: { getInterruptions(): I[]; approve(item: I): void }): void {
  for (const item of state.getInterruptions()) state.approve(item);
}

import { Recent } from '../../core/recent.ts';
import { isStandardSchema } from '../../core/tool/standard-schema.ts';
import { notCompleted, noteOf, runGuarded } from './call-end.ts';
import { guardTool, unusable } from './guard-tool.ts';
import { ANY_TIME_MS, type ApprovalOptions, executionIdOf, type FrameworkGate } from './shared.ts';

export { ToolCallNotCompleted } from './call-end.ts';
export type { ApprovalOptions, FrameworkGate, RequestedCall } from './shared.ts';

/** The part of the AI SDK's `ToolExecutionOptions` that an `executionId` can be derived from. @experimental */
export interface AiSdkCall {
  readonly toolCallId: string;
  /** Version 6. */
  readonly experimental_context?: unknown;
  /** Version 7. */
  readonly context?: unknown;
  readonly abortSignal?: AbortSignal | undefined;
}

/** @experimental */
export interface AiSdkOptions extends ApprovalOptions<AiSdkCall> {
  /**
   * `hold`, the default: `execute` waits for the decision. `suspend`: the run ends with a `tool-approval-request` of the AI
   * SDK; add `resumeMessage(messages)` and run again once the request is decided, in any process.
   */
  readonly wait?: 'hold' | 'suspend';
}

interface AiTool {
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly execute?: (input: unknown, options: AiSdkCall) => unknown;
  readonly toModelOutput?: (result: ModelOutputInput) => ModelOutput | PromiseLike<ModelOutput>;
}

interface ModelOutputInput {
  readonly toolCallId: string;
  readonly input: unknown;
  readonly output: unknown;
}

type ModelOutput =
  | { readonly type: 'text' | 'json'; readonly value: unknown }
  | { readonly type: 'content'; readonly value: readonly object[] }
  | { readonly type: 'error-text' | 'error-json' | 'execution-denied'; readonly value?: unknown };

/** The most edits whose notes for the model are kept. */
const MAX_NOTES = 1_000;

/**
 * The tools of a `generateText`, `streamText` or agent of the AI SDK, each of which waits for approval. Their types are
 * unchanged. A call that does not run throws `ToolCallNotCompleted`, which the model reads as the tool's error.
 * @example tools: { search, ...withApproval(gate, { refund }, { executionId: chatId }) }
 * @experimental
 */
export function withApproval<T extends object>(gate: FrameworkGate, tools: T, options: AiSdkOptions): T {
  const wrapped = Object.entries(tools).map(([name, tool]) => [name, withGate(gate, name, tool as AiTool, options)]);
  return Object.fromEntries(wrapped) as T;
}

function withGate(gate: FrameworkGate, name: string, tool: AiTool, options: AiSdkOptions): AiTool {
  const { execute, toModelOutput, description, inputSchema } = tool;
  if (execute === undefined) throw unusable(name, 'it has no execute function: its provider or the client runs it');
  const schema = typeof inputSchema === 'function' && !isStandardSchema(inputSchema) ? inputSchema() : inputSchema;
  const guarded = guardTool(gate, { name, description, schema }, options, 'output');
  const notes = new Recent<string>(MAX_NOTES);
  // Models may give calls of several runs the same id. What a tool returns need not be JSON: a date has a text as well.
  const noteKey = (id: string, input: unknown, output: unknown) => JSON.stringify([id, input, output]);
  const { onRequested } = options;
  const call = (input: unknown, source: AiSdkCall) => ({
    parameters: input,
    executionId: executionIdOf(options, source),
    toolCallId: source.toolCallId,
  });
  return {
    ...tool,
    ...(options.wait === 'suspend' && {
      needsApproval: async (input: unknown, source: AiSdkCall) =>
        (await guarded.request(call(input, source), { onRequested })) !== undefined,
    }),
    execute: async (input, source) => {
      const { outcome, value, error } = await runGuarded(
        guarded,
        call(input, source),
        { signal: source.abortSignal, onRequested, ...(options.wait === 'suspend' && { waitMs: ANY_TIME_MS }) },
        async (parameters, abortSignal) => lastValue(await execute(parameters, { ...source, abortSignal })),
      );
      if (outcome.expiresAt !== undefined) throw source.abortSignal?.reason;
      if (outcome.status !== 'completed') throw notCompleted(outcome, error);
      const note = noteOf(outcome);
      const key = noteKey(source.toolCallId, input, value);
      if (note === undefined) notes.delete(key);
      else notes.set(key, note);
      return value;
    },
    toModelOutput: async (result) => {
      const { toolCallId, input, output } = result;
      const text = { type: typeof output === 'string' ? 'text' : 'json', value: output ?? null } as const;
      const own = toModelOutput ? await toModelOutput(result) : text;
      const note = notes.get(noteKey(toolCallId, input, output));
      return note === undefined ? own : withNote(own, note);
    },
  };
}

/** A tool that reports progress yields: what it yields last is its result. */
async function lastValue(result: unknown): Promise<unknown> {
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) return result;
  let last: unknown;
  for await (const value of result as AsyncIterable<unknown>) last = value;
  return last;
}

/** The note is a separate part, so that the model does not mistake it for the tool's result. */
function withNote(output: ModelOutput, note: string): ModelOutput {
  const part = { type: 'text', text: note };
  if (output.type === 'content') return { type: 'content', value: [...output.value, part] };
  if (output.type !== 'text' && output.type !== 'json') return output;
  const text = output.type === 'text' ? String(output.value) : JSON.stringify(output.value);
  return { type: 'content', value: [{ type: 'text', text }, part] };
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}

interface Part {
  readonly type: string;
  readonly approvalId?: string;
}

/**
 * The message to add before a suspended run continues. It lets the AI SDK call the tools; whether they run, and with which
 * parameters, is what was decided on their requests. A call that is not decided yet waits in `execute`.
 * @experimental
 */
export function resumeMessage(messages: readonly Message[]) {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Part[]) : []));
  const idsOf = (type: string) => parts.filter((part) => part.type === type).map(({ approvalId }) => approvalId);
  const answered = new Set(idsOf('tool-approval-response'));
  const open = idsOf('tool-approval-request').filter((id) => id !== undefined && !answered.has(id)) as string[];
  const content = open.map((approvalId) => ({ type: 'tool-approval-response' as const, approvalId, approved: true }));
  return { role: 'tool' as const, content };
}

import { SvcError } from '../../core/errors.ts';
import { endOf, runGuarded, withNoteLine } from './call-end.ts';
import { withoutId } from './guard-tool.ts';
import type { Message, Runtime, ToolCallRequest, ToolMessage } from './langchain-types.ts';
import {
  type ApprovalOptions,
  executionIdOf,
  type FrameworkOutcome,
  type Guarded,
  type PendingApproval,
} from './shared.ts';

/** Options of tools that wait for approval. @experimental */
export interface LangChainToolOptions extends Omit<ApprovalOptions<ToolCallRequest>, 'executionId'> {
  /** Default: the `thread_id` of the run. */
  readonly executionId?: ApprovalOptions<ToolCallRequest>['executionId'];
  /**
   * The function `interrupt` of `@langchain/langgraph`. With it the run is interrupted while a request waits, and continues with
   * `new Command({ resume: true })` once it is decided, in any process. Without it the call waits in place.
   */
  readonly interrupt?: ((value: PendingApproval) => unknown) | undefined;
}

/** Runs a call once it is approved. `handler` runs the tool of the request, which makes the message of the result. */
export async function runCall(
  guarded: Guarded,
  request: ToolCallRequest,
  handler: (request: ToolCallRequest) => Promise<unknown>,
  options: LangChainToolOptions,
): Promise<unknown> {
  const { toolCall } = request;
  const { name } = toolCall;
  const call = {
    parameters: toolCall.args,
    executionId: executionId(options, request),
    toolCallId: callId(toolCall),
    modelText: modelText(request),
  };
  const { signal } = (request.runtime ?? {}) as Runtime;
  const wait = options.interrupt ? { waitMs: 0 } : {};
  for (;;) {
    let ran: unknown;
    const result = await runGuarded(
      guarded,
      call,
      { signal, onRequested: options.onRequested, ...wait },
      async (args) => {
        ran = await handler({ ...request, toolCall: { ...toolCall, args } });
        return messageOf(ran, call.toolCallId)?.content ?? null;
      },
    );
    const end = endOf(name, result);
    if ('pending' in end) {
      options.interrupt?.(end.pending);
      continue;
    }
    const ended = ran ?? (await handler({ ...request, tool: recorded(name, result.outcome) }));
    const message = messageOf(ended, call.toolCallId);
    if (message === undefined) return ended;
    if ('refusal' in end) message.status = 'error';
    else if (end.note !== undefined) message.content = withNote(message.content, end.note);
    return ended;
  }
}

/** What the model reads of a call: what its tool node made, or the message in the update of a `Command` that the tool returned. */
function messageOf(ended: unknown, toolCallId: string): ToolMessage | undefined {
  const { lg_name, update } = ended as { readonly lg_name?: string; readonly update?: object };
  if (lg_name !== 'Command') return ended as ToolMessage;
  const entries = Array.isArray(update) ? update : Object.entries(update ?? {});
  const messages: readonly ToolMessage[] = entries.flatMap(([key, value]) => (key === 'messages' ? value : []));
  return messages.find(({ tool_call_id }) => tool_call_id === toolCallId);
}

/** A tool that returns the stored outcome of a call: LangChain makes the message. */
function recorded(name: string, { status, result }: Pick<FrameworkOutcome, 'status' | 'result'>) {
  return {
    name,
    invoke: async () => (status === 'completed' && typeof result === 'string' ? result : JSON.stringify(result)),
  };
}

function withNote(content: unknown, note: string): unknown {
  if (Array.isArray(content)) return [...content, { type: 'text', text: note }];
  return withNoteLine(content, note);
}

/** What the model wrote in the message with the call. */
function modelText({ toolCall, state }: ToolCallRequest): string | undefined {
  const { messages = [] } = (state ?? {}) as { readonly messages?: readonly Message[] };
  const text = messages.findLast(({ tool_calls }) => tool_calls?.some(({ id }) => id === toolCall.id))?.text;
  return typeof text === 'string' ? text : undefined;
}

function executionId({ executionId: given, ...options }: LangChainToolOptions, request: ToolCallRequest): string {
  if (given !== undefined) return executionIdOf({ ...options, executionId: given }, request);
  const { configurable } = (request.runtime ?? {}) as Runtime;
  if (typeof configurable?.thread_id === 'string') return configurable.thread_id;
  throw new SvcError('value_invalid', 'The run has no name for its calls.', {
    why: 'It has no configurable.thread_id, and the options have no executionId.',
    state: 'The tool did not run.',
    next: ['Run with { configurable: { thread_id } }, or set executionId.'],
  });
}

function callId({ name, id }: ToolCallRequest['toolCall']): string {
  if (id === undefined) throw withoutId(name);
  return id;
}

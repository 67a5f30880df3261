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
): Promise<ToolMessage> {
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
    let message: ToolMessage | undefined;
    const result = await runGuarded(
      guarded,
      call,
      { signal, onRequested: options.onRequested, ...wait },
      async (args) => {
        message = (await handler({ ...request, toolCall: { ...toolCall, args } })) as ToolMessage;
        return message.content ?? null;
      },
    );
    const end = endOf(name, result);
    if ('pending' in end) {
      options.interrupt?.(end.pending);
      continue;
    }
    const ended = message ?? ((await handler({ ...request, tool: recorded(name, result.outcome) })) as ToolMessage);
    if ('refusal' in end) ended.status = 'error';
    else if (end.note !== undefined) ended.content = withNote(ended.content, end.note);
    return ended;
  }
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

import { SvcError } from '../../core/errors.ts';
import { endOf, runGuarded, withNoteLine } from './call-end.ts';
import { guardTool, unusable } from './guard-tool.ts';
import type {
  AgentTool,
  LangChainTool,
  Message,
  ModelRequest,
  Runtime,
  ToolCallRequest,
  ToolMessage,
  WrapCall,
} from './langchain-types.ts';
import {
  type ApprovalOptions,
  executionIdOf,
  type FrameworkGate,
  type FrameworkOutcome,
  type PendingApproval,
} from './shared.ts';

export type { ToolCallRequest } from './langchain-types.ts';
export type { ApprovalOptions, FrameworkGate, PendingApproval, RequestedCall } from './shared.ts';

/** @experimental */
export interface LangChainOptions extends Omit<ApprovalOptions<ToolCallRequest>, 'executionId'> {
  /** The names of the tools that wait for approval. */
  readonly tools: readonly string[];
  /** Default: the `thread_id` of the run. */
  readonly executionId?: ApprovalOptions<ToolCallRequest>['executionId'];
  /**
   * The function `interrupt` of `@langchain/langgraph`. With it the run is interrupted while a request waits, and continues with
   * `new Command({ resume: true })` once it is decided, in any process. Without it the call waits in place.
   */
  readonly interrupt?: ((value: PendingApproval) => unknown) | undefined;
}

type Guarded = ReturnType<typeof guardTool>;

/**
 * What `createMiddleware` of LangChain takes for an agent whose tools wait for approval.
 * @example createAgent({ model, tools, middleware: [createMiddleware(approvalMiddleware(gate, { tools: ['refund'] }))] })
 * @experimental
 */
export function approvalMiddleware(
  gate: FrameworkGate,
  options: LangChainOptions,
): { name: string; wrapModelCall: WrapCall; wrapToolCall: WrapCall } {
  const guardedTools = new WeakMap<object, Guarded>();
  const guardedOf = (name: string, tool: unknown): Guarded => {
    if (typeof tool !== 'object' || tool === null) throw unusable(name, 'it is not a tool of the agent');
    const { description, schema } = tool as LangChainTool;
    const guarded = guardedTools.get(tool) ?? guardTool(gate, { name, description, schema }, options, 'input');
    guardedTools.set(tool, guarded);
    return guarded;
  };
  const wrapToolCall: WrapCall = async (request: ToolCallRequest, handler) => {
    const { toolCall, tool } = request;
    const { name } = toolCall;
    if (!options.tools.includes(name)) return handler(request);
    const guarded = guardedOf(name, tool);
    const call = {
      parameters: toolCall.args,
      executionId: executionId(options, request),
      toolCallId: callId(toolCall),
      modelText: modelText(request),
    };
    const runtime = (request.runtime ?? {}) as Runtime;
    const wait = options.interrupt ? { waitMs: 0 } : {};
    for (;;) {
      let message: ToolMessage | undefined;
      const result = await runGuarded(
        guarded,
        call,
        { signal: runtime.signal, onRequested: options.onRequested, ...wait },
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
      const { outcome } = result;
      const ended = message ?? ((await handler({ ...request, tool: recorded(name, outcome) })) as ToolMessage);
      if ('refusal' in end) ended.status = 'error';
      else if (end.note !== undefined) ended.content = withNote(ended.content, end.note);
      return ended;
    }
  };
  const wrapModelCall: WrapCall = async (request: ModelRequest, handler) => {
    const isUnheld = ({ name, invoke }: AgentTool) =>
      options.tools.includes(name ?? '') && typeof invoke !== 'function';
    const unheld = request.tools?.find(isUnheld);
    if (unheld !== undefined) throw unusable(String(unheld.name), 'the provider of the model runs it');
    return handler(request);
  };
  return { name: 'svc-approval', wrapModelCall, wrapToolCall };
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

function executionId({ executionId: given, ...options }: LangChainOptions, request: ToolCallRequest): string {
  if (given !== undefined) return executionIdOf({ ...options, executionId: given }, request);
  const { configurable } = (request.runtime ?? {}) as Runtime;
  if (typeof configurable?.thread_id === 'string') return configurable.thread_id;
  throw new SvcError('value_invalid', 'The run has no name for its calls.', {
    why: 'It has no configurable.thread_id, and the middleware has no executionId.',
    state: 'The tool did not run.',
    next: ['Run with { configurable: { thread_id } }, or set executionId.'],
  });
}

function callId({ name, id }: ToolCallRequest['toolCall']): string {
  if (id === undefined) throw unusable(name, 'its call has no id');
  return id;
}

import { guardTool, unusable } from './guard-tool.ts';
import { type LangChainToolOptions, runCall } from './langchain-call.ts';
import type { AgentTool, LangChainTool, ModelRequest, ToolCallRequest, WrapCall } from './langchain-types.ts';
import type { FrameworkGate, Guarded } from './shared.ts';

export type { LangChainToolOptions } from './langchain-call.ts';
export type { ToolCallRequest } from './langchain-types.ts';
export type { ApprovalOptions, FrameworkGate, PendingApproval, RequestedCall } from './shared.ts';

/** @experimental */
export interface LangChainOptions extends LangChainToolOptions {
  /** The names of the tools that wait for approval. */
  readonly tools: readonly string[];
}

const PROVIDERS = 'the provider of the model runs it';

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
    const { name } = request.toolCall;
    if (!options.tools.includes(name)) return handler(request);
    return runCall(guardedOf(name, request.tool), request, handler, options);
  };
  const wrapModelCall: WrapCall = async (request: ModelRequest, handler) => {
    const isUnheld = ({ name, invoke }: AgentTool) =>
      options.tools.includes(name ?? '') && typeof invoke !== 'function';
    const unheld = request.tools?.find(isUnheld);
    if (unheld !== undefined) throw unusable(String(unheld.name), PROVIDERS);
    return handler(request);
  };
  return { name: 'svc-approval', wrapModelCall, wrapToolCall };
}

/**
 * Tools of a graph of LangGraph, for its `ToolNode`, each of which waits for approval. Their types are unchanged.
 * @example new ToolNode([search, ...withApproval(gate, [refund], { interrupt })])
 * @experimental
 */
export function withApproval<const T extends readonly object[]>(
  gate: FrameworkGate,
  tools: T,
  options: LangChainToolOptions = {},
): { -readonly [K in keyof T]: T[K] } {
  return tools.map((tool) => withGate(gate, tool as LangChainTool, options)) as { -readonly [K in keyof T]: T[K] };
}

function withGate(gate: FrameworkGate, tool: LangChainTool, options: LangChainToolOptions): object {
  const { name, description, schema } = tool;
  if (typeof tool.invoke !== 'function') throw unusable(name, PROVIDERS);
  if (typeof tool._call !== 'function')
    throw unusable(name, 'it is not a tool that the function tool of LangChain made');
  const guarded = guardTool(gate, { name, description, schema }, options, 'input');
  const invoke = (input: unknown, runtime: object = {}) => {
    const { id, args } = Object(input) as { readonly id?: string; readonly args?: unknown };
    const handler = async (request: ToolCallRequest) => {
      const chosen = request.tool as LangChainTool;
      const run = chosen === tool ? tool : answering(tool, await chosen.invoke());
      return run.invoke({ ...request.toolCall, type: 'tool_call' }, runtime);
    };
    const { state } = runtime as { readonly state?: unknown };
    return runCall(guarded, { toolCall: { name, args, id }, tool, runtime, state }, handler, options);
  };
  return derived(tool, { invoke });
}

/** The tool, with this text as the content of its message. */
function answering(tool: LangChainTool, text: unknown): LangChainTool {
  return derived(tool, { schema: {}, responseFormat: 'content', _call: async () => text });
}

/** LangChain's tools are objects of a class. */
function derived<T extends object>(tool: T, members: object): T {
  return Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, members);
}

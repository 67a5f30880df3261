/* The part of LangChain that the adapter uses. */

/** The part of a request to `wrapToolCall` that the adapter reads. @experimental */
export interface ToolCallRequest {
  readonly toolCall: { readonly name: string; readonly args: unknown; readonly id?: string | undefined };
  readonly tool?: unknown;
  readonly runtime?: unknown;
  readonly state?: unknown;
}

export interface Runtime {
  readonly signal?: AbortSignal;
  readonly configurable?: { readonly thread_id?: unknown };
}

export interface AgentTool {
  readonly name?: string;
  readonly invoke?: unknown;
}

export interface ModelRequest {
  readonly tools?: readonly AgentTool[];
}

export interface LangChainTool {
  readonly name: string;
  readonly description?: string;
  readonly schema?: unknown;
  readonly _call?: unknown;
  invoke(input?: unknown, config?: object): Promise<unknown>;
}

export interface ToolMessage {
  readonly tool_call_id?: unknown;
  content?: unknown;
  status?: unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: the types of LangChain's request and result are its own
export type WrapCall = (request: any, handler: (request: any) => any) => Promise<any>;

export interface Message {
  readonly text?: unknown;
  readonly tool_calls?: readonly { readonly id?: unknown }[];
}

import type { PendingApproval } from './shared.ts';

/* The part of Genkit that the adapter uses. */

export interface ToolDefinition {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
}

export interface Action {
  readonly __action: { readonly metadata?: { readonly tool?: { readonly restartable?: boolean } } };
}

export interface Part {
  readonly text?: string;
  readonly toolRequest?: { readonly name: string; readonly ref?: string; readonly input?: unknown };
  readonly toolResponse?: { readonly output?: unknown; readonly content?: unknown };
  readonly metadata?: { readonly interrupt?: Partial<PendingApproval>; readonly resumed?: unknown };
}

export interface Message {
  readonly role: string;
  readonly content: readonly Part[];
}

export interface Envelope {
  readonly request: { readonly returnToolRequests?: boolean; readonly messages: readonly Message[] };
}

export interface CallContext {
  readonly abortSignal?: AbortSignal;
}

export type Next<Request, Response> = (request: Request, context: unknown) => Promise<Response>;

export type Hook = <Request, Context, Response>(
  request: Request,
  context: Context,
  next: (request: Request, context: Context) => Promise<Response>,
) => Promise<Response>;

/** What `generateMiddleware` of Genkit makes a middleware of. */
export type Middleware = (options: { readonly ai: { currentContext(): unknown } }) => {
  generate: Hook;
  model: Hook;
  tool: Hook;
};

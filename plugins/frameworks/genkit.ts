import { randomUUID } from 'node:crypto';
import { endOf, runGuarded, withNoteLine } from './call-end.ts';
import type { Action, CallContext, Envelope, Message, Middleware, Next, Part, ToolDefinition } from './genkit-types.ts';
import { guardTool, unusable } from './guard-tool.ts';
import {
  ANY_TIME_MS,
  type ApprovalOptions,
  executionIdOf,
  type FrameworkGate,
  type PendingApproval,
} from './shared.ts';

export type { ApprovalOptions, FrameworkGate, PendingApproval, RequestedCall } from './shared.ts';

/** @experimental */
export interface GenkitOptions extends ApprovalOptions<{ readonly context?: unknown }> {
  /** The tools that wait for approval. */
  readonly tools: readonly object[];
  /** The function of `genkit/tool`, which describes the tools as the model sees them. */
  readonly toToolDefinition: (tool: never) => ToolDefinition;
  /**
   * `hold`, the default: the call waits for the decision. `suspend`: the response is interrupted; generate again from its
   * messages, with `resume: resumeOptions(messages)`, once the requests are decided, in any process.
   */
  readonly wait?: 'hold' | 'suspend';
}

/**
 * What `generateMiddleware` of Genkit takes, to let tools of `generate` wait for approval.
 * @example ai.generate({ tools: [refund], use: [generateMiddleware({ name: 'approvals' }, approvalMiddleware(gate, options))()] })
 * @experimental
 */
export function approvalMiddleware(gate: FrameworkGate, options: GenkitOptions): Middleware {
  const guardedTools = new Map(options.tools.map((tool) => withGate(gate, tool, options)));
  return ({ ai }) => {
    let signal: AbortSignal | undefined;
    let modelText = '';
    const generate = (envelope: Envelope, context: CallContext, next: Next<Envelope, unknown>) => {
      const { returnToolRequests, messages } = envelope.request;
      const [name = ''] = guardedTools.keys();
      if (returnToolRequests)
        throw unusable(name, 'with returnToolRequests the caller runs it', 'Generate without returnToolRequests.');
      signal = context.abortSignal;
      modelText = textOf(messages.at(-1));
      return next(envelope, context);
    };
    const model = async (request: unknown, context: unknown, next: Next<unknown, { readonly message?: Message }>) => {
      const response = await next(request, context);
      const { message } = response;
      if (message === undefined) return response;
      modelText = textOf(message);
      return { ...response, message: { ...message, content: message.content.map(withRef) } };
    };
    const tool = async (part: Part, context: unknown, next: Next<Part, Part | undefined>) => {
      const { toolRequest = { name: '' }, metadata } = part;
      const { name, ref = '', input } = toolRequest;
      const guarded = guardedTools.get(name);
      if (guarded === undefined) return next(part, context);
      // A call that is resumed too early waits: Genkit fails if it is interrupted again.
      const isResumed = metadata?.resumed === true;
      const wait = options.wait === 'suspend' ? { waitMs: isResumed ? ANY_TIME_MS : 0 } : {};
      const executionId = executionIdOf(options, { context: ai.currentContext() });
      let response: Part | undefined;
      const result = await runGuarded(
        guarded,
        { parameters: input, executionId, toolCallId: ref, modelText },
        { signal, onRequested: options.onRequested, ...wait },
        async (parameters) => {
          response = await next({ ...part, toolRequest: { ...toolRequest, input: parameters } }, context);
          const { output = null, content } = response?.toolResponse ?? {};
          return content === undefined ? output : { output, content };
        },
      );
      const end = endOf(name, result);
      if ('pending' in end) throw isResumed ? signal?.reason : interrupt(end.pending);
      const answer = (output: unknown) => ({
        ...response,
        toolResponse: { ...response?.toolResponse, name, ref, output },
      });
      if ('refusal' in end) return answer(end.refusal);
      const output = response === undefined ? end.value : response.toolResponse?.output;
      return answer(end.note === undefined ? output : withNoteLine(output, end.note));
    };
    return { generate, model, tool } as unknown as ReturnType<Middleware>;
  };
}

function withGate(gate: FrameworkGate, tool: object, options: GenkitOptions) {
  const { name, description, inputSchema: schema } = options.toToolDefinition(tool as never);
  const { metadata } = (tool as Action).__action;
  if (metadata?.tool?.restartable === false) throw unusable(name, 'it is an interrupt, which the caller answers');
  return [name, guardTool(gate, { name, description, schema }, options, 'input')] as const;
}

/** Some models give their calls no id, without which Genkit confuses calls of the same tool when it resumes them. */
function withRef(part: Part): Part {
  const { toolRequest } = part;
  return toolRequest === undefined || toolRequest.ref
    ? part
    : { ...part, toolRequest: { ...toolRequest, ref: randomUUID() } };
}

function textOf(message: Message | undefined): string {
  return message?.role === 'model' ? message.content.map(({ text = '' }) => text).join('') : '';
}

/** Genkit recognizes its interrupts by their name. */
function interrupt(metadata: PendingApproval): Error {
  return Object.assign(new Error('The call waits for approval.'), { name: 'ToolInterruptError', metadata });
}

/**
 * The `resume` of `generate` for a response that was interrupted. It lets Genkit call the tools; whether they run, and with
 * which parameters, is what was decided on their requests. A call that is not decided yet waits.
 * @experimental
 */
export function resumeOptions<P extends object>(messages: readonly { readonly content: readonly P[] }[]) {
  const parts = messages.at(-1)?.content ?? [];
  const pending = parts.filter((part): part is ToolRequestOf<P> => {
    const { interrupt } = (part as Part).metadata ?? {};
    return typeof interrupt?.requestId === 'string';
  });
  return { restart: pending.map((part) => ({ ...part, metadata: { ...(part as Part).metadata, resumed: true } })) };
}

type ToolRequestOf<P> = Extract<P, { readonly toolRequest: object }>;

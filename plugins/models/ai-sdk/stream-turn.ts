import type { LanguageModel, ModelMessage, ToolSet } from 'ai';
import type { ModelEvent, ModelProvider } from '../../../core/agent/model.ts';
import { errorMessage, SvcError } from '../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../core/json.ts';
import { providerStateOf, toModelMessages, UniqueCallIds } from './messages.ts';

type AiSdk = typeof import('ai');

/** Adapts an AI SDK model. The SDK retries failed requests but never runs the tools. */
export function toModelProvider(ai: AiSdk, model: LanguageModel): ModelProvider {
  return {
    async *turn(conversation, tools, signal): AsyncGenerator<ModelEvent> {
      const ids = new UniqueCallIds(conversation);
      const toolSet: ToolSet = Object.fromEntries(
        tools.map(({ tag, description, schema }) => [
          tag,
          ai.tool({ description, inputSchema: ai.jsonSchema(schema as Parameters<AiSdk['jsonSchema']>[0]) }),
        ]),
      );
      const turn = ai.streamText({
        model,
        ...(conversation.system !== '' && { system: conversation.system }),
        messages: toModelMessages(conversation),
        ...(tools.length > 0 && { tools: toolSet }),
        abortSignal: signal,
        // The default writes errors to the console. They arrive as parts of the stream as well.
        onError: () => {},
      });
      let usage: { readonly inputTokens: number; readonly outputTokens: number } | undefined;
      for await (const part of turn.fullStream) {
        if (part.type === 'text-delta') yield { type: 'text', text: part.text };
        if (part.type === 'error') throw requestError(part.error);
        if (part.type === 'tool-call' && part.providerExecuted !== true) {
          const malformed = typeof part.input !== 'object' || part.input === null;
          yield {
            type: 'tool_call',
            id: ids.assign(part.toolCallId),
            tool: part.toolName,
            parameters: part.input as Json,
            ...(malformed && { malformed: true }),
          };
        }
        if (part.type === 'finish') {
          const { inputTokens = 0, outputTokens = 0 } = part.totalUsage;
          usage = { inputTokens, outputTokens };
          if (part.finishReason === 'content-filter' || part.finishReason === 'error')
            throw incompleteTurnError(part.finishReason);
          if (part.finishReason === 'length') throw incompleteTurnError('length');
        }
      }
      signal.throwIfAborted();
      if (!usage) throw new SvcError('model_failed', 'The model ended its turn without a finish event.');
      const { messages } = await turn.response;
      yield { type: 'finished', ...usage, providerState: providerStateOf(messages as ModelMessage[], ids) };
    },
  };
}

/** An incomplete turn may contain half a tool call. */
function incompleteTurnError(reason: string): SvcError {
  return new SvcError('model_failed', 'The model did not finish its turn.', {
    why: reason === 'length' ? 'Its response reached the maximum length.' : `The provider stopped it: ${reason}.`,
  });
}

/** The provider's status and message; no message for a rejected key, because it may contain the key. */
function requestError(error: unknown): unknown {
  // After retries, the last error contains the reason.
  const last = error instanceof Error && 'lastError' in error ? error.lastError : error;
  // In the middle of a stream it is the provider's own object, which may contain another one under `error`.
  if (!(last instanceof Error)) {
    const body = isPlainObject(last) && isPlainObject(last.error) ? last.error : last;
    return new SvcError('model_failed', 'The request to the model failed.', { why: errorMessage(body) });
  }
  const status = 'statusCode' in last && typeof last.statusCode === 'number' ? last.statusCode : undefined;
  if (status === 401 || status === 403) {
    return new SvcError('model_failed', `The provider rejected the credentials (${status}).`, {
      next: ['Check the API key in the environment or in model.settings.'],
    });
  }
  const message = status === undefined ? 'The request to the model failed.' : `The provider responded with ${status}.`;
  return new SvcError('model_failed', message, { why: last.message, cause: last });
}

import type { LanguageModel, ModelMessage, ToolSet } from 'ai';
import type { ModelEvent, ModelProvider } from '../../../core/agent/model.ts';
import { SvcError, wordsOf } from '../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../core/json.ts';
import { CallIds } from './call-ids.ts';
import { kept, messagesOf } from './messages.ts';

type AiSdk = typeof import('ai');

/** A model of the AI SDK as ours: one turn a call, tools shown and never run by it. Failed requests it repeats itself. */
export function bridge(ai: AiSdk, model: LanguageModel): ModelProvider {
  return {
    async *turn(conversation, tools, signal): AsyncGenerator<ModelEvent> {
      const ids = new CallIds(conversation);
      const set: ToolSet = Object.fromEntries(
        tools.map(({ tag, description, schema }) => [
          tag,
          ai.tool({ description, inputSchema: ai.jsonSchema(schema as Parameters<AiSdk['jsonSchema']>[0]) }),
        ]),
      );
      const turn = ai.streamText({
        model,
        ...(conversation.system !== '' && { system: conversation.system }),
        messages: messagesOf(conversation),
        ...(tools.length > 0 && { tools: set }),
        abortSignal: signal,
        // It would write them to the console; they come as parts of the stream too.
        onError: () => {},
      });
      let usage: { readonly inputTokens: number; readonly outputTokens: number } | undefined;
      for await (const part of turn.fullStream) {
        if (part.type === 'text-delta') yield { type: 'text', text: part.text };
        if (part.type === 'error') throw refusal(part.error);
        if (part.type === 'tool-call' && part.providerExecuted !== true) {
          const malformed = typeof part.input !== 'object' || part.input === null;
          yield {
            type: 'tool_call',
            id: ids.own(part.toolCallId),
            tool: part.toolName,
            parameters: part.input as Json,
            ...(malformed && { malformed: true }),
          };
        }
        if (part.type === 'finish') {
          const { inputTokens = 0, outputTokens = 0 } = part.totalUsage;
          usage = { inputTokens, outputTokens };
          if (part.finishReason === 'content-filter' || part.finishReason === 'error') throw cutOff(part.finishReason);
          if (part.finishReason === 'length') throw cutOff('length');
        }
      }
      signal.throwIfAborted();
      if (!usage) throw new SvcError('model_failed', 'The model ended its turn without saying so.');
      const { messages } = await turn.response;
      yield { type: 'finished', ...usage, keep: kept(messages as ModelMessage[], ids) };
    },
  };
}

/** A turn that was cut off may hold half a tool call. */
function cutOff(why: string): SvcError {
  return new SvcError('model_failed', 'The model did not finish its turn.', {
    why: why === 'length' ? 'Its answer reached the longest that it may give.' : `Its provider stopped it: ${why}.`,
  });
}

/** What a provider's refusal may say here: its status and words, and no words at all about a key. */
function refusal(error: unknown): unknown {
  // After several attempts the last one tells why.
  const last = error instanceof Error && 'lastError' in error ? error.lastError : error;
  // In the middle of a stream it is the provider's own object, or what stands in it under `error`.
  if (!(last instanceof Error)) {
    const said = isPlainObject(last) && isPlainObject(last.error) ? last.error : last;
    return new SvcError('model_failed', 'The model could not be asked.', { why: wordsOf(said) });
  }
  const status = 'statusCode' in last && typeof last.statusCode === 'number' ? last.statusCode : undefined;
  if (status === 401 || status === 403) {
    return new SvcError('model_failed', `The provider refused the credentials (${status}).`, {
      next: ['Check the API key in the environment or in model.settings.'],
    });
  }
  const message = status === undefined ? 'The model could not be asked.' : `The provider answered ${status}.`;
  return new SvcError('model_failed', message, { why: last.message, cause: last });
}

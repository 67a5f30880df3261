import type { ModelMessage } from 'ai';
import type { Conversation, ConversationCall, ConversationTurn } from '../../../core/agent/model.ts';
import type { Json } from '../../../core/json.ts';
import type { CallIds } from './call-ids.ts';

type Assistant = Extract<ModelMessage, { role: 'assistant' }>;
type Parts = Exclude<Assistant['content'], string>;

/** The conversation as the AI SDK takes it. */
export function messagesOf({ prompt, turns }: Conversation): ModelMessage[] {
  return [{ role: 'user', content: prompt }, ...turns.flatMap((turn) => [...said(turn), ...answered(turn)])];
}

function said({ text, calls, keep }: ConversationTurn): ModelMessage[] {
  // Reasoning and signatures are in it, without which some providers refuse the next turn.
  if (Array.isArray(keep) && keep.length > 0) return keep as unknown as ModelMessage[];
  const content: Parts = [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map(({ id, tool, parameters }) => ({
      type: 'tool-call' as const,
      toolCallId: id,
      toolName: tool,
      input: asObject(parameters),
    })),
  ];
  return content.length === 0 ? [] : [{ role: 'assistant', content }];
}

function answered({ calls }: ConversationTurn): ModelMessage[] {
  if (calls.length === 0) return [];
  const content = calls.map((call) => ({
    type: 'tool-result' as const,
    toolCallId: call.id,
    toolName: call.tool,
    output: output(call),
  }));
  return [{ role: 'tool', content }] as ModelMessage[];
}

/** What a human changed stands beside the result, so that it is not taken for the tool's own words. */
function output({ result, changed }: ConversationCall) {
  if (changed === undefined || changed.length === 0) return { type: 'json', value: result };
  const note = `A human changed these parameters before the tool ran: ${changed.join(', ')}.`;
  return {
    type: 'content',
    value: [
      { type: 'text', text: JSON.stringify(result) },
      { type: 'text', text: note },
    ],
  };
}

/** The provider's own messages of a turn, to be given back: with ids that are unique and inputs that are objects. */
export function kept(messages: readonly ModelMessage[], ids: CallIds): Json {
  let at = 0;
  const own = messages
    .filter((message): message is Assistant => message.role === 'assistant')
    .map((message) => {
      if (typeof message.content === 'string') return message;
      const content = message.content.map((part) =>
        part.type === 'tool-call' && part.providerExecuted !== true
          ? { ...part, toolCallId: ids.given[at++] ?? part.toolCallId, input: asObject(part.input as Json) }
          : part,
      );
      return { ...message, content };
    });
  return JSON.parse(JSON.stringify(own)) as Json;
}

/** Providers refuse a call whose input is none; its result says what was wrong. */
function asObject(input: Json): Json {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {};
}

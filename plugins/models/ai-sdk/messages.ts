import type { ModelMessage } from 'ai';
import type { Conversation, ConversationCall, ConversationTurn } from '../../../core/agent/model.ts';
import type { Json } from '../../../core/json.ts';
import { changeNote } from '../../../core/tool/model-result.ts';

type Assistant = Extract<ModelMessage, { role: 'assistant' }>;
type Parts = Exclude<Assistant['content'], string>;

/** The conversation as messages of the AI SDK. */
export function toModelMessages({ prompt, turns }: Conversation): ModelMessage[] {
  return [
    { role: 'user', content: prompt },
    ...turns.flatMap((turn) => [...assistantMessages(turn), ...toolMessages(turn)]),
  ];
}

function assistantMessages({ text, calls, providerState }: ConversationTurn): ModelMessage[] {
  // The provider's own messages as JSON, with reasoning and signatures that some providers require in the next turn.
  if (Array.isArray(providerState) && providerState.length > 0) return providerState as unknown as ModelMessage[];
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

function toolMessages({ calls }: ConversationTurn): ModelMessage[] {
  if (calls.length === 0) return [];
  const content = calls.map((call) => ({
    type: 'tool-result' as const,
    toolCallId: call.id,
    toolName: call.tool,
    output: output(call),
  }));
  return [{ role: 'tool', content }] as ModelMessage[];
}

/** The note about changed parameters is a separate part, so that the model does not mistake it for the tool's result. */
function output({ result, ...change }: ConversationCall) {
  if (!change.changed?.length) return { type: 'json', value: result };
  return {
    type: 'content',
    value: [
      { type: 'text', text: JSON.stringify(result) },
      { type: 'text', text: changeNote(change) },
    ],
  };
}

/** The provider's messages of a turn, to send back later, with unique call ids and objects as inputs. */
export function providerStateOf(messages: readonly ModelMessage[], ids: UniqueCallIds): Json {
  let index = 0;
  const sanitized = messages
    .filter((message): message is Assistant => message.role === 'assistant')
    .map((message) => {
      if (typeof message.content === 'string') return message;
      const content = message.content.map((part) =>
        part.type === 'tool-call' && part.providerExecuted !== true
          ? { ...part, toolCallId: ids.assigned[index++] ?? part.toolCallId, input: asObject(part.input as Json) }
          : part,
      );
      return { ...message, content };
    });
  return JSON.parse(JSON.stringify(sanitized)) as Json;
}

/** Providers reject a call whose input is not an object. The result of the call reports the mistake. */
function asObject(input: Json): Json {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : {};
}

/** Makes the ids of tool calls unique within a conversation. Some providers repeat ids or leave them empty. */
export class UniqueCallIds {
  readonly #taken: Set<string>;
  /** The ids of this turn, in the order of its calls. */
  readonly assigned: string[] = [];

  constructor(conversation: Conversation) {
    this.#taken = new Set(conversation.turns.flatMap(({ calls }) => calls.map(({ id }) => id)));
  }

  assign(id: string): string {
    let unique = id;
    for (let n = this.#taken.size; unique === '' || this.#taken.has(unique); n++) unique = `call_${n}`;
    this.#taken.add(unique);
    this.assigned.push(unique);
    return unique;
  }
}

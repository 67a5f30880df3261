import type { Json } from '../json.ts';

/** What a model sees of an execution: never a requestId nor a token. @experimental */
export interface Conversation {
  readonly system: string;
  readonly prompt: string;
  readonly turns: readonly ConversationTurn[];
}

/** @experimental */
export interface ConversationTurn {
  readonly text: string;
  readonly calls: readonly ConversationCall[];
  /** What the provider gave as `keep`, to be sent back as it was. */
  readonly keep?: Json;
}

/** @experimental */
export interface ConversationCall {
  /** The provider's: unique in a turn, and no key of ours. */
  readonly id: string;
  readonly tool: string;
  readonly parameters: Json;
  readonly result: Json;
  /** Names of parameters that a human changed before the tool ran. */
  readonly changed?: readonly string[];
}

/** @experimental */
export interface ModelTool {
  readonly tag: string;
  readonly description: string;
  /** JSON Schema. */
  readonly schema: { readonly [keyword: string]: Json };
}

/** @experimental */
export type ModelEvent =
  | { readonly type: 'text'; readonly text: string }
  /** `malformed`: the model wrote no JSON; `parameters` is then what it wrote. */
  | {
      readonly type: 'tool_call';
      readonly id: string;
      readonly tool: string;
      readonly parameters: Json;
      readonly malformed?: true;
    }
  /** The last event of a turn, and of none that failed. */
  | { readonly type: 'finished'; readonly inputTokens: number; readonly outputTokens: number; readonly keep?: Json };

/** Throws where the model cannot be had; what it throws is told to the caller and never to a model. @experimental */
export interface ModelProvider {
  turn(conversation: Conversation, tools: readonly ModelTool[], signal: AbortSignal): AsyncIterable<ModelEvent>;
}

/** @experimental */
export interface ModelOptions {
  readonly model: string;
  /** What the definition gives beside: base URL, key, headers. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Called once for an agent, when it is first used; throws `driver_missing` or `agent_invalid`. @experimental */
export type ModelFactory = (options: ModelOptions) => ModelProvider | Promise<ModelProvider>;

/** What the model `scripted` says in a turn. @experimental */
export interface ScriptedTurn {
  readonly text?: string;
  readonly calls?: readonly { readonly tool: string; readonly parameters?: Json }[];
}

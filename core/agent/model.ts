import type { Json } from '../json.ts';

/** An execution as sent to the model. Never contains a requestId or a token. @experimental */
export interface Conversation {
  readonly system: string;
  readonly prompt: string;
  readonly turns: readonly ConversationTurn[];
}

/** @experimental */
export interface ConversationTurn {
  readonly text: string;
  readonly calls: readonly ConversationCall[];
  /** The `providerState` of the turn's `finished` event, unchanged. */
  readonly providerState?: Json;
}

/** @experimental */
export interface ConversationCall {
  /** The provider's id of the call, unique within a turn. */
  readonly id: string;
  /** The name of the tool, as in `ModelTool.tag`. */
  readonly tool: string;
  readonly parameters: Json;
  readonly result: Json;
  /** Names of parameters that a human changed before the tool ran. */
  readonly changed?: readonly string[];
  /** Their values with which the tool ran, sensitive ones masked. */
  readonly executedWith?: { readonly [name: string]: Json };
}

/** @experimental */
export interface ModelTool {
  /** The tool's tag with an underscore for each dot and colon: 1 to 128 of A-Z a-z 0-9 _ - */
  readonly tag: string;
  readonly description: string;
  /** JSON Schema. */
  readonly schema: { readonly [keyword: string]: Json };
}

/** @experimental */
export type ModelEvent =
  | { readonly type: 'text'; readonly text: string }
  /** `malformed`: the model's parameters are not valid JSON, and `parameters` is their text. */
  | {
      readonly type: 'tool_call';
      readonly id: string;
      readonly tool: string;
      readonly parameters: Json;
      readonly malformed?: true;
    }
  /**
   * The last event of a turn that did not fail. `providerState` is sent back with later turns, such as reasoning and
   * signatures.
   */
  | {
      readonly type: 'finished';
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly providerState?: Json;
    };

/** A model that is called for one turn at a time. An error fails the run; it is never sent to a model. @experimental */
export interface ModelProvider {
  turn(conversation: Conversation, tools: readonly ModelTool[], signal: AbortSignal): AsyncIterable<ModelEvent>;
}

/** @experimental */
export interface ModelOptions {
  readonly model: string;
  /** `model.settings` of the definition: base URL, key, headers. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Called once per agent, when its definition is awaited or on first use. Throws `driver_missing` or `agent_invalid`. @experimental */
export type ModelFactory = (options: ModelOptions) => ModelProvider | Promise<ModelProvider>;

/** A turn that the provider `scripted` replays. @experimental */
export interface ScriptedTurn {
  readonly text?: string | undefined;
  readonly calls?: readonly { readonly tool: string; readonly parameters?: Json }[];
}

import type { Json } from '../json.ts';

export type ModelEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly tool: string; readonly parameters: Json }
  | { readonly type: 'finished'; readonly inputTokens: number; readonly outputTokens: number };

export interface ModelProvider {
  turn(conversation: Json, tools: Json, signal: AbortSignal): AsyncIterable<ModelEvent>;
}

export type ModelFactory = (options: { readonly model: string }) => ModelProvider;

import { tooLarge } from '../approval/digest.ts';
import { newRequestId } from '../approval/id.ts';
import { SvcError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { CompiledAgent } from './define.ts';
import type { ExecutionState, Step, StepCall, Usage } from './execution.ts';
import { withoutLarge } from './keep.ts';
import type { Conversation, ModelProvider } from './model.ts';
import { ownJson, storable } from './own-json.ts';

/** Asks the model for its next turn. What it throws leaves no trace in the execution: the turn can be asked for again. */
export async function askModel(
  provider: ModelProvider,
  agent: CompiledAgent,
  state: ExecutionState,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<Step> {
  const tools = [...agent.tools.values()].map(({ tag, description, schema }) => ({ tag, description, schema }));
  let text = '';
  const calls: StepCall[] = [];
  const large = new Set<string>();
  let end: { readonly usage: Usage; readonly keep: Json } | undefined;
  for await (const event of provider.turn(conversationOf(agent, state), tools, signal)) {
    switch (event.type) {
      case 'text':
        text += event.text;
        onText(event.text);
        break;
      case 'tool_call': {
        const owned = ownJson(event.parameters);
        const written = 'value' in owned ? owned.value : storable(JSON.stringify(event.parameters));
        const oversized = tooLarge(written);
        if (oversized) large.add(JSON.stringify(written));
        const malformed = event.malformed === true || !('value' in owned);
        const { id, tool } = event;
        const sensitive = agent.tools.get(tool)?.sensitive ?? [];
        calls.push({
          id: storable(id),
          requestId: newRequestId(),
          tool: storable(tool),
          parameters: oversized ? {} : written,
          ...(malformed && { malformed }),
          ...(oversized && { oversized }),
          ...(sensitive.length > 0 && { sensitive }),
        });
        break;
      }
      case 'finished': {
        const { inputTokens, outputTokens } = event;
        const kept = ownJson(event.keep ?? null);
        end = { usage: { inputTokens, outputTokens }, keep: 'value' in kept ? kept.value : null };
      }
    }
  }
  signal.throwIfAborted();
  if (!end) throw new SvcError('model_failed', 'The model ended its turn without saying so.');
  const keep = withoutLarge(end.keep, large);
  return { text: storable(text), calls, usage: end.usage, ...(keep !== null && { keep }) };
}

/** What the model sees of an execution whose calls all have results. */
function conversationOf(agent: CompiledAgent, { prompt, steps }: ExecutionState): Conversation {
  return {
    system: agent.systemPrompt,
    prompt,
    turns: steps.map(({ text, calls, keep }) => ({
      text,
      calls: calls.map(({ id, tool, parameters, outcome }) => ({
        id,
        tool,
        parameters,
        result: outcome?.result ?? null,
        ...(outcome?.changed !== undefined && { changed: outcome.changed }),
      })),
      ...(keep !== undefined && { keep }),
    })),
  };
}

import { tooLarge } from '../approval/digest.ts';
import { newRequestId } from '../approval/id.ts';
import { SvcError } from '../errors.ts';
import { isPlainObject, type Json } from '../json.ts';
import { pathText } from '../schema/shape.ts';
import type { CompiledAgent } from './define.ts';
import type { ExecutionState, Step, StepCall, Usage } from './execution.ts';
import { withoutLarge } from './keep.ts';
import type { Conversation, ModelProvider } from './model.ts';
import { type Owned, ownJson, storable } from './own-json.ts';

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
        const { id, tool, parameters = {} } = event;
        const owned = ownJson(parameters);
        const written = 'value' in owned ? owned.value : storable(JSON.stringify(parameters));
        const oversized = tooLarge(written);
        if (oversized) large.add(JSON.stringify(written));
        const malformed = event.malformed === true ? 'they are not JSON' : 'why' in owned && whyNot(owned);
        const sensitive = sensitiveIn(agent, tool, written);
        calls.push({
          id: storable(id),
          requestId: newRequestId(),
          tool: storable(tool),
          parameters: oversized ? {} : written,
          ...(malformed !== false && { malformed }),
          ...(oversized && { oversized }),
          ...(sensitive.length > 0 && { sensitive }),
        });
        break;
      }
      case 'finished': {
        const { inputTokens = 0, outputTokens = 0 } = event;
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

function whyNot({ path, why }: Exclude<Owned, { value: Json }>): string {
  return path.length === 0 ? `they are what ${why}` : `${pathText(path)} ${why}`;
}

/**
 * Names that are shown to nobody but the model and who decides. A value that should have one of them may stand under
 * another, where the model misspelt that or the tool's.
 */
function sensitiveIn(agent: CompiledAgent, tag: string, parameters: Json): readonly string[] {
  const tool = agent.tools.get(tag);
  const isAny = tool ? tool.sensitive.length > 0 : [...agent.tools.values()].some((one) => one.sensitive.length > 0);
  if (!isAny) return [];
  const known =
    tool && isPlainObject(tool.schema) && isPlainObject(tool.schema.properties) ? tool.schema.properties : {};
  const strange = isPlainObject(parameters)
    ? Object.keys(parameters).filter((name) => !Object.hasOwn(known, name))
    : [];
  return [...(tool?.sensitive ?? []), ...strange];
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

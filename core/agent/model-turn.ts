import { newRequestId } from '../approval/request.ts';
import { SvcError } from '../errors.ts';
import { isPlainObject, type Json } from '../json.ts';
import { isOversized } from '../tool/call-digest.ts';
import { type SafeJsonResult, storableText, toSafeJson } from '../tool/safe-json.ts';
import { nameForModel } from '../tool/tool.ts';
import { pathText } from '../validate-shape.ts';
import type { CompiledAgent } from './define.ts';
import type { ExecutionState, ExecutionStep, StepCall, Usage } from './execution-record.ts';
import type { Conversation, ModelProvider } from './model.ts';

/** Requests the next turn from the model. An error leaves the execution unchanged, so the turn can be retried. */
export async function requestModelTurn(
  provider: ModelProvider,
  agent: CompiledAgent,
  state: ExecutionState,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<ExecutionStep> {
  const tags = new Map([...agent.tools.keys()].map((tag) => [nameForModel(tag), tag]));
  const tools = [...agent.tools.values()].map(({ tag, description, schema }) => ({
    tag: nameForModel(tag),
    description,
    schema,
  }));
  let text = '';
  const calls: StepCall[] = [];
  const oversizedTexts = new Set<string>();
  let end: { readonly usage: Usage; readonly providerState: Json } | undefined;
  for await (const event of provider.turn(conversationOf(agent, state), tools, signal)) {
    switch (event.type) {
      case 'text':
        text += event.text;
        onText(event.text);
        break;
      case 'tool_call': {
        const { id, parameters = {} } = event;
        const tool = tags.get(event.tool) ?? event.tool;
        const safe = toSafeJson(parameters);
        const written = 'value' in safe ? safe.value : storableText(jsonText(parameters));
        const oversized = isOversized(written);
        if (oversized) oversizedTexts.add(JSON.stringify(written));
        const malformed = event.malformed === true ? 'they are not JSON' : 'why' in safe && problemOf(safe);
        const sensitive = sensitiveNames(agent, tool, written);
        calls.push({
          id: storableText(id),
          requestId: newRequestId(),
          tool: storableText(tool),
          parameters: oversized ? {} : written,
          ...(malformed !== false && { malformed }),
          ...(oversized && { oversized }),
          ...(sensitive.length > 0 && { sensitive }),
        });
        break;
      }
      case 'finished': {
        const { inputTokens = 0, outputTokens = 0 } = event;
        const safe = toSafeJson(event.providerState ?? null);
        end = { usage: { inputTokens, outputTokens }, providerState: 'value' in safe ? safe.value : null };
      }
    }
  }
  signal.throwIfAborted();
  if (!end) throw new SvcError('model_failed', 'The model ended its turn without a finish event.');
  const providerState = withoutOversized(end.providerState, oversizedTexts);
  return { text: storableText(text), calls, usage: end.usage, ...(providerState !== null && { providerState }) };
}

/** The text of parameters that are not plain JSON. */
function jsonText(parameters: unknown): string {
  try {
    return JSON.stringify(parameters);
  } catch {
    return '(not JSON, or nested too deeply)';
  }
}

function problemOf({ path, why }: Exclude<SafeJsonResult, { value: Json }>): string {
  return path.length === 0 ? `the value ${why}` : `${pathText(path)} ${why}`;
}

/**
 * The parameters to mask. Includes names that the tool does not define, and all names of a call to an unknown tool: the
 * model may have misspelt a sensitive parameter or the tool.
 */
function sensitiveNames(agent: CompiledAgent, tag: string, parameters: Json): readonly string[] {
  const tool = agent.tools.get(tag);
  const hasSensitive = tool
    ? tool.sensitive.length > 0
    : [...agent.tools.values()].some(({ sensitive }) => sensitive.length > 0);
  if (!hasSensitive) return [];
  const known =
    tool && isPlainObject(tool.schema) && isPlainObject(tool.schema.properties) ? tool.schema.properties : {};
  const unknown = isPlainObject(parameters)
    ? Object.keys(parameters).filter((name) => !Object.hasOwn(known, name))
    : [];
  return [...(tool?.sensitive ?? []), ...unknown];
}

/** The conversation so far. Every call of its turns has a result. */
function conversationOf(agent: CompiledAgent, { prompt, steps }: ExecutionState): Conversation {
  return {
    system: agent.systemPrompt,
    prompt,
    turns: steps.map(({ text, calls, providerState }) => ({
      text,
      calls: calls.map(({ id, tool, parameters, outcome }) => ({
        id,
        tool: nameForModel(tool),
        parameters,
        result: outcome?.result ?? null,
        ...(outcome?.changed !== undefined && { changed: outcome.changed }),
        ...(outcome?.executedWith !== undefined && { executedWith: outcome.executedWith }),
      })),
      ...(providerState !== undefined && { providerState }),
    })),
  };
}

/** Removes oversized parameters from the provider's state. Null if the state contains them in another form. */
function withoutOversized(providerState: Json, oversizedTexts: ReadonlySet<string>): Json {
  if (oversizedTexts.size === 0) return providerState;
  const rest = replaceWithEmpty(providerState, oversizedTexts);
  return isOversized(rest) ? null : rest;
}

/** Replaces each value with an empty object, because providers reject a call without parameters. */
function replaceWithEmpty(value: Json, texts: ReadonlySet<string>): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (texts.has(JSON.stringify(value))) return {};
  if (Array.isArray(value)) return value.map((item) => replaceWithEmpty(item, texts));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, replaceWithEmpty(member, texts)]));
}

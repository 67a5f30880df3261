import { isPlainObject, type Json } from '../json.ts';
import type { StepCall } from './execution.ts';
import type { ToolResult } from './run.ts';

const MASKED = { masked: true } as const;

/** Parameters as events, outcomes and lists show them. What has no names, or is no JSON, is masked as a whole. */
export function shownParameters({ parameters, sensitive }: Pick<StepCall, 'parameters' | 'sensitive'>): Json {
  if (sensitive === undefined) return parameters;
  if (!isPlainObject(parameters)) return MASKED;
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, sensitive.includes(name) ? MASKED : (value as Json)]),
  );
}

/** What the model is told, but for the parameters that results which are not the handler's repeat. */
export function shownResult(call: StepCall, { status, result, changed }: Omit<ToolResult, 'tool'>): ToolResult {
  const isObject = call.sensitive !== undefined && isPlainObject(result);
  const repeats = isObject && 'parameters' in result && (status !== 'completed' || result.error === 'result_not_kept');
  const shown = repeats ? { ...result, parameters: masked(call, result.parameters) } : result;
  return { tool: call.tool, status, result: shown as Json, ...(changed !== undefined && { changed }) };
}

function masked({ sensitive }: StepCall, parameters: Json | undefined): Json {
  return shownParameters({ parameters: parameters ?? null, ...(sensitive !== undefined && { sensitive }) });
}

import { isPlainObject, type Json } from '../json.ts';
import type { StepCall } from './execution.ts';
import type { ToolResult } from './run.ts';

const MASKED = { masked: true } as const;

/** Parameters as events, outcomes and lists show them. */
export function shownParameters({ parameters, sensitive }: Pick<StepCall, 'parameters' | 'sensitive'>): Json {
  if (sensitive === undefined || !isPlainObject(parameters)) return parameters;
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, sensitive.includes(name) ? MASKED : (value as Json)]),
  );
}

/** What the model is told, but for the parameters that results of calls that did not run repeat. */
export function shownResult(call: StepCall, { status, result, changed }: Omit<ToolResult, 'tool'>): ToolResult {
  const repeats = call.sensitive !== undefined && status !== 'completed' && isPlainObject(result);
  const shown = repeats && 'parameters' in result ? { ...result, parameters: masked(call, result.parameters) } : result;
  return { tool: call.tool, status, result: shown as Json, ...(changed !== undefined && { changed }) };
}

function masked({ sensitive }: StepCall, parameters: Json | undefined): Json {
  return shownParameters({ parameters: parameters ?? null, ...(sensitive !== undefined && { sensitive }) });
}

import { isDeep, storableJson } from '../agent/own-json.ts';
import type { Tool } from '../agent/tool.ts';
import type { Context } from './context.ts';
import { failed, jsonResult } from './outcome.ts';
import type { Outcome, Parameters } from './request.ts';

/** Never throws: what a handler throws is a result. */
export async function execute(
  tool: Tool,
  context: Context,
  parameters: Parameters,
  asked: { readonly tool: string; readonly parameters: Parameters },
): Promise<Outcome> {
  try {
    const result = jsonResult(await tool.handler(context, parameters));
    if (result !== undefined) return { status: 'completed', result: storableJson(result) };
    return failed(new Error('It ran, and its result cannot be written as JSON.'), asked);
  } catch (error) {
    return failed(error, asked);
  }
}

/** Bytes of a result that are kept for whoever asks for it again. */
const RESULT_LIMIT = 256 * 1024;

/** What is stored of an outcome: what a handler gave may be more than is kept, what stands in its place never is. */
export function kept(outcome: Outcome, tool: string): Outcome {
  const { status, result } = outcome;
  if (status !== 'completed') return outcome;
  if (isDeep(result)) return notKept(outcome, tool, 'nested too deep');
  return Buffer.byteLength(JSON.stringify(result)) > RESULT_LIMIT ? notKept(outcome, tool) : outcome;
}

export function notKept({ status }: Outcome, tool: string, why = 'too large'): Outcome {
  const message = `The tool ran; its result was ${why} to be kept.`;
  return { status, result: { error: 'result_not_kept', message, tool } };
}

import type { Json } from '../json.ts';

/** The part of a tool call's outcome that the model receives. */
export interface ModelResult {
  readonly result: Json;
  /** Names of the parameters that a human changed before the tool ran. */
  readonly changed?: readonly string[];
}

/** Sent next to the result and never inside it, where the model would mistake it for the tool's own words. */
export function changeNote(changed: readonly string[]): string {
  return `A human changed these parameters before the tool ran: ${changed.join(', ')}.`;
}

/** The error that replaces a return value that cannot be serialized. */
export const NOT_SERIALIZABLE = 'It ran, but its result cannot be serialized as JSON.';

/** A handler's return value as JSON; undefined if it cannot be serialized. */
export function jsonResult(value: unknown): Json | undefined {
  if (value === undefined) return null;
  try {
    return JSON.parse(JSON.stringify(value) ?? 'null') as Json;
  } catch {
    return undefined;
  }
}

/** A handler's error as the model reads it. */
export function failureResult(message: string) {
  return { error: 'tool_failed', message: `The tool failed: ${message}` } as const;
}

/** The text for a model: the result as JSON and, if a human changed parameters, a line that names them. */
export function modelText({ result, changed = [] }: ModelResult): string {
  // The result of an ungated call is what the handler returned, which need not be JSON.
  const json = jsonResult(result);
  const text = JSON.stringify(json === undefined ? failureResult(NOT_SERIALIZABLE) : json);
  return changed.length === 0 ? text : `${text}\n${changeNote(changed)}`;
}

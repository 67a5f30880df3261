import type { Json } from '../json.ts';

/** The part of a tool call's outcome that the model receives. */
export interface ModelResult {
  readonly result: Json;
  /** Names of the parameters that a human changed before the tool ran. */
  readonly changed?: readonly string[];
  /** Their values with which the tool ran, sensitive ones masked; absent if they are too long for a note. */
  readonly executedWith?: { readonly [name: string]: Json };
}

/** Sent next to the result and never inside it, where the model would mistake it for the tool's own words. */
export function changeNote({ changed = [], executedWith }: Omit<ModelResult, 'result'>): string {
  const values = executedWith === undefined ? '' : ` It ran with ${JSON.stringify(executedWith)}.`;
  const names = `A reviewer changed these parameters before the tool ran: ${changed.join(', ')}.`;
  return `${names}${values} Do not call it again with the first parameters.`;
}

const MAX_NOTE_LENGTH = 2_000;
/** What the model reads in place of a sensitive value. */
export const MASKED_VALUE = '[masked]';

/** The values for the note. */
export function executedValues(
  parameters: { readonly [name: string]: Json },
  changed: readonly string[],
  sensitive: readonly string[] = [],
): { readonly [name: string]: Json } | undefined {
  const values = changed.map((name) => [name, sensitive.includes(name) ? MASKED_VALUE : (parameters[name] ?? null)]);
  const executedWith = Object.fromEntries(values) as { [name: string]: Json };
  return JSON.stringify(executedWith).length <= MAX_NOTE_LENGTH ? executedWith : undefined;
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
export function modelText({ result, ...change }: ModelResult): string {
  // The result of an ungated call is what the handler returned, which need not be JSON.
  const json = jsonResult(result);
  const text = JSON.stringify(json === undefined ? failureResult(NOT_SERIALIZABLE) : json);
  return change.changed?.length ? `${text}\n${changeNote(change)}` : text;
}

import type { Json } from '../json.ts';
import { escapeRegExp } from '../match-text.ts';
import type { ToolParameters } from './parameters.ts';

const MASK = '[masked]';
/** A shorter value is masked only where it is a word of its own, because it also occurs in other words. */
const MIN_DISTINCT_LENGTH = 4;
/** Limits for one regular expression, whose size is limited too. Longer values are only found in the same case. */
const MAX_PATTERN_LENGTH = 500;
const MAX_PATTERNS = 200;

/**
 * Replaces the values of sensitive parameters in a text, in any case: as they are, as in JSON and as in a URL. A value
 * that the text quotes in another form, such as a part of it, is not found.
 */
export function maskSensitive(
  text: string,
  names: readonly string[] | undefined,
  ...calls: readonly ToolParameters[]
): string {
  if (names === undefined || names.length === 0) return text;
  const values = new Set<string>();
  for (const parameters of calls) for (const name of names) addValues(parameters[name], values);
  // The longest first: one value may be a part of another.
  const sorted = [...values].sort((one, other) => other.length - one.length);
  const isLong = (value: string) => value.length > MAX_PATTERN_LENGTH;
  let masked = text;
  for (const value of sorted.filter(isLong)) masked = masked.replaceAll(value, MASK);
  const short = sorted.filter((value) => !isLong(value));
  for (let at = 0; at < short.length; at += MAX_PATTERNS) {
    const patterns = short.slice(at, at + MAX_PATTERNS).map(patternOf);
    masked = masked.replace(new RegExp(patterns.join('|'), 'giu'), MASK);
  }
  return masked;
}

function addValues(value: Json | undefined, found: Set<string>): void {
  if (Array.isArray(value)) for (const item of value) addValues(item, found);
  else if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) addValues(member, found);
  } else if (typeof value === 'number') found.add(String(value));
  else if (typeof value === 'string' && value.trim() !== '') {
    for (const form of [
      value,
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value),
      new URLSearchParams({ '': value }).toString().slice(1),
    ])
      found.add(form);
  }
}

function patternOf(value: string): string {
  const escaped = escapeRegExp(value);
  return value.length < MIN_DISTINCT_LENGTH ? `(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])` : escaped;
}

import { misleadingCharacters } from './misleading.ts';

const STRING = /"(?:[^"\\]|\\.)*"/g;
const ORDINARY = /^(?!.* {2})[ -~]*$/;

/** Escapes what misleads in JSON text as `\uXXXX`; its value stays the same. */
export function escapeJson(json: string): string {
  return json.replace(STRING, (string) => (ORDINARY.test(string) ? string : escapeString(string)));
}

function escapeString(string: string): string {
  const text = JSON.parse(string) as string;
  const misleading = misleadingCharacters(text, 'json');
  if (misleading.size === 0) return string;
  let escaped = '';
  let at = 0;
  for (const character of text) {
    escaped += misleading.has(at) ? escapeUnits(character) : JSON.stringify(character).slice(1, -1);
    at += character.length;
  }
  return `"${escaped}"`;
}

function escapeUnits(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

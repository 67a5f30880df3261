import { isPlainObject, type Json } from '../json.ts';
import { DEFAULT_WIDTH, foldLine } from './fold.ts';
import { type DisplayedText, type DisplayLimit, limitText, shorten } from './limit.ts';
import { skeleton } from './look-alikes.ts';
import { type Misleading, misleadingCharacters } from './misleading.ts';
import { displayText, writeOut } from './text.ts';

const INDENT = '  ';
/** Deeper members are not indented further, so that a line always has room. */
const MAX_INDENT = 16;

/** @experimental */
export interface DisplayOptions {
  /** The columns of a line in the medium. Default: 72. */
  readonly width?: number;
}

/**
 * Indented JSON, safe to show to a person. What misleads is written out as in `displayText`, and named in lines before it
 * that begin with `!`. A line wider than `width` columns is broken: ↪ begins the lines that continue it. Without a limit
 * the text is complete. With one, a longer text is cut and ends with its full length, and `complete` is false.
 * @experimental
 */
export function displayJson(value: Json | object, limit: DisplayLimit & DisplayOptions): DisplayedText;
export function displayJson(value: Json | object, options?: DisplayOptions): string;
export function displayJson(
  value: Json | object,
  { width = DEFAULT_WIDTH, ...limit }: DisplayOptions & Partial<DisplayLimit> = {},
): string | DisplayedText {
  const json = toJson(value);
  const text = [...warningLines(json, width), ...jsonLines(json, width)].join('\n');
  const { maxLength } = limit;
  return maxLength === undefined ? text : limitText(text, { ...limit, maxLength });
}

/** The lines of `displayJson` without its warnings. */
export function jsonLines(value: Json | object, width: number): string[] {
  return membersOf(toJson(value), '', '', 0).flatMap((line) => foldLine(line, width));
}

/** JSON on one line, safe to show to a person. */
export function inlineJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(inlineJson).join(',')}]`;
  if (!isPlainObject(value)) return scalar(value);
  const members = Object.entries(value).map(([name, member]) => `${scalar(name)}:${inlineJson(member as Json)}`);
  return `{${members.join(',')}}`;
}

function toJson(value: Json | object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

function membersOf(value: Json, before: string, after: string, depth: number): string[] {
  const indent = INDENT.repeat(Math.min(depth, MAX_INDENT));
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (typeof value !== 'object' || value === null) return [`${indent}${before}${scalar(value)}${after}`];
  const members = Object.entries(value);
  if (members.length === 0) return [`${indent}${before}${open}${close}${after}`];
  const inner = members.flatMap(([name, member], at) =>
    membersOf(member, Array.isArray(value) ? '' : `${scalar(name)}: `, at < members.length - 1 ? ',' : '', depth + 1),
  );
  return [`${indent}${before}${open}`, ...inner, `${indent}${close}${after}`];
}

function scalar(value: Json): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return `"${writeOut(value, 'json', (part) => JSON.stringify(part).slice(1, -1))}"`;
}

const MAX_WARNINGS = 8;
const MAX_PATH = 60;
const MAX_SAMPLE = 24;
/** A shorter run of spaces moves no text to the next line. */
const LONG_RUN = / {8,}/;

const WARNINGS = {
  letters: 'letters that look like others',
  punctuation: 'characters that look like punctuation',
  invisible: 'invisible characters',
} as const;

/** What misleads in a value: one line for each string and reason, beginning with `!`. */
export function warningLines(value: Json | object, width = DEFAULT_WIDTH): string[] {
  // Long paths are shortened, and may then be equal.
  const found = [...new Set(warningsOf(toJson(value), []))];
  const more = found.length - MAX_WARNINGS;
  const shown = more > 0 ? [...found.slice(0, MAX_WARNINGS), `and ${more} more`] : found;
  return shown.flatMap((warning) => foldLine(`! ${warning}`, width));
}

function warningsOf(value: Json, path: readonly (string | number)[]): string[] {
  if (typeof value === 'string') return stringWarnings(value, path, '');
  if (Array.isArray(value)) return value.flatMap((item, at) => warningsOf(item, [...path, at]));
  if (!isPlainObject(value)) return [];
  const names = new Map<string, string>();
  return Object.entries(value).flatMap(([name, member]) => {
    const like = names.get(skeleton(name));
    names.set(skeleton(name), name);
    return [
      ...stringWarnings(name, path, 'the name has '),
      ...(like === undefined ? [] : [`${pathText(path)}the names ${scalar(like)} and ${scalar(name)} look alike`]),
      ...warningsOf(member as Json, [...path, name]),
    ];
  });
}

function stringWarnings(text: string, path: readonly (string | number)[], what: string): string[] {
  const misleading = misleadingCharacters(text, 'json');
  const first = new Map<Misleading, number>();
  for (const [at, kind] of misleading) if (!first.has(kind)) first.set(kind, at);
  const warnings = Object.entries(WARNINGS).flatMap(([kind, warning]) => {
    const at = first.get(kind as Misleading);
    return at === undefined ? [] : [`${warning}: ${sampleAt(text, at)}`];
  });
  const marks = [...misleading.values()].filter((kind) => kind === 'combining').length;
  if (marks > 0) warnings.push(`${marks} combining marks beyond ordinary spelling`);
  const [spaces] = first.has('spaces') ? (LONG_RUN.exec(text) ?? []) : [];
  if (spaces !== undefined) warnings.push(`a run of ${spaces.length} spaces`);
  return warnings.map((warning) => `${pathText(path)}${what}${warning}`);
}

/** The word around a character. */
function sampleAt(text: string, at: number): string {
  const from = Math.max(text.lastIndexOf(' ', at) + 1, at - MAX_SAMPLE);
  const [sample = ''] = /^\S+/.exec(text.slice(from, at + MAX_SAMPLE)) ?? [];
  return shorten(displayText(sample), 2 * MAX_SAMPLE).text;
}

function pathText(path: readonly (string | number)[]): string {
  if (path.length === 0) return '';
  const text = path.reduce<string>(
    (before, step) =>
      typeof step === 'number'
        ? `${before}[${step}]`
        : before === ''
          ? displayText(step)
          : `${before}.${displayText(step)}`,
    '',
  );
  return `${shorten(text, MAX_PATH).text}: `;
}

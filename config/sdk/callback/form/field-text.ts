import { escapeJson } from '../../../../core/display/escape-json.ts';
import { misleadingCharacters } from '../../../../core/display/misleading.ts';
import { type Json, lossyNumber, readExactJson } from '../../../../core/json.ts';

/** What a field says, or why it cannot be used. Undefined: the value is left out. */
export type Reading = { readonly value: Json | undefined } | { readonly problem: string };

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})t\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:z|[+-]\d{2}:\d{2})$/i;

/** Browsers send every line break as CRLF. */
export const withPlainBreaks = (text: string): string => text.replace(/\r\n?/g, '\n');

/** As in the original, if all its line breaks are CRLF. */
export function withBreaksOf(original: Json | undefined, text: string): string {
  return typeof original === 'string' && hasOnlyCrlf(original) ? text.replaceAll('\n', '\r\n') : text;
}

const hasOnlyCrlf = (text: string): boolean => text.includes('\r\n') && !/\r(?!\n)|(?<!\r)\n/.test(text);

/** Whether a person sees all of a text in a text field. */
export function isPlainText(text: string): boolean {
  if (/\r/.test(text) && !hasOnlyCrlf(text)) return false;
  return ![...misleadingCharacters(withPlainBreaks(text), 'lines').values()].includes('invisible');
}

export function jsonText(value: Json | undefined): string {
  return value === undefined ? '' : escapeJson(JSON.stringify(value, null, 2));
}

export function readJson(text: string): Reading {
  return text.trim() === '' ? { value: undefined } : readExactJson(text);
}

/** Coerces nothing: a number that a double cannot represent is a problem, and so is any other text. */
export function readNumber(given: string, isNullable: boolean): Reading {
  const text = given.trim();
  if (text === '') return { value: undefined };
  if (isNullable && text === 'null') return { value: null };
  if (!NUMBER.test(text)) return { problem: 'This is not a number. Write it as 1250 or 0.5.' };
  const isLossy = lossyNumber(text) !== undefined;
  return isLossy ? { problem: `The number is too long: it would become ${Number(text)}.` } : { value: Number(text) };
}

const FORMATS: readonly (readonly [format: string, isValid: (text: string) => boolean, hint: string])[] = [
  ['date', isDate, 'A date, as 2026-11-28.'],
  ['date-time', isDateTime, 'A date and time, as 2026-11-28T09:30:00Z.'],
  ['uri', (text) => /^[^\s]+$/.test(text) && URL.canParse(text), 'A URL, as https://shop.example/orders.'],
  ['email', (text) => /^[^\s@]+@[^\s@]+$/.test(text), 'An email address.'],
];

export function formatHint(format: unknown): string | undefined {
  return FORMATS.find(([name]) => name === format)?.[2];
}

export function readText(text: string, format: unknown): Reading {
  const [, isValid, hint] = FORMATS.find(([name]) => name === format) ?? [];
  return isValid && !isValid(text) ? { problem: `This is not valid. ${hint}` } : { value: text };
}

export function isDate(text: string): boolean {
  if (!DATE.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

function isDateTime(text: string): boolean {
  const [, date = ''] = DATE_TIME.exec(text) ?? [];
  return isDate(date) && !Number.isNaN(Date.parse(text.toUpperCase()));
}

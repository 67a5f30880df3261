import { text } from './quote.ts';

const MEANT: Readonly<Record<string, string>> = { '0': '\0', b: '\b', n: '\n', r: '\r', t: '\t', Z: '\x1a' };

/** A text with escapes as what it means. */
export function unescaped(value: string): string {
  return value.replace(/\\(.)/gs, (_, character: string) => MEANT[character] ?? character);
}

/** The text of a string literal, which a server may have marked with its character set; undefined for anything else. */
export function stringOf(literal: string): string | undefined {
  const [, body] = /^(?:_\w+)?'((?:[^'\\]|\\.|'')*)'$/s.exec(literal) ?? [];
  return body === undefined ? undefined : unescaped(body.replaceAll("''", "\\'"));
}

/**
 * A text as an expression that the catalog gives back as it was: beyond the Basic Multilingual Plane its own character
 * set ends, and a literal comes back with question marks.
 */
export function textExpression(value: string): string {
  return isBasic(value) ? text(value) : `convert(0x${Buffer.from(value).toString('hex')} using utf8mb4)`;
}

/** The text of what `textExpression` gives, as a server spells it. */
export function textOf(expression: string): string | undefined {
  const [, hex] = /^convert\(0x((?:[0-9a-f]{2})+) using utf8mb4\)$/i.exec(expression) ?? [];
  return hex === undefined ? stringOf(expression) : Buffer.from(hex, 'hex').toString();
}

/** Bytes that are told as base64, as an expression that the catalog gives back: MariaDB makes a literal of x'ff'. */
export const bytesExpression = (base64: string): string => `unhex('${Buffer.from(base64, 'base64').toString('hex')}')`;

/** The base64 of what `bytesExpression` gives, as a server spells it, or of a number of bytes. */
export function bytesOf(expression: string): string | undefined {
  const [, unhexed, hex = unhexed] =
    /^(?:unhex\((?:_\w+)?'([0-9a-f]*)'\)|(?:0x|x')([0-9a-f]*)'?)$/i.exec(expression) ?? [];
  return hex === undefined ? undefined : Buffer.from(hex, 'hex').toString('base64');
}

export const isBasic = (value: string): boolean => !/[\u{10000}-\u{10ffff}]/u.test(value);

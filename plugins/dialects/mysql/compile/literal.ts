import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { numberLiteral, withMicroseconds } from '../../sql/catalog-values.ts';

/** A literal of the field's type. A timestamp requires a session in UTC. */
export function literal(value: Json, field: Omit<Field, 'name'>): string {
  if (value === null) return 'NULL';
  switch (field.type) {
    case 'integer':
    case 'bigint':
    case 'smallint':
    case 'float':
    case 'double':
    case 'decimal':
      return numberLiteral(value, quoteLiteral);
    case 'boolean':
      return typeof value === 'boolean' ? String(value) : quoteLiteral(String(value));
    case 'binary':
    case 'blob':
      return `x'${Buffer.from(String(value), 'base64').toString('hex')}'`;
    default:
      return quoteLiteral(plainText(value, field));
  }
}

/** The value as a string, as it is stored. */
export function plainText(value: Json, { type }: Pick<Field, 'type'>): string {
  const written = typeof value === 'string' ? value : JSON.stringify(value);
  switch (type) {
    case 'json':
    case 'array':
      return JSON.stringify(value);
    case 'datetime':
      return written.replace('T', ' ');
    case 'timestamp':
      return utcTimestamp(written);
    case 'uuid':
      return written.toLowerCase();
    default:
      return written;
  }
}

/** In UTC and without a zone, which not every server parses. */
function utcTimestamp(value: string): string {
  const at = new Date(value.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));
  if (Number.isNaN(at.getTime()))
    throw new SvcError('value_invalid', `A timestamp is expected, not ${JSON.stringify(value)}.`);
  return withMicroseconds(at, value).slice(0, -1).replace('T', ' ');
}

export const quoteIdentifier = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

const ESCAPES: Readonly<Record<string, string>> = { "'": "''", '\\': '\\\\', '\0': '\\0', '\x1a': '\\Z' };

/** Requires a sql_mode without NO_BACKSLASH_ESCAPES, as the session sets it. */
export const quoteLiteral = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL and Ctrl-Z are to be found
  `'${value.replace(/['\\\0\x1a]/g, (found) => ESCAPES[found] ?? found)}'`;

/** A string as bytes: collations ignore case, accents and trailing spaces. */
export const bytesSql = (value: string): string => `CAST(CONVERT(${value} USING utf8mb4) AS BINARY)`;

const ESCAPED: Readonly<Record<string, string>> = { '0': '\0', b: '\b', n: '\n', r: '\r', t: '\t', Z: '\x1a' };

/** Replaces escape sequences with their characters. */
export function unescapeString(value: string): string {
  return value.replace(/\\(.)/gs, (_, character: string) => ESCAPED[character] ?? character);
}

/** The value of a string literal, with or without a character set; undefined for anything else. */
export function parseString(literal: string): string | undefined {
  const [, body] = /^(?:_\w+)?'((?:[^'\\]|\\.|'')*)'$/s.exec(literal) ?? [];
  return body === undefined ? undefined : unescapeString(body.replaceAll("''", "\\'"));
}

/**
 * A string as an expression that survives the catalog, which returns question marks for supplementary characters (beyond
 * the Basic Multilingual Plane) of a literal.
 */
export function textExpression(value: string): string {
  return isBasicMultilingual(value)
    ? quoteLiteral(value)
    : `convert(0x${Buffer.from(value).toString('hex')} using utf8mb4)`;
}

/** The string of a `textExpression`, as a server spells it. */
export function parseTextExpression(expression: string): string | undefined {
  const [, hex] = /^convert\(0x((?:[0-9a-f]{2})+) using utf8mb4\)$/i.exec(expression) ?? [];
  return hex === undefined ? parseString(expression) : Buffer.from(hex, 'hex').toString();
}

/** Base64 as an expression that survives the catalog: MariaDB stores x'ff' as a string literal. */
export const bytesExpression = (base64: string): string => `unhex('${Buffer.from(base64, 'base64').toString('hex')}')`;

/** The base64 of a `bytesExpression`, as a server spells it, or of a hexadecimal literal. */
export function parseBytesExpression(expression: string): string | undefined {
  const [, unhexed, hex = unhexed] =
    /^(?:unhex\((?:_\w+)?'([0-9a-f]*)'\)|(?:0x|x')([0-9a-f]*)'?)$/i.exec(expression) ?? [];
  return hex === undefined ? undefined : Buffer.from(hex, 'hex').toString('base64');
}

export const isBasicMultilingual = (value: string): boolean => !/[\u{10000}-\u{10ffff}]/u.test(value);

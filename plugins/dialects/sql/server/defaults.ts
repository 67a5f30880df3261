import { type Json, tryParseJson } from '../../../../core/json.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { unquoteLiteral } from '../text-catalog/syntax.ts';
import type { SqlServerSyntax } from './syntax.ts';

type Column = Omit<Field, 'name'>;

/** A string, with the name of a type before it in some literals. */
const STRING = /^(?:(?:JSON|DATE|TIME|TIMESTAMP|UUID|N|U&)(?: WITH(?:OUT)? TIME ZONE)? ?)?'(?:[^']|'')*'$/is;
const NUMERIC: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint', 'float', 'double', 'decimal']);
const NUMBER = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** The default of a column from its text in the catalog: a literal of standard SQL, one of the words of `syntax`, or an expression. */
export function readSqlDefault(
  syntax: Pick<SqlServerSyntax, 'now' | 'uuid'>,
  written: string | null | undefined,
  column: Column,
): Pick<Field, 'default' | 'autoGenerate'> {
  if (written === null || written === undefined || /^null$/i.test(written)) return {};
  const isText = column.type === 'uuid' || column.type === 'string';
  if (isText && written === syntax.uuid) return { autoGenerate: true };
  if (written === syntax.now[column.type]) return { default: 'now' };
  return { default: readSqlLiteral(written, column) ?? { $expression: written } };
}

/** Undefined for text that is not a literal. */
function readSqlLiteral(written: string, column: Column): Json | undefined {
  const { type, items = 'string' } = column;
  const text = written.replace(/^CAST\((.*) AS [\w ]+(?:\(\d+\))?\)$/is, '$1');
  if (STRING.test(text)) {
    const value = unquoteSql(text);
    // Some engines spell a negative number as a text.
    if (NUMERIC.has(type) && NUMBER.test(value)) return readSqlLiteral(value, column);
    if (type === 'json') return tryParseJson(value);
    // Without `arrayLiteral`, an array is JSON in a string.
    const list = type === 'array' ? tryParseJson(value) : undefined;
    return Array.isArray(list) ? list : value;
  }
  if (/^X'[\da-f]*'$/i.test(text)) return Buffer.from(text.slice(2, -1), 'hex').toString('base64');
  if (/^(TRUE|FALSE)$/i.test(text)) return /^true$/i.test(text);
  if (NUMBER.test(text)) {
    if (type === 'boolean') return Number(text) !== 0;
    const isExact = String(Number(text)) === text.toLowerCase() || type === 'float' || type === 'double';
    return isExact ? Number(text) : text;
  }
  const [, elements] = /^ARRAY ?\[(.*)\]$/is.exec(text) ?? [];
  if (elements === undefined) return undefined;
  const parts = elements.match(/(?:[^',]|'(?:[^']|'')*')+/g) ?? [];
  const values = parts.map((part) => readSqlLiteral(part.trim(), { type: items }));
  return values.includes(undefined) ? undefined : (values as Json[]);
}

/** The value of a quoted text, also of one with escaped characters: `U&'caf\00e9'`, `U&"caf\00e9"`. */
export function unquoteSql(text: string): string {
  const quoted = text.slice(text.search(/['"]/));
  const value = quoted.startsWith('"') ? quoted.slice(1, -1).replaceAll('""', '"') : unquoteLiteral(quoted);
  if (!/^U&/i.test(text)) return value;
  return value.replace(/\\(\\|\+[\da-f]{6}|[\da-f]{4})/gi, (_, code: string) =>
    code === '\\' ? code : String.fromCodePoint(Number.parseInt(code.replace('+', ''), 16)),
  );
}

import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { TEXT_TYPES } from '../../shared/text-types.ts';
import { storedType } from './types.ts';

export const hasNative = (from: Field, to: Field): boolean => from.native !== undefined || to.native !== undefined;

const isCharacters = (native: string | undefined): boolean =>
  native === undefined || /^(character|varchar|bpchar|text)\b/i.test(native);

const INTEGER_TYPES: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint']);
const NUMBER_TYPES: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint', 'float', 'double', 'decimal']);
const BINARY_TYPES: ReadonlySet<FieldType> = new Set(['binary', 'blob']);
const DATE_TYPES: ReadonlySet<FieldType> = new Set(['date', 'datetime', 'timestamp']);

/**
 * The elements of a JSON array as text[]. A USING clause cannot have a subquery, so a record type of the system catalog
 * with a column of type text[] is populated.
 */
function jsonElements(column: string): string {
  return `(jsonb_populate_record(NULL::pg_catalog.pg_db_role_setting, jsonb_build_object('setconfig', ${column}))).setconfig`;
}

/**
 * The USING expression of a type change; undefined if an assignment converts, which unlike a cast does not truncate
 * a string. `column` is quoted.
 */
export function conversionExpression(column: string, from: Field, to: Field): string | undefined {
  const type = storedType(to, '');
  if (hasNative(from, to) && from.type === to.type)
    // Every type has a text; few have a cast to another one.
    return from.type === 'text' && [from, to].some(({ native }) => !isCharacters(native))
      ? `${column}::text::${type}`
      : `${column}::${type}`;
  const fromText = (value: string) => (TEXT_TYPES.has(to.type) ? value : `(${value})::${type}`);
  if (from.type === to.type && from.type !== 'array') return undefined;
  if (TEXT_TYPES.has(from.type) && TEXT_TYPES.has(to.type)) return undefined;
  if (BINARY_TYPES.has(from.type) && BINARY_TYPES.has(to.type)) return undefined;
  if (NUMBER_TYPES.has(from.type) && NUMBER_TYPES.has(to.type)) return undefined;
  if (to.type === 'json') return TEXT_TYPES.has(from.type) ? `${column}::jsonb` : `to_jsonb(${column})`;
  if (from.type === 'json' && to.type === 'array' && to.items !== 'json') return `${jsonElements(column)}::${type}`;
  // As JSON: without quotes, "5" and 5 would become the same text, and null no text at all.
  if (from.type === 'json' && (to.type === 'text' || to.type === 'string')) return `${column}::text`;
  if (from.type === 'json') return fromText(`${column} #>> '{}'`);
  if (from.type === 'array' && to.type === 'array') return `${column}::text[]::${type}`;
  if (to.type === 'array') {
    const item = type.slice(0, -2);
    return `CASE WHEN ${column} IS NULL THEN NULL ELSE ARRAY[${column}::text::${item}] END`;
  }
  if (BINARY_TYPES.has(from.type) && TEXT_TYPES.has(to.type)) return `convert_from(${column}, 'UTF8')`;
  if (TEXT_TYPES.has(from.type) && BINARY_TYPES.has(to.type)) return `convert_to(${column}, 'UTF8')`;
  if (from.type === 'boolean' && INTEGER_TYPES.has(to.type)) return `${column}::integer::${type}`;
  if (INTEGER_TYPES.has(from.type) && to.type === 'boolean') return `${column}::bigint <> 0`;
  // Without AT TIME ZONE, the session's time zone would apply.
  if (from.type === 'timestamp' && DATE_TYPES.has(to.type)) return `(${column} AT TIME ZONE 'UTC')::${type}`;
  if (from.type === 'timestamp' && to.type === 'time') return `(${column} AT TIME ZONE 'UTC')::${type}`;
  if (DATE_TYPES.has(from.type) && to.type === 'timestamp') return `${column}::timestamp AT TIME ZONE 'UTC'`;
  if (DATE_TYPES.has(from.type) && DATE_TYPES.has(to.type)) return `${column}::${type}`;
  if (from.type === 'datetime' && to.type === 'time') return `${column}::${type}`;
  return fromText(`${column}::text`);
}

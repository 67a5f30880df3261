import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { columnType } from './types.ts';

const TEXTS: ReadonlySet<FieldType> = new Set(['string', 'text', 'enum']);
const INTEGERS: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint']);
const NUMBERS: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint', 'float', 'double', 'decimal']);
const BYTES: ReadonlySet<FieldType> = new Set(['binary', 'blob']);
const MOMENTS: ReadonlySet<FieldType> = new Set(['date', 'datetime', 'timestamp']);

/**
 * The elements of a JSON array. A conversion may not ask a query, and only a record is filled without one: this table
 * of every server has a column of the type text[].
 */
function texts(column: string): string {
  return `(jsonb_populate_record(NULL::pg_catalog.pg_db_role_setting, jsonb_build_object('setconfig', ${column}))).setconfig`;
}

/**
 * How values of a column become values of another type; undefined where an assignment says it, which unlike a cast
 * refuses to cut a text. `column` is quoted.
 */
export function converted(column: string, from: Field, to: Field): string | undefined {
  const type = columnType(to, '');
  const text = (value: string) => (TEXTS.has(to.type) ? value : `(${value})::${type}`);
  if (from.type === to.type && from.type !== 'array') return undefined;
  if (TEXTS.has(from.type) && TEXTS.has(to.type)) return undefined;
  if (BYTES.has(from.type) && BYTES.has(to.type)) return undefined;
  if (NUMBERS.has(from.type) && NUMBERS.has(to.type)) return undefined;
  if (to.type === 'json') return TEXTS.has(from.type) ? `${column}::jsonb` : `to_jsonb(${column})`;
  if (from.type === 'json' && to.type === 'array' && to.items !== 'json') return `${texts(column)}::${type}`;
  if (from.type === 'json') return text(`${column} #>> '{}'`);
  if (from.type === 'array' && to.type === 'array') return `${column}::text[]::${type}`;
  if (to.type === 'array') {
    const item = type.slice(0, -2);
    return `CASE WHEN ${column} IS NULL THEN NULL ELSE ARRAY[${column}::text::${item}] END`;
  }
  if (BYTES.has(from.type) && TEXTS.has(to.type)) return `convert_from(${column}, 'UTF8')`;
  if (TEXTS.has(from.type) && BYTES.has(to.type)) return `convert_to(${column}, 'UTF8')`;
  if (from.type === 'boolean' && INTEGERS.has(to.type)) return `${column}::integer::${type}`;
  if (INTEGERS.has(from.type) && to.type === 'boolean') return `${column}::bigint <> 0`;
  // The session's time zone would decide otherwise.
  if (from.type === 'timestamp' && MOMENTS.has(to.type)) return `(${column} AT TIME ZONE 'UTC')::${type}`;
  if (from.type === 'timestamp' && to.type === 'time') return `(${column} AT TIME ZONE 'UTC')::${type}`;
  if (MOMENTS.has(from.type) && to.type === 'timestamp') return `${column}::timestamp AT TIME ZONE 'UTC'`;
  if (MOMENTS.has(from.type) && MOMENTS.has(to.type)) return `${column}::${type}`;
  if (from.type === 'datetime' && to.type === 'time') return `${column}::${type}`;
  return text(`${column}::text`);
}

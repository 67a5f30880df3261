import type { FieldType } from '../../../core/schema/types.ts';

const WHOLE = ['INTEGER', 'UNSIGNED INTEGER'];
const NUMBERS = [...WHOLE, 'DOUBLE', 'DECIMAL'];

/** What JSON_TYPE says of elements; a text where a type is not here, and anything goes for JSON. */
const KINDS: Readonly<Partial<Record<FieldType, readonly string[]>>> = {
  smallint: WHOLE,
  integer: WHOLE,
  bigint: WHOLE,
  float: NUMBERS,
  double: NUMBERS,
  decimal: [...NUMBERS, 'STRING'],
  boolean: ['BOOLEAN'],
};

/** Holds for JSON that is no array of such elements. */
export function otherElements(column: string, items: FieldType): string {
  const isNone = `JSON_TYPE(${column}) <> 'ARRAY'`;
  if (items === 'json') return isNone;
  const kinds = [...(KINDS[items] ?? ['STRING']), 'NULL'].map((kind) => `'${kind}'`).join(', ');
  // The servers do not agree on what a column of JSON_TABLE is for an element that is a text.
  const element = `JSON_TYPE(JSON_EXTRACT(${column}, CONCAT('$[', svc_element.n - 1, ']')))`;
  const each = `JSON_TABLE(${column}, '$[*]' COLUMNS (n FOR ORDINALITY)) AS svc_element`;
  return `${isNone} OR EXISTS (SELECT 1 FROM ${each} WHERE ${element} NOT IN (${kinds}))`;
}

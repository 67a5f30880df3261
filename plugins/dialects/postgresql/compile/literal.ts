import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { numberLiteral } from '../../sql/catalog-values.ts';
import { columnType } from './types.ts';

/** A string literal. Requires `standard_conforming_strings`, which the session sets. */
export function quoteLiteral(value: string): string {
  if (value.includes('\0')) {
    throw new SvcError('value_invalid', 'A string contains a NUL character, which PostgreSQL cannot store.', {
      next: ['Remove the character.'],
    });
  }
  return `'${value.replaceAll("'", "''")}'`;
}

/** A literal of the field's type. Numbers have no cast, so that they keep all digits. */
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
    case 'json':
      return `${jsonLiteral(value)}::${columnType(field, '')}`;
    case 'array':
      return `${quoteLiteral(arrayText(asArray(value), field.items ?? 'string'))}::${columnType(field, '')}`;
    case 'string':
    case 'text':
    case 'enum':
      return quoteLiteral(typeof value === 'string' ? value : JSON.stringify(value));
    case 'binary':
    case 'blob':
      return `${quoteLiteral(bytes(value))}::${columnType(field, '')}`;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
    case 'uuid':
      return `${quoteLiteral(typeof value === 'string' ? value : JSON.stringify(value))}::${columnType(field, '')}`;
  }
}

export function jsonLiteral(value: Json): string {
  const written = JSON.stringify(value);
  if (/(?<!\\)(\\\\)*\\u0000/.test(written)) {
    throw new SvcError('value_invalid', 'A JSON value contains a NUL character, which PostgreSQL cannot store.', {
      next: ['Remove the character.'],
    });
  }
  return quoteLiteral(written);
}

function asArray(value: Json): readonly Json[] {
  if (Array.isArray(value)) return value;
  throw new SvcError('value_invalid', `An array is expected, not ${JSON.stringify(value)}.`);
}

const bytes = (base64: Json): string => `\\x${Buffer.from(String(base64), 'base64').toString('hex')}`;

/** `{"a","b"}`: every element is quoted, so that it cannot be read as NULL or as a brace. */
function arrayText(values: readonly Json[], items: FieldType): string {
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(elementText(value, items)))).join(',')}}`;
}

function elementText(value: Json, items: FieldType): string {
  if (items === 'binary' || items === 'blob') return bytes(value);
  return items === 'json' || typeof value !== 'string' ? JSON.stringify(value) : value;
}

function quoted(element: string): string {
  return `"${element.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

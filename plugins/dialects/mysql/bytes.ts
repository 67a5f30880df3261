import type { Field } from '../../../core/schema/model.ts';
import { columnTypes, isLong, STRING_LENGTH } from './types.ts';

const FIXED: Readonly<Record<string, number>> = {
  smallint: 2,
  int: 4,
  bigint: 8,
  float: 4,
  double: 8,
  'tinyint(1)': 1,
  date: 3,
  'time(3)': 5,
  'datetime(3)': 7,
  'timestamp(3)': 6,
  'char(36)': 36,
};

/** The most bytes that a value has, in a key and in a row: a character of a text counts four. */
export function valueBytes(field: Field): number {
  const { type, length, precision = 0, scale = 0, enumValues = [] } = field;
  // A pointer to where it is.
  if (isLong(field)) return 12;
  if (type === 'string') return 4 * (length ?? STRING_LENGTH);
  if (type === 'binary') return length ?? 0;
  if (type === 'decimal') return digitBytes(precision - scale) + digitBytes(scale);
  if (type === 'enum') return enumValues.length > 255 ? 2 : 1;
  return FIXED[columnTypes[type]] ?? 0;
}

const digitBytes = (digits: number): number => 4 * Math.floor(digits / 9) + Math.ceil((digits % 9) / 2);

/** The bytes of a row that is as long as it can be. */
export function rowBytes(fields: readonly Field[]): number {
  const values = fields.map((field) => {
    const bytes = valueBytes(field);
    const counted = field.type === 'string' || (field.type === 'binary' && !isLong(field));
    return bytes + (counted ? (bytes > 255 ? 2 : 1) : 0);
  });
  const optional = fields.filter(({ required, primaryKey }) => !required && !primaryKey);
  return values.reduce((sum, bytes) => sum + bytes, Math.ceil(optional.length / 8));
}

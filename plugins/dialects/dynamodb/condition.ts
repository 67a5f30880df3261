import { isDeepStrictEqual } from 'node:util';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Condition } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import { type Item, isNull } from './attribute.ts';
import { compareDecimals } from './decimal.ts';
import { attributeName } from './sweep.ts';
import { encoded, type Written } from './value.ts';

export type FieldOf = (name: string) => Field & Written;

const SIGNS = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** The conditions in DynamoDB's words. Missing and NULL are null, and what is null is different from any value. */
export function filterOf(where: readonly Condition[], fieldOf: FieldOf): { text: string; values: Item } {
  const values: Record<string, AttributeValue> = {};
  const given = (value: AttributeValue) => {
    const name = `:v${Object.keys(values).length}`;
    values[name] = value;
    return name;
  };
  const parts = where.map((condition) => {
    const name = attributeName(condition.field);
    const field = fieldOf(condition.field);
    const absent = () => `(attribute_not_exists(${name}) OR attribute_type(${name}, ${given({ S: 'NULL' })}))`;
    const equal = (value: Json) => (value === null ? absent() : `${name} = ${given(encoded(value, field))}`);
    if (condition.operator === 'in') {
      return condition.value.length === 0
        ? `(attribute_exists(${name}) AND attribute_not_exists(${name}))`
        : `(${condition.value.map(equal).join(' OR ')})`;
    }
    const { operator, value } = condition;
    if (operator === 'eq') return equal(value);
    if (value === null) return `(attribute_exists(${name}) AND NOT attribute_type(${name}, ${given({ S: 'NULL' })}))`;
    return `${name} ${SIGNS[operator]} ${given(encoded(value, field))}`;
  });
  return { text: parts.join(' AND '), values };
}

/** The same here, for an item that was read again. */
export function holds(condition: Condition, item: Item, fieldOf: FieldOf): boolean {
  const stored = item[condition.field];
  const field = fieldOf(condition.field);
  const equal = (value: Json) =>
    value === null ? isNull(stored) : !isNull(stored) && same(stored, encoded(value, field));
  if (condition.operator === 'in') return condition.value.some(equal);
  const { operator, value } = condition;
  if (operator === 'eq') return equal(value);
  if (operator === 'ne') return !equal(value);
  if (isNull(stored)) return false;
  const order = compared(stored, encoded(value, field));
  if (order === undefined) return false;
  return { gt: order > 0, gte: order >= 0, lt: order < 0, lte: order <= 0 }[operator];
}

/** Equal as values: numbers may be written differently. */
export const same = (a: AttributeValue, b: AttributeValue): boolean =>
  a.N !== undefined && b.N !== undefined ? compared(a, b) === 0 : isDeepStrictEqual(a, b);

/** Undefined for values of two types, of which none is less. */
function compared(a: AttributeValue, b: AttributeValue): number | undefined {
  if (a.N !== undefined && b.N !== undefined) return compareDecimals(a.N, b.N);
  if (a.S !== undefined && b.S !== undefined) return Buffer.compare(Buffer.from(a.S), Buffer.from(b.S));
  return a.B !== undefined && b.B !== undefined ? Buffer.compare(a.B, b.B) : undefined;
}

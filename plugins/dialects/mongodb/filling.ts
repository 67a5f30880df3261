import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { isExpression } from '../../../core/schema/default.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { Filling } from './step.ts';

/** What a new field gets in the documents that are there. Throws `field_invalid`. */
export function fillingOf({ name, type, items, default: value, autoGenerate }: Field): Filling | undefined {
  if (autoGenerate) return { uuid: true };
  if (value === undefined) return undefined;
  if (!isExpression(value)) return { literal: value as Json, as: { type, ...(items && { items }) } };
  return { expression: expressionOf(name, value.$expression) };
}

/** An aggregation expression as JSON; a constant is one too. */
function expressionOf(field: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    throw new SvcError('field_invalid', `The default of the field "${field}" cannot be used on MongoDB.`, {
      why: 'An expression is an aggregation expression, as JSON.',
      next: ['For example: { "$expression": "{ \\"$toUpper\\": \\"$name\\" }" }'],
      cause,
    });
  }
}

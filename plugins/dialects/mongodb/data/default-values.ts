import { v4 as uuid } from 'uuid';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Field } from '../../../../core/schema/model.ts';
import type { DefaultValue } from '../compile/step.ts';
import { fromExtendedJson, serverTime } from '../connection/server.ts';
import type { RunContext } from '../run/run-context.ts';
import { toBson } from './bson-value.ts';
import { type Update, updateInBatches } from './update-in-batches.ts';

/** Sets a field in the documents where it is missing or null. */
export async function fillDefault(
  context: RunContext,
  collection: string,
  field: string,
  value: DefaultValue,
): Promise<void> {
  const { server } = context;
  const withoutValue = { [field]: null };
  if ('uuid' in value) return fillWithUuids(context, collection, field);
  const set =
    'expression' in value
      ? fromExtendedJson(server, { at: value.expression }).at
      : { $literal: toBson(server.bson, value.literal, value.as, await serverTime(server)) };
  await updateInBatches(context, collection, withoutValue, () => [{ $set: { [field]: set } }]);
}

async function fillWithUuids(context: RunContext, collection: string, field: string): Promise<void> {
  await updateInBatches(context, collection, { [field]: null }, (ids): Update => {
    const uuids = ids.map(() => uuid());
    return [{ $set: { [field]: { $arrayElemAt: [uuids, { $indexOfArray: [{ $literal: ids }, '$_id'] }] } } }];
  });
}

/** The value of a new field in existing documents. Throws `field_invalid`. */
export function defaultValueOf({ name, type, items, default: value, autoGenerate }: Field): DefaultValue | undefined {
  if (autoGenerate) return { uuid: true };
  if (value === undefined) return undefined;
  if (!isExpression(value)) return { literal: value as Json, as: { type, ...(items && { items }) } };
  return { expression: parseExpression(name, value.$expression) };
}

/** Parses an aggregation expression, which may be a constant. */
function parseExpression(field: string, text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    throw new SvcError('field_invalid', `The default of the field "${field}" cannot be used on MongoDB.`, {
      why: 'On MongoDB an expression is the JSON of an aggregation expression.',
      next: ['For example: { "$expression": "{ \\"$toUpper\\": \\"$name\\" }" }'],
      cause,
    });
  }
}

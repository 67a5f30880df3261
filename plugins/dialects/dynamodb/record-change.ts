import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { AnyRecordDefinition, RecordValues } from '../../../core/records.ts';
import type { Item } from './attribute.ts';
import { isGlobal, partitionName, placeIn, sortName } from './record-index.ts';
import { columnAttribute, columnOf, VERSION } from './record-item.ts';

type Conditions = Pick<
  NonNullable<TransactWriteItem['Update']>,
  'ConditionExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'
>;

export const recordKey = (definition: AnyRecordDefinition, key: string): Record<string, AttributeValue> => ({
  [definition.key]: { S: key },
});

/** A new record; it fails where the key is taken. */
export function insertion(table: string, definition: AnyRecordDefinition, record: RecordValues): TransactWriteItem {
  const places = Object.fromEntries(
    Object.entries(placeAttributes(definition, record)).filter(([, value]) => value !== undefined),
  ) as Item;
  return {
    Put: {
      TableName: table,
      Item: { ...attributes(definition, record), ...places, [VERSION]: { N: '1' } },
      ConditionExpression: 'attribute_not_exists(#key)',
      ExpressionAttributeNames: { '#key': definition.key },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  };
}

/**
 * A version in the place of the one before; columns that are left out stay. With `before` it fails unless that
 * column is after `now`.
 */
export function replacement(
  table: string,
  definition: AnyRecordDefinition,
  key: string,
  version: number,
  record: RecordValues,
  late?: { readonly before: string; readonly now: number },
): TransactWriteItem {
  const { [definition.key]: _, ...columns } = attributes(definition, record);
  const changes: Readonly<Record<string, AttributeValue | undefined>> = {
    ...columns,
    ...placeAttributes(definition, record),
    [VERSION]: { N: String(version + 1) },
  };
  const names: Record<string, string> = { '#version': VERSION };
  const values: Record<string, AttributeValue> = { ':version': { N: String(version) } };
  const set: string[] = [];
  const remove: string[] = [];
  for (const [index, [name, value]] of Object.entries(changes).entries()) {
    names[`#c${index}`] = name;
    if (value === undefined) remove.push(`#c${index}`);
    else {
      values[`:c${index}`] = value;
      set.push(`#c${index} = :c${index}`);
    }
  }
  let condition = '#version = :version';
  if (late) {
    names['#before'] = late.before;
    values[':now'] = { N: String(late.now) };
    condition += ' AND #before > :now';
  }
  return {
    Update: {
      TableName: table,
      Key: recordKey(definition, key),
      UpdateExpression: `SET ${set.join(', ')}${remove.length > 0 ? ` REMOVE ${remove.join(', ')}` : ''}`,
      ConditionExpression: condition,
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: values,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  };
}

export function removal(
  table: string,
  definition: AnyRecordDefinition,
  key: string,
  version: number,
): TransactWriteItem {
  const conditions: Conditions = {
    ConditionExpression: '#version = :version',
    ExpressionAttributeNames: { '#version': VERSION },
    ExpressionAttributeValues: { ':version': { N: String(version) } },
  };
  return {
    Delete: {
      TableName: table,
      Key: recordKey(definition, key),
      ...conditions,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  };
}

function attributes(definition: AnyRecordDefinition, record: RecordValues): Record<string, AttributeValue> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, columnAttribute(value, columnOf(definition, name))]),
  );
}

/** Where the record stands in each index: undefined for one that it leaves. */
export function placeAttributes(
  definition: AnyRecordDefinition,
  record: RecordValues,
): Record<string, AttributeValue | undefined> {
  const found: Record<string, AttributeValue | undefined> = {};
  for (const index of definition.indexes.filter(isGlobal)) {
    const columns = [...index.equals, index.sort];
    const given = columns.filter((column) => record[column] !== undefined);
    if (given.length === 0) continue;
    if (given.length < columns.length) {
      throw new Error(`a write to ${definition.collection} has only some columns of the index ${index.name}`);
    }
    const place = placeIn(index, definition, record);
    found[partitionName(index)] = place && { S: place.partition };
    found[sortName(index)] = place && { S: place.at };
  }
  return found;
}

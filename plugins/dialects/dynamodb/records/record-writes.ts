import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import {
  type AnyRecordDefinition,
  CLOCK,
  columnOf,
  ELAPSED,
  type RecordValues,
  type RecordWrite,
} from '../../../../core/records.ts';
import { lockLostError } from '../../shared/errors.ts';
import { cancellationReasons, errorName } from '../connection/errors.ts';
import type { Item } from '../data/attribute.ts';
import type { RunContext } from '../run/run-context.ts';
import { encodeColumn, indexAttributes, recordTooLong, resolveEngineValues, VERSION } from './record-item.ts';

type Conditions = Pick<
  NonNullable<TransactWriteItem['Update']>,
  'ConditionExpression' | 'ExpressionAttributeNames' | 'ExpressionAttributeValues'
>;

export const recordKey = (definition: AnyRecordDefinition, key: string): Record<string, AttributeValue> => ({
  [definition.key]: { S: key },
});

/** Fails if the key exists. */
export function insertion(table: string, definition: AnyRecordDefinition, record: RecordValues): TransactWriteItem {
  const indexed = Object.fromEntries(
    Object.entries(indexAttributes(definition, record)).filter(([, value]) => value !== undefined),
  ) as Item;
  return {
    Put: {
      TableName: table,
      Item: { ...recordAttributes(definition, record), ...indexed, [VERSION]: { N: '1' } },
      ConditionExpression: 'attribute_not_exists(#key)',
      ExpressionAttributeNames: { '#key': definition.key },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  };
}

/** Fails unless the version matches and, with a deadline, its column is later than `now`. Keeps columns left out. */
export function replacement(
  table: string,
  definition: AnyRecordDefinition,
  key: string,
  version: number,
  record: RecordValues,
  deadline?: { readonly before: string; readonly now: number },
): TransactWriteItem {
  const { [definition.key]: _, ...columns } = recordAttributes(definition, record);
  const changes: Readonly<Record<string, AttributeValue | undefined>> = {
    ...columns,
    ...indexAttributes(definition, record),
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
  if (deadline) {
    names['#before'] = deadline.before;
    values[':now'] = { N: String(deadline.now) };
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

function recordAttributes(definition: AnyRecordDefinition, record: RecordValues): Record<string, AttributeValue> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, encodeColumn(value, columnOf(definition, name))]),
  );
}

/** A transaction has at most 100 parts, one of which is the epoch check, and 4 MB. */
export const MAX_WRITES = 99;
const MAX_CHARACTERS = 2_000_000;
/** This many items of 400 KB, the maximum, are below 4 MB. */
const ALWAYS_FITS = 9;

/**
 * Writes the records of segments, and throws `lock_lost` if the epoch is no longer current. Uses several transactions if
 * one cannot take all, as when hundreds of migrations are adopted at once. `others` come first.
 */
export async function writeRecords(
  { client, state, epoch }: RunContext,
  writes: readonly RecordWrite[],
  startedAt: number,
  others: readonly TransactWriteItem[] = [],
): Promise<Record<string, Date | number>[]> {
  const time = { now: client.clock.now(), elapsed: Math.round(performance.now() - startedAt) };
  const parts = writes.map(({ definition, record, version }): TransactWriteItem => {
    const table = client.table(definition.collection);
    const values = resolveEngineValues(record, time);
    return version === undefined
      ? insertion(table, definition, values)
      : replacement(table, definition, String(values[definition.key]), version, values);
  });
  for (const transaction of transactionsOf([...others, ...parts])) {
    try {
      await state.writeFenced(epoch, transaction);
    } catch (error) {
      if (
        errorName(error) === 'TransactionCanceledException' &&
        cancellationReasons(error).some(({ Code }) => Code === 'ConditionalCheckFailed')
      ) {
        throw lockLostError(error);
      }
      throw recordTooLong(error, writes[0]?.definition.collection ?? '');
    }
  }
  return writes.map(({ record }) => {
    const values: Record<string, Date | number> = {};
    for (const [name, value] of Object.entries(record)) {
      if (value === CLOCK) values[name] = new Date(time.now);
      if (value === ELAPSED) values[name] = time.elapsed;
    }
    return values;
  });
}

function* transactionsOf(parts: readonly TransactWriteItem[]): Generator<readonly TransactWriteItem[]> {
  if (parts.length <= ALWAYS_FITS) {
    if (parts.length > 0) yield parts;
    return;
  }
  let transaction: TransactWriteItem[] = [];
  let length = 0;
  for (const part of parts) {
    const characters = JSON.stringify(part).length;
    if (transaction.length === MAX_WRITES || (transaction.length > 0 && length + characters > MAX_CHARACTERS)) {
      yield transaction;
      transaction = [];
      length = 0;
    }
    transaction.push(part);
    length += characters;
  }
  if (transaction.length > 0) yield transaction;
}

import type { AnyRecordDefinition } from '../../../core/records.ts';
import type { Api } from './api.ts';
import type { Item } from './attribute.ts';
import { nameOf } from './errors.ts';
import { ensureTable } from './own-table.ts';
import { placeAttributes } from './record-change.ts';
import { isGlobal, ownTable, partitionName } from './record-index.ts';
import { recordFrom, VERSION } from './record-item.ts';
import { describe } from './settled.ts';

/** The tables of these records, all at once: each takes DynamoDB some seconds. */
export async function ensureRecords(api: Api, definitions: readonly AnyRecordDefinition[]): Promise<void> {
  const outcomes = await Promise.allSettled(definitions.map((definition) => ensureOne(api, definition)));
  const broken = outcomes.find((outcome) => outcome.status === 'rejected');
  if (broken) throw broken.reason;
}

async function ensureOne(api: Api, definition: AnyRecordDefinition): Promise<void> {
  const name = api.table(definition.collection);
  const there = await describe(api, name);
  const known = new Set(there?.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName));
  const fresh = definition.indexes.filter((index) => isGlobal(index) && !known.has(index.name));
  // Records of an older definition are in no new index until they have its attributes.
  if (there && fresh.length > 0)
    await placeAll(api, name, definition, partitionName(fresh[0] as (typeof fresh)[number]));
  await ensureTable(api, name, ownTable(definition));
}

async function placeAll(api: Api, name: string, definition: AnyRecordDefinition, missing: string): Promise<void> {
  let start: Item | undefined;
  do {
    const page = await api.send('Scan', {
      TableName: name,
      ConsistentRead: true,
      FilterExpression: 'attribute_not_exists(#missing)',
      ExpressionAttributeNames: { '#missing': missing },
      ...(start && { ExclusiveStartKey: start as never }),
    });
    for (const item of page.Items ?? []) await place(api, name, definition, item);
    start = page.LastEvaluatedKey;
  } while (start);
}

/** A record that was replaced in between has its places already. */
async function place(api: Api, name: string, definition: AnyRecordDefinition, item: Item): Promise<void> {
  const places = Object.entries(placeAttributes(definition, recordFrom(definition, item)));
  const given = places.flatMap(([attribute, value]) => (value ? [{ attribute, value }] : []));
  const key = item[definition.key];
  const version = item[VERSION];
  if (given.length === 0 || !key || !version) return;
  try {
    await api.send('UpdateItem', {
      TableName: name,
      Key: { [definition.key]: key },
      UpdateExpression: `SET ${given.map((_, index) => `#p${index} = :p${index}`).join(', ')}`,
      ConditionExpression: '#version = :version',
      ExpressionAttributeNames: {
        '#version': VERSION,
        ...Object.fromEntries(given.map(({ attribute }, index) => [`#p${index}`, attribute])),
      },
      ExpressionAttributeValues: {
        ':version': version,
        ...Object.fromEntries(given.map(({ value }, index) => [`:p${index}`, value])),
      },
    });
  } catch (error) {
    if (nameOf(error) !== 'ConditionalCheckFailedException') throw error;
  }
}

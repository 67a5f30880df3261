import { randomUUID } from 'node:crypto';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import {
  type AnyRecordDefinition,
  anyDefinition,
  pageIndex,
  type RecordDefinition,
  type RecordStore,
  type RecordValues,
  typedStore,
  type Writable,
} from '../../../../core/records.ts';
import type { DynamoClient, Input } from '../connection/client.ts';
import {
  type CancellationReason,
  cancellationReasons,
  errorName,
  ignoreNotFound,
  isNotFound,
  isOutcomeUnknown,
  isThrottled,
  toSvcError,
  withSvcErrors,
} from '../connection/errors.ts';
import { scanPages } from '../connection/read-items.ts';
import type { StateTable } from '../connection/state-table.ts';
import { ensureTable } from '../connection/system-table.ts';
import { describeTable } from '../connection/wait-for-table.ts';
import type { Item } from '../data/attribute.ts';
import {
  decodeRecord,
  indexAttributes,
  isGlobalIndex,
  partitionAttribute,
  recordTooLong,
  resolveEngineValues,
  systemTableOf,
  VERSION,
  versionOf,
} from './record-item.ts';
import { recordPage } from './record-page.ts';
import { insertion, recordKey, removal, replacement } from './record-writes.ts';

/**
 * Stores records as items. Every write is a transaction, even of a single item: its request token makes a retry after a
 * lost response safe, where a condition alone would report a conflict.
 */
export function recordStore<R extends object>(
  client: DynamoClient,
  state: StateTable,
  typed: RecordDefinition<R>,
): RecordStore<R> {
  return typedStore(storeOf(client, state, anyDefinition(typed)));
}

function storeOf(client: DynamoClient, state: StateTable, definition: AnyRecordDefinition): RecordStore<RecordValues> {
  const table = client.table(definition.collection);
  const toValues = (record: Writable<RecordValues>, now: number) => resolveEngineValues(record, { now, elapsed: 0 });
  return {
    async insert(record) {
      const [reason] = await transact(client, definition, (now) => [
        insertion(table, definition, toValues(record, now)),
      ]);
      return reason ? 'exists' : 'inserted';
    },
    async get(key) {
      const input = { TableName: table, Key: recordKey(definition, key), ConsistentRead: true };
      const response = await withSvcErrors(() => client.send('GetItem', input).catch(ignoreNotFound));
      const item = response?.Item;
      return item && { record: decodeRecord(definition, item), version: versionOf(item) };
    },
    async replace(key, version, record, { before, epoch } = {}) {
      const parts = (now: number) => {
        const deadline = before === undefined ? undefined : { before, now };
        const part = replacement(table, definition, key, version, toValues(record, now), deadline);
        return epoch === undefined ? [part] : [part, state.epochCheck(epoch)];
      };
      const [reason, epochReason] = await transact(client, definition, parts, TABLE_MISSING);
      if (!reason) return epochReason ? 'stale' : 'replaced';
      if (!reason.Item) return 'missing';
      if (versionOf(reason.Item as never) !== version || epochReason) return 'stale';
      return before === undefined ? 'stale' : 'late';
    },
    async remove(key, version) {
      const [reason] = await transact(
        client,
        definition,
        () => [removal(table, definition, key, version)],
        TABLE_MISSING,
      );
      if (!reason) return 'removed';
      return reason.Item ? 'stale' : 'missing';
    },
    async page(name, query) {
      const index = pageIndex(definition, name, query);
      return withSvcErrors(() => recordPage({ client, definition, index, query }));
    },
  };
}

/** A missing table has no records: the condition of a write fails. */
const TABLE_MISSING: readonly (CancellationReason | undefined)[] = [{ Code: 'ConditionalCheckFailed' }];

/**
 * Returns, for each part, the reason if its condition failed; an empty list if the transaction succeeded. A retry after
 * throttling uses the new time, because a deadline may have passed. Once a response is lost, every retry sends the same
 * request, because it may have taken effect.
 */
async function transact(
  client: DynamoClient,
  definition: AnyRecordDefinition,
  parts: (now: number) => TransactWriteItem[],
  ifMissing?: readonly (CancellationReason | undefined)[],
): Promise<readonly (CancellationReason | undefined)[]> {
  let input: Input<'TransactWriteItems'> | undefined;
  let maybeSent = false;
  const attempt = async () => {
    input ??= { ClientRequestToken: randomUUID(), TransactItems: parts(client.clock.now()) };
    try {
      await client.sendOnce('TransactWriteItems', input);
    } catch (error) {
      maybeSent ||= isOutcomeUnknown(error) && !isThrottled(error);
      if (!maybeSent) input = undefined;
      throw error;
    }
  };
  try {
    await client.retry(attempt);
    return [];
  } catch (error) {
    if (ifMissing && isNotFound(error)) return ifMissing;
    const reasons = errorName(error) === 'TransactionCanceledException' ? cancellationReasons(error) : [];
    const failed = reasons.map((reason) => (reason.Code === 'ConditionalCheckFailed' ? reason : undefined));
    if (failed.some(Boolean)) return failed;
    throw toSvcError(recordTooLong(error, definition.collection));
  }
}

/** Creates the tables in parallel, because each takes some seconds. */
export async function ensureRecords(client: DynamoClient, definitions: readonly AnyRecordDefinition[]): Promise<void> {
  const outcomes = await Promise.allSettled(definitions.map((definition) => ensureTableOf(client, definition)));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

async function ensureTableOf(client: DynamoClient, definition: AnyRecordDefinition): Promise<void> {
  const name = client.table(definition.collection);
  const existing = await describeTable(client, name);
  const existingIndexes = new Set(existing?.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName));
  const added = definition.indexes.filter((index) => isGlobalIndex(index) && !existingIndexes.has(index.name));
  // Records written before the index existed have no attributes for it.
  if (existing && added.length > 0)
    await backfillIndex(client, name, definition, partitionAttribute(added[0] as (typeof added)[number]));
  await ensureTable(client, name, systemTableOf(definition));
}

async function backfillIndex(
  client: DynamoClient,
  name: string,
  definition: AnyRecordDefinition,
  missing: string,
): Promise<void> {
  const filter = {
    FilterExpression: 'attribute_not_exists(#missing)',
    ExpressionAttributeNames: { '#missing': missing },
  };
  for await (const page of scanPages(client, { TableName: name, ...filter })) {
    for (const item of page.Items ?? []) await backfillRecord(client, name, definition, item);
  }
}

/** Skips a record that was replaced since the scan, because it has its index attributes already. */
async function backfillRecord(
  client: DynamoClient,
  name: string,
  definition: AnyRecordDefinition,
  item: Item,
): Promise<void> {
  const attributes = Object.entries(indexAttributes(definition, decodeRecord(definition, item)));
  const present = attributes.flatMap(([attribute, value]) => (value ? [{ attribute, value }] : []));
  const key = item[definition.key];
  const version = item[VERSION];
  if (present.length === 0 || !key || !version) return;
  try {
    await client.send('UpdateItem', {
      TableName: name,
      Key: { [definition.key]: key },
      UpdateExpression: `SET ${present.map((_, index) => `#p${index} = :p${index}`).join(', ')}`,
      ConditionExpression: '#version = :version',
      ExpressionAttributeNames: {
        '#version': VERSION,
        ...Object.fromEntries(present.map(({ attribute }, index) => [`#p${index}`, attribute])),
      },
      ExpressionAttributeValues: {
        ':version': version,
        ...Object.fromEntries(present.map(({ value }, index) => [`:p${index}`, value])),
      },
    });
  } catch (error) {
    if (errorName(error) !== 'ConditionalCheckFailedException') throw error;
  }
}

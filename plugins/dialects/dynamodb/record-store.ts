import { randomUUID } from 'node:crypto';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import {
  type AnyRecordDefinition,
  anyDefinition,
  type Guard,
  type Page,
  type PageQuery,
  type RecordDefinition,
  type RecordStore,
  type RecordValues,
  type Versioned,
  type Writable,
} from '../../../core/records.ts';
import type { Api, Input } from './api.ts';
import { isMissing, isThrottled, isUnknown, nameOf, type Reason, reasonsOf, refusal } from './errors.ts';
import { insertion, recordKey, removal, replacement } from './record-change.ts';
import { filled, recordFrom, tooLong, versionOf } from './record-item.ts';
import { recordPage } from './record-page.ts';
import type { State } from './state.ts';

/**
 * Records as items. Each write is a transaction, also of one item: DynamoDB knows its repeat after a lost answer, which
 * a condition alone would take for somebody else's.
 */
export function recordStore<R extends object>(api: Api, state: State, typed: RecordDefinition<R>): RecordStore<R> {
  const definition = anyDefinition(typed);
  const table = api.table(definition.collection);
  const own = (record: Writable<R>, now: number) =>
    filled(record as unknown as Writable<RecordValues>, { now, elapsed: 0 });

  return {
    async insert(record) {
      const [reason] = await write(api, definition, (now) => [insertion(table, definition, own(record, now))]);
      return reason ? 'exists' : 'inserted';
    },
    async get(key) {
      const input = { TableName: table, Key: recordKey(definition, key), ConsistentRead: true };
      try {
        const { Item } = await api.send('GetItem', input);
        return Item && ({ record: recordFrom(definition, Item), version: versionOf(Item) } as unknown as Versioned<R>);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw refusal(error);
      }
    },
    async replace(key, version, record, { before, epoch }: Guard<R> = {}) {
      const parts = (now: number) => {
        const late = before === undefined ? undefined : { before, now };
        const part = replacement(table, definition, key, version, own(record, now), late);
        return epoch === undefined ? [part] : [part, state.fence(epoch)];
      };
      const [reason, over] = await write(api, definition, parts, MISSING);
      if (!reason) return over ? 'stale' : 'replaced';
      if (!reason.Item) return 'missing';
      if (versionOf(reason.Item as never) !== version || over) return 'stale';
      return before === undefined ? 'stale' : 'late';
    },
    async remove(key, version) {
      const [reason] = await write(api, definition, () => [removal(table, definition, key, version)], MISSING);
      if (!reason) return 'removed';
      return reason.Item ? 'stale' : 'missing';
    },
    async page(name: string, query: PageQuery<R>): Promise<Page<R>> {
      const index = definition.indexes.find((one) => one.name === name);
      if (!index) throw new Error(`${definition.collection} has no index ${name}`);
      if (!Number.isInteger(query.limit) || query.limit < 1 || query.limit > 1000) {
        throw new SvcError('value_invalid', `A page has 1 to 1,000 records, not ${query.limit}.`);
      }
      try {
        return (await recordPage(api, definition, index, query as PageQuery<RecordValues>)) as unknown as Page<R>;
      } catch (error) {
        throw refusal(error);
      }
    },
  };
}

/** A table that is not there has no record of any key. */
const MISSING: readonly (Reason | undefined)[] = [{ Code: 'ConditionalCheckFailed' }];

/**
 * For each part the reason why it does not hold; nothing where all of them do. What was refused for a moment is sent anew
 * at the moment that it is then: a deadline may have come in between. An answer that was lost is asked for with the very
 * same write, from then on: it may be done.
 */
async function write(
  api: Api,
  definition: AnyRecordDefinition,
  parts: (now: number) => TransactWriteItem[],
  absent?: readonly (Reason | undefined)[],
): Promise<readonly (Reason | undefined)[]> {
  let input: Input<'TransactWriteItems'> | undefined;
  let mayBeDone = false;
  const attempt = async () => {
    input ??= { ClientRequestToken: randomUUID(), TransactItems: parts(api.clock.now()) };
    try {
      await api.once('TransactWriteItems', input);
    } catch (error) {
      mayBeDone ||= isUnknown(error) && !isThrottled(error);
      if (!mayBeDone) input = undefined;
      throw error;
    }
  };
  try {
    await api.persist(attempt);
    return [];
  } catch (error) {
    if (absent && isMissing(error)) return absent;
    const reasons = nameOf(error) === 'TransactionCanceledException' ? reasonsOf(error) : [];
    const failed = reasons.map((reason) => (reason.Code === 'ConditionalCheckFailed' ? reason : undefined));
    if (failed.some(Boolean)) return failed;
    throw refusal(tooLong(error, definition.collection));
  }
}

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { lockLostError } from '../../shared/errors.ts';
import type { Item } from '../data/attribute.ts';
import type { Api, Input } from './api.ts';
import { cancellationReasons, errorName, ignoreNotFound } from './errors.ts';
import { isReady, waitForTable } from './wait-for-table.ts';

/** A table of svc itself, with a string as key and KEYS_ONLY indexes. */
export interface SystemTable {
  readonly key: string;
  readonly indexes: readonly { readonly name: string; readonly partition: string; readonly sort: string }[];
}

const noLease = async (): Promise<void> => undefined;
const RETRY_MS = 50;

/** Creates the table and its indexes if missing, one at a time. Several processes may do so at once. */
export async function ensureTable(api: Api, name: string, wanted: SystemTable): Promise<void> {
  for (;;) {
    const table = await waitForTable(api, name, noLease);
    if (!table) {
      const response = await ignoreInUse(() => api.sendNonIdempotent('CreateTable', createTableInput(name, wanted)));
      if (response && response !== 'unknown' && isReady(response.TableDescription)) return;
      await wait(RETRY_MS);
      continue;
    }
    const existing = new Set(table.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName));
    const missing = wanted.indexes.find((index) => !existing.has(index.name));
    if (!missing) return;
    await ignoreInUse(() => api.sendNonIdempotent('UpdateTable', addIndexInput(name, missing)));
  }
}

/** Undefined if another process is changing the table. */
async function ignoreInUse<T>(send: () => Promise<T>): Promise<T | undefined> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ResourceInUseException') throw error;
    return undefined;
  }
}

type SystemIndex = SystemTable['indexes'][number];

const stringAttribute = (name: string) => ({ AttributeName: name, AttributeType: 'S' as const });
const keySchema = ({ partition, sort }: Omit<SystemIndex, 'name'>) => [
  { AttributeName: partition, KeyType: 'HASH' as const },
  { AttributeName: sort, KeyType: 'RANGE' as const },
];
const globalIndex = (index: SystemIndex) => ({
  IndexName: index.name,
  KeySchema: keySchema(index),
  Projection: { ProjectionType: 'KEYS_ONLY' as const },
});

function createTableInput(name: string, { key, indexes }: SystemTable): Input<'CreateTable'> {
  return {
    TableName: name,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [key, ...indexes.flatMap(({ partition, sort }) => [partition, sort])].map(stringAttribute),
    KeySchema: [{ AttributeName: key, KeyType: 'HASH' }],
    ...(indexes.length > 0 && { GlobalSecondaryIndexes: indexes.map(globalIndex) }),
  };
}

function addIndexInput(name: string, index: SystemIndex): Input<'UpdateTable'> {
  return {
    TableName: name,
    AttributeDefinitions: [stringAttribute(index.partition), stringAttribute(index.sort)],
    GlobalSecondaryIndexUpdates: [{ Create: globalIndex(index) }],
  };
}

const STATE_TABLE = '_svc_state';
export const LOCK_ID = 'lock';
const KEY_ATTRIBUTE = 'id';

/** The `_svc_state` table: the migration lock, the registry of fields, and the progress of data moves. */
export class StateTable {
  readonly #api: Api;
  readonly table: string;
  #created: Promise<void> | undefined;

  constructor(api: Api) {
    this.#api = api;
    this.table = api.table(STATE_TABLE);
  }

  key(id: string): Record<string, AttributeValue> {
    return { [KEY_ATTRIBUTE]: { S: id } };
  }

  /** Creates the table on first use. */
  ensure(): Promise<void> {
    this.#created ??= ensureTable(this.#api, this.table, { key: KEY_ATTRIBUTE, indexes: [] }).catch((error) => {
      this.#created = undefined;
      throw error;
    });
    return this.#created;
  }

  /** A strongly consistent read. */
  async get(id: string): Promise<Item | undefined> {
    const input = { TableName: this.table, Key: this.key(id), ConsistentRead: true };
    return (await this.#api.send('GetItem', input).catch(ignoreNotFound))?.Item;
  }

  /**
   * Writes all or nothing, and throws `lock_lost` if the epoch is no longer current. The request token makes it safe to
   * send again after a lost response.
   */
  async writeFenced(epoch: number, writes: readonly TransactWriteItem[]): Promise<void> {
    const input = { ClientRequestToken: randomUUID(), TransactItems: [this.epochCheck(epoch), ...writes] };
    try {
      await this.#api.send('TransactWriteItems', input);
    } catch (error) {
      if (
        errorName(error) === 'TransactionCanceledException' &&
        cancellationReasons(error)[0]?.Code === 'ConditionalCheckFailed'
      ) {
        throw leaseLostError(error);
      }
      throw error;
    }
  }

  /** Fails the transaction if the lock was acquired since this epoch. */
  epochCheck(epoch: number): TransactWriteItem {
    return {
      ConditionCheck: {
        TableName: this.table,
        Key: this.key(LOCK_ID),
        ConditionExpression: 'attribute_not_exists(#epoch) OR #epoch = :epoch',
        ExpressionAttributeNames: { '#epoch': 'epoch' },
        ExpressionAttributeValues: { ':epoch': { N: String(epoch) } },
      },
    };
  }

  /** For actions that cannot be part of a transaction. Throws `lock_lost`. */
  async assertEpoch(epoch: number): Promise<void> {
    const lock = await this.get(LOCK_ID);
    if (lock?.epoch?.N !== undefined && Number(lock.epoch.N) !== epoch) throw leaseLostError();
  }
}

export const leaseLostError = (cause?: unknown) =>
  lockLostError(cause, 'It was not renewed in time: this process was suspended or could not reach DynamoDB.');

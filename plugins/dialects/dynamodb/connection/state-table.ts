import { randomUUID } from 'node:crypto';
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { lockLostError } from '../../shared/errors.ts';
import type { Item } from '../data/attribute.ts';
import type { DynamoClient } from './client.ts';
import { cancellationReasons, errorName, ignoreNotFound } from './errors.ts';
import { ensureTable } from './system-table.ts';

const STATE_TABLE = '_svc_state';
export const LOCK_ID = 'lock';
const KEY_ATTRIBUTE = 'id';

/** The `_svc_state` table: the migration lock, the registry of fields, and the progress of data moves. */
export class StateTable {
  readonly #client: DynamoClient;
  readonly table: string;
  #created: Promise<void> | undefined;

  constructor(client: DynamoClient) {
    this.#client = client;
    this.table = client.table(STATE_TABLE);
  }

  key(id: string): Record<string, AttributeValue> {
    return { [KEY_ATTRIBUTE]: { S: id } };
  }

  /** Creates the table on first use. */
  ensure(): Promise<void> {
    this.#created ??= ensureTable(this.#client, this.table, { key: KEY_ATTRIBUTE, indexes: [] }).catch((error) => {
      this.#created = undefined;
      throw error;
    });
    return this.#created;
  }

  /** A strongly consistent read. */
  async get(id: string): Promise<Item | undefined> {
    const input = { TableName: this.table, Key: this.key(id), ConsistentRead: true };
    return (await this.#client.send('GetItem', input).catch(ignoreNotFound))?.Item;
  }

  /**
   * Writes all or nothing, and throws `lock_lost` if the epoch is no longer current. The request token makes it safe to
   * send again after a lost response.
   */
  async writeFenced(epoch: number, writes: readonly TransactWriteItem[]): Promise<void> {
    const input = { ClientRequestToken: randomUUID(), TransactItems: [this.epochCheck(epoch), ...writes] };
    try {
      await this.#client.send('TransactWriteItems', input);
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

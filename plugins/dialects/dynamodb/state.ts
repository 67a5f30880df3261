import { randomUUID } from 'node:crypto';
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Api } from './api.ts';
import type { Item } from './attribute.ts';
import { isMissing, nameOf, reasonsOf } from './errors.ts';
import { ensureTable } from './own-table.ts';

const STATE = '_svc_state';
export const LOCK = 'lock';
const ID = 'id';

/** One table of ours: the lock, the registry of fields, and how far data moves are. */
export class State {
  readonly #api: Api;
  readonly table: string;
  #made: Promise<void> | undefined;

  constructor(api: Api) {
    this.#api = api;
    this.table = api.table(STATE);
  }

  key(id: string): Record<string, AttributeValue> {
    return { [ID]: { S: id } };
  }

  /** Makes the table on first use; several may do so at once. */
  ready(): Promise<void> {
    this.#made ??= ensureTable(this.#api, this.table, { key: ID, indexes: [] }).catch((error) => {
      this.#made = undefined;
      throw error;
    });
    return this.#made;
  }

  /** Consistent. */
  async get(id: string): Promise<Item | undefined> {
    try {
      const input = { TableName: this.table, Key: this.key(id), ConsistentRead: true };
      return (await this.#api.send('GetItem', input)).Item;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /**
   * Writes that lose with `lock_lost` once the epoch is over, all or none of them. A repeat after a lost answer is the
   * same write: the token says so.
   */
  async fenced(epoch: number, writes: readonly TransactWriteItem[]): Promise<void> {
    const input = { ClientRequestToken: randomUUID(), TransactItems: [this.fence(epoch), ...writes] };
    try {
      await this.#api.send('TransactWriteItems', input);
    } catch (error) {
      if (nameOf(error) === 'TransactionCanceledException' && reasonsOf(error)[0]?.Code === 'ConditionalCheckFailed') {
        throw lockLost(error);
      }
      throw error;
    }
  }

  /** Holds as long as nobody took the lock after this epoch. */
  fence(epoch: number): TransactWriteItem {
    return {
      ConditionCheck: {
        TableName: this.table,
        Key: this.key(LOCK),
        ConditionExpression: 'attribute_not_exists(#epoch) OR #epoch = :epoch',
        ExpressionAttributeNames: { '#epoch': 'epoch' },
        ExpressionAttributeValues: { ':epoch': { N: String(epoch) } },
      },
    };
  }

  /** For what cannot be in a transaction. */
  async stands(epoch: number): Promise<void> {
    const lock = await this.get(LOCK);
    if (lock?.epoch?.N !== undefined && Number(lock.epoch.N) !== epoch) throw lockLost();
  }
}

export function lockLost(cause?: unknown): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost: another process has moved on.', {
    why: 'It was not renewed in time: this process slept, or could not reach DynamoDB.',
    next: ['Run the command again.'],
    cause,
  });
}

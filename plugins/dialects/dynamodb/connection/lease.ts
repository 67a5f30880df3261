import { randomUUID } from 'node:crypto';
import type { LockOptions } from '../../../../core/dialect.ts';
import type { SvcError } from '../../../../core/errors.ts';
import { type ClockReading, elapsedMs, LockWait, readClocks } from '../../shared/lock-wait.ts';
import type { DynamoClient } from './client.ts';
import { errorName, isOutcomeUnknown, isTransient } from './errors.ts';
import { LOCK_ID, leaseLostError, type StateTable } from './state-table.ts';

const ACQUIRE_POLL = { firstMs: 10, maxMs: 500 };
/** How far a process's estimate of the server's clock may be off, in either direction. */
const MAX_CLOCK_SKEW_MS = 1_000;

/** The migration lock of this process. If it is not renewed in time, another process can acquire it under a new epoch. */
export class Lease {
  readonly epoch: number;
  readonly #client: DynamoClient;
  readonly #state: StateTable;
  readonly #owner: string;
  readonly #leaseMs: number;
  readonly #timer: NodeJS.Timeout;
  #renewedAt: ClockReading;
  #renewal: Promise<void> | undefined;
  #lost: SvcError | undefined;

  constructor(
    client: DynamoClient,
    state: StateTable,
    owner: string,
    epoch: number,
    renewedAt: ClockReading,
    leaseMs: number,
  ) {
    this.#client = client;
    this.#state = state;
    this.#owner = owner;
    this.epoch = epoch;
    this.#renewedAt = renewedAt;
    this.#leaseMs = leaseMs;
    // A failed renewal surfaces in `assertHeld`.
    this.#timer = setInterval(() => void this.#renew().catch(() => undefined), leaseMs / 4).unref();
  }

  /** Throws `lock_lost`. Called before every action that requires the lock. */
  async assertHeld(): Promise<void> {
    if (this.#lost) throw this.#lost;
    if (elapsedMs(this.#renewedAt) < this.#leaseMs / 2) return;
    try {
      await this.#renew();
    } catch (error) {
      if (this.#lost) throw this.#lost;
      if (elapsedMs(this.#renewedAt) > this.#leaseMs - MAX_CLOCK_SKEW_MS) throw error;
    }
  }

  /** If the release fails, the lease expires. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewal?.catch(() => undefined);
    if (this.#lost) return;
    await this.#client
      .sendOnce('UpdateItem', {
        TableName: this.#state.table,
        Key: this.#state.key(LOCK_ID),
        // The item is kept because it holds the epoch.
        UpdateExpression: 'REMOVE #owner, #expires',
        ConditionExpression: '#owner = :owner',
        ExpressionAttributeNames: { '#owner': 'owner', '#expires': 'expires' },
        ExpressionAttributeValues: { ':owner': { S: this.#owner } },
      })
      .catch(() => undefined);
  }

  #renew(): Promise<void> {
    this.#renewal ??= this.#renewOnce().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  /** Also renews an expired lease: while the owner and epoch match, no other process has held it. */
  async #renewOnce(): Promise<void> {
    const sent = readClocks();
    try {
      await this.#client.sendOnce('UpdateItem', {
        TableName: this.#state.table,
        Key: this.#state.key(LOCK_ID),
        UpdateExpression: 'SET #expires = :expires',
        ConditionExpression: '#owner = :owner AND #epoch = :epoch',
        ExpressionAttributeNames: { '#owner': 'owner', '#epoch': 'epoch', '#expires': 'expires' },
        ExpressionAttributeValues: {
          ':owner': { S: this.#owner },
          ':epoch': { N: String(this.epoch) },
          ':expires': { N: String(this.#client.clock.now() + this.#leaseMs) },
        },
      });
      this.#renewedAt = sent;
    } catch (error) {
      if (errorName(error) === 'ConditionalCheckFailedException') this.#lost = leaseLostError(error);
      throw error;
    }
  }
}

/** Runs `work` under the lock. Each call has its own owner id, so calls within one process exclude each other too. */
export async function withLease<T>(
  client: DynamoClient,
  state: StateTable,
  work: (lease: Lease) => Promise<T>,
  options: LockOptions,
  leaseMs: number,
): Promise<T> {
  await state.ensure();
  const owner = randomUUID();
  const lease = await new LockWait(options).poll(async () => {
    const sent = readClocks();
    const epoch = await acquire(client, state, owner, leaseMs);
    return epoch === undefined ? undefined : new Lease(client, state, owner, epoch, sent, leaseMs);
  }, ACQUIRE_POLL);
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

export async function isLocked(client: DynamoClient, state: StateTable): Promise<boolean> {
  const lock = await state.get(LOCK_ID);
  return lock?.owner !== undefined && Number(lock.expires?.N) >= client.clock.now() - MAX_CLOCK_SKEW_MS;
}

/** Sent once: after a lost response, a retry would find the lock acquired by this process. */
async function acquire(
  client: DynamoClient,
  state: StateTable,
  owner: string,
  leaseMs: number,
): Promise<number | undefined> {
  const now = client.clock.now();
  try {
    const { Attributes } = await client.sendOnce('UpdateItem', {
      TableName: state.table,
      Key: state.key(LOCK_ID),
      UpdateExpression: 'SET #owner = :owner, #expires = :expires, #epoch = if_not_exists(#epoch, :none) + :one',
      ConditionExpression: 'attribute_not_exists(#owner) OR #expires < :late',
      ExpressionAttributeNames: { '#owner': 'owner', '#expires': 'expires', '#epoch': 'epoch' },
      ExpressionAttributeValues: {
        ':owner': { S: owner },
        ':expires': { N: String(now + leaseMs) },
        ':late': { N: String(now - MAX_CLOCK_SKEW_MS) },
        ':none': { N: '0' },
        ':one': { N: '1' },
      },
      ReturnValues: 'ALL_NEW',
    });
    return Number(Attributes?.epoch?.N);
  } catch (error) {
    if (errorName(error) === 'ConditionalCheckFailedException' || isTransient(error)) return undefined;
    if (!isOutcomeUnknown(error)) throw error;
    const lock = await state.get(LOCK_ID);
    return lock?.owner?.S === owner ? Number(lock.epoch?.N) : undefined;
  }
}

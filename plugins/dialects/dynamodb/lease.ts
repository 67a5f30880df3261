import { randomUUID } from 'node:crypto';
import type { LockOptions } from '../../../core/dialect.ts';
import type { SvcError } from '../../../core/errors.ts';
import { LockWait } from '../../lock-wait.ts';
import { type Moment, moment, since } from '../../moment.ts';
import type { Api } from './api.ts';
import { isPassing, isUnknown, nameOf } from './errors.ts';
import { LOCK, lockLost, type State } from './state.ts';

const PACE = { firstMs: 10, longestMs: 500 };
/** What two processes may be apart in what they take for the server's clock, each to its own side. */
const SKEW_MS = 1_000;

/** The lock while we have it. Others take it when it was not renewed in time; what they do counts on `epoch`. */
export class Lease {
  readonly epoch: number;
  readonly #api: Api;
  readonly #state: State;
  readonly #owner: string;
  readonly #leaseMs: number;
  readonly #timer: NodeJS.Timeout;
  #renewedAt: Moment;
  #renewal: Promise<void> | undefined;
  #lost: SvcError | undefined;

  constructor(api: Api, state: State, owner: string, epoch: number, renewedAt: Moment, leaseMs: number) {
    this.#api = api;
    this.#state = state;
    this.#owner = owner;
    this.epoch = epoch;
    this.#renewedAt = renewedAt;
    this.#leaseMs = leaseMs;
    // What a renewal fails with shows when the lease is next needed.
    this.#timer = setInterval(() => void this.#renew().catch(() => undefined), leaseMs / 4).unref();
  }

  /** Before whatever only the holder may do. Throws `lock_lost`. */
  async hold(): Promise<void> {
    if (this.#lost) throw this.#lost;
    if (since(this.#renewedAt) < this.#leaseMs / 2) return;
    try {
      await this.#renew();
    } catch (error) {
      if (this.#lost) throw this.#lost;
      if (since(this.#renewedAt) > this.#leaseMs - SKEW_MS) throw error;
    }
  }

  /** Gives it back. One that cannot be given back ends by itself. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewal?.catch(() => undefined);
    if (this.#lost) return;
    await this.#api
      .once('UpdateItem', {
        TableName: this.#state.table,
        Key: this.#state.key(LOCK),
        // The item stays, or the epoch would begin again.
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

  /** Also past its end: as long as it is ours nobody else had it. */
  async #renewOnce(): Promise<void> {
    const sent = moment();
    try {
      await this.#api.once('UpdateItem', {
        TableName: this.#state.table,
        Key: this.#state.key(LOCK),
        UpdateExpression: 'SET #expires = :expires',
        ConditionExpression: '#owner = :owner AND #epoch = :epoch',
        ExpressionAttributeNames: { '#owner': 'owner', '#epoch': 'epoch', '#expires': 'expires' },
        ExpressionAttributeValues: {
          ':owner': { S: this.#owner },
          ':epoch': { N: String(this.epoch) },
          ':expires': { N: String(this.#api.clock.now() + this.#leaseMs) },
        },
      });
      this.#renewedAt = sent;
    } catch (error) {
      if (nameOf(error) === 'ConditionalCheckFailedException') this.#lost = lockLost(error);
      throw error;
    }
  }
}

/** The lock as a bracket: one holder at a time, also within a process, since each attempt has a name of its own. */
export async function exclusively<T>(
  api: Api,
  state: State,
  work: (lease: Lease) => Promise<T>,
  options: LockOptions,
  leaseMs: number,
): Promise<T> {
  await state.ready();
  const owner = randomUUID();
  const lease = await new LockWait(options).until(async () => {
    const sent = moment();
    const epoch = await take(api, state, owner, leaseMs);
    return epoch === undefined ? undefined : new Lease(api, state, owner, epoch, sent, leaseMs);
  }, PACE);
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

export async function isLeased(api: Api, state: State): Promise<boolean> {
  const lock = await state.get(LOCK);
  return lock?.owner !== undefined && Number(lock.expires?.N) >= api.clock.now() - SKEW_MS;
}

/** Sent once: a repeat after a lost answer would find the lock taken, by us. */
async function take(api: Api, state: State, owner: string, leaseMs: number): Promise<number | undefined> {
  const now = api.clock.now();
  try {
    const { Attributes } = await api.once('UpdateItem', {
      TableName: state.table,
      Key: state.key(LOCK),
      UpdateExpression: 'SET #owner = :owner, #expires = :expires, #epoch = if_not_exists(#epoch, :none) + :one',
      ConditionExpression: 'attribute_not_exists(#owner) OR #expires < :late',
      ExpressionAttributeNames: { '#owner': 'owner', '#expires': 'expires', '#epoch': 'epoch' },
      ExpressionAttributeValues: {
        ':owner': { S: owner },
        ':expires': { N: String(now + leaseMs) },
        ':late': { N: String(now - SKEW_MS) },
        ':none': { N: '0' },
        ':one': { N: '1' },
      },
      ReturnValues: 'ALL_NEW',
    });
    return Number(Attributes?.epoch?.N);
  } catch (error) {
    if (nameOf(error) === 'ConditionalCheckFailedException' || isPassing(error)) return undefined;
    if (!isUnknown(error)) throw error;
    const held = await state.get(LOCK);
    return held?.owner?.S === owner ? Number(held.epoch?.N) : undefined;
  }
}

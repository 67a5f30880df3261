import { setTimeout as wait } from 'node:timers/promises';
import type { AttributeValue, BatchStatementRequest, BatchStatementResponse } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { Api } from '../connection/api.ts';
import { isOutcomeUnknown, isThrottled, ThrottledError } from '../connection/errors.ts';
import type { AssertLease } from '../connection/wait-for-table.ts';
import { type Item, itemToJson } from './attribute.ts';

/** An update of one item, on the condition that it has not changed since it was read. */
export interface ItemUpdate {
  readonly key: Item;
  readonly set?: Item;
  readonly remove?: readonly string[];
  /** The attributes as they were read; undefined for a missing one. */
  readonly expected: Readonly<Record<string, AttributeValue | undefined>>;
}

/**
 * `conflict`: the item was changed or deleted since it was read. `maybeUpdated`: the same, but the response to an earlier
 * attempt was lost, and that attempt may have changed it.
 */
export type UpdateOutcome = 'updated' | 'conflict' | 'maybeUpdated';

/** The limit of BatchExecuteStatement. */
export const MAX_BATCH = 25;

const RETRYABLE_CODES: ReadonlySet<string | undefined> = new Set([
  'ProvisionedThroughputExceeded',
  'ThrottlingError',
  'RequestLimitExceeded',
  'TransactionConflict',
  'InternalServerError',
]);

/**
 * Updates at most 25 items of a table in one request, each on its own. Uses PartiQL because UpdateItem would create an
 * item that was deleted. `assertLease` runs before each attempt: waiting for the rate limiter can take longer than the lease.
 */
export async function updateBatch(
  api: Api,
  table: string,
  updates: readonly ItemUpdate[],
  rateLimiter: RateLimiter,
  assertLease: AssertLease,
): Promise<UpdateOutcome[]> {
  const outcomes: UpdateOutcome[] = updates.map(() => 'conflict');
  const maybeSent = new Set<number>();
  let left = updates.map((_, index) => index);
  await rateLimiter.acquire(left.length);
  await api.retry(
    async () => {
      await assertLease();
      const statements = left.map((index) => updateStatement(table, updates[index] as ItemUpdate));
      let responses: readonly BatchStatementResponse[];
      try {
        responses = (await api.sendOnce('BatchExecuteStatement', { Statements: statements })).Responses ?? [];
      } catch (error) {
        if (isOutcomeUnknown(error) && !isThrottled(error)) for (const index of left) maybeSent.add(index);
        throw error;
      }
      const retries: number[] = [];
      let reason = '';
      for (const [at, index] of left.entries()) {
        const { Code, Message } = responses[at]?.Error ?? {};
        if (Code === undefined) outcomes[index] = 'updated';
        else if (Code === 'ConditionalCheckFailed')
          outcomes[index] = maybeSent.has(index) ? 'maybeUpdated' : 'conflict';
        else if (RETRYABLE_CODES.has(Code)) {
          retries.push(index);
          reason = Message ?? Code;
          if (Code === 'InternalServerError') maybeSent.add(index);
        } else throw itemRejected(table, updates[index] as ItemUpdate, Code, Message);
      }
      left = retries;
      if (left.length > 0) throw new ThrottledError(reason);
    },
    { onThrottled: () => rateLimiter.slowDown() },
  );
  return outcomes;
}

function itemRejected(table: string, { key }: ItemUpdate, code: string, message: string | undefined): SvcError {
  return new SvcError('data_violates', `DynamoDB rejected the update of an item of "${table}".`, {
    why: `${JSON.stringify(itemToJson(key))}: ${code}: ${message ?? ''}`,
    next: ['Correct the item named above. Earlier updates are kept, and the next run resumes there.'],
  });
}

function updateStatement(table: string, { key, set = {}, remove = [], expected }: ItemUpdate): BatchStatementRequest {
  const parameters: AttributeValue[] = [];
  const parameter = (value: AttributeValue) => {
    parameters.push(value);
    return '?';
  };
  const parts = [
    ...Object.entries(set).map(([name, value]) => `SET ${quoteIdentifier(name)}=${parameter(value)}`),
    ...remove.map((name) => `REMOVE ${quoteIdentifier(name)}`),
  ];
  const conditions = [
    ...Object.entries(key).map(([name, value]) => `${quoteIdentifier(name)}=${parameter(value)}`),
    ...Object.entries(expected).map(([name, value]) => {
      if (value === undefined) return `${quoteIdentifier(name)} IS MISSING`;
      return value.NULL ? `${quoteIdentifier(name)} IS NULL` : `${quoteIdentifier(name)}=${parameter(value)}`;
    }),
  ];
  return {
    Statement: `UPDATE ${quoteIdentifier(table)} ${parts.join(' ')} WHERE ${conditions.join(' AND ')}`,
    ...(parameters.length > 0 && { Parameters: parameters }),
  };
}

/** The rate does not fall below this, however often the table is throttled. */
const MIN_PER_SECOND = 25;
const GROWTH_PER_SECOND = 1.2;

/** Limits the items written per second: a fixed limit, and a lower one for a while after DynamoDB throttles. */
export class RateLimiter {
  readonly #limit: number;
  #rate: number;
  #tokens = 0;
  #filledAt = performance.now();
  #throttledAt = 0;
  #recent = 0;
  #recentSince = performance.now();

  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
    this.#rate = limit;
  }

  /** Waits until that many items may be written. */
  async acquire(items: number): Promise<void> {
    this.#count(items);
    this.#fill();
    if (!Number.isFinite(this.#rate)) return;
    this.#tokens -= items;
    // The tokens may go negative: the next caller then waits longer.
    if (this.#tokens < 0) await wait((-this.#tokens / this.#rate) * 1000);
  }

  slowDown(): void {
    const now = performance.now();
    // Requests that were in flight together count as one.
    if (now - this.#throttledAt < 500) return;
    this.#throttledAt = now;
    const seconds = Math.max(0.1, (now - this.#recentSince) / 1000);
    const current = Number.isFinite(this.#rate) ? this.#rate : this.#recent / seconds;
    this.#rate = Math.max(Math.min(MIN_PER_SECOND, this.#limit), current / 2);
    this.#tokens = Math.min(this.#tokens, 0);
    this.#filledAt = now;
  }

  #fill(): void {
    const now = performance.now();
    const seconds = (now - this.#filledAt) / 1000;
    this.#filledAt = now;
    if (!Number.isFinite(this.#rate)) return;
    // At most one second's worth accumulates.
    this.#tokens = Math.min(this.#rate, this.#tokens + seconds * this.#rate);
    if (now - this.#throttledAt > 1000) this.#rate = Math.min(this.#limit, this.#rate * GROWTH_PER_SECOND ** seconds);
  }

  #count(items: number): void {
    const now = performance.now();
    if (now - this.#recentSince > 5000) {
      this.#recent = 0;
      this.#recentSince = now;
    }
    this.#recent += items;
  }
}

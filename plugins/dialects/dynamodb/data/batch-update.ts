import type { AttributeValue, BatchStatementRequest, BatchStatementResponse } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import { quoteIdentifier } from '../compile/names.ts';
import type { DynamoClient } from '../connection/client.ts';
import { isOutcomeUnknown, isThrottled, ThrottledError } from '../connection/errors.ts';
import type { AssertLease } from '../connection/wait-for-table.ts';
import { type Item, itemToJson } from './attribute.ts';
import { type CapacityLimits, unitsUsed } from './capacity.ts';

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
  client: DynamoClient,
  table: string,
  updates: readonly ItemUpdate[],
  { write, isWriteInUnits }: CapacityLimits,
  assertLease: AssertLease,
): Promise<UpdateOutcome[]> {
  const outcomes: UpdateOutcome[] = updates.map(() => 'conflict');
  const maybeSent = new Set<number>();
  let left = updates.map((_, index) => index);
  const attempt = async () => {
    await assertLease();
    const statements = left.map((index) => updateStatement(table, updates[index] as ItemUpdate));
    let responses: readonly BatchStatementResponse[];
    try {
      const { Responses = [], ConsumedCapacity } = await client.sendOnce('BatchExecuteStatement', {
        Statements: statements,
        ...(isWriteInUnits && { ReturnConsumedCapacity: 'INDEXES' }),
      });
      responses = Responses;
      // Large items take several units each; one was acquired.
      if (isWriteInUnits) write.charge(Math.max(0, unitsUsed(ConsumedCapacity) - left.length));
    } catch (error) {
      if (isOutcomeUnknown(error) && !isThrottled(error)) for (const index of left) maybeSent.add(index);
      throw error;
    }
    const retries: number[] = [];
    let reason = '';
    for (const [at, index] of left.entries()) {
      const { Code, Message } = responses[at]?.Error ?? {};
      if (Code === undefined) outcomes[index] = 'updated';
      else if (Code === 'ConditionalCheckFailed') outcomes[index] = maybeSent.has(index) ? 'maybeUpdated' : 'conflict';
      else if (RETRYABLE_CODES.has(Code)) {
        retries.push(index);
        reason = Message ?? Code;
        if (Code === 'InternalServerError') maybeSent.add(index);
      } else throw itemRejected(table, updates[index] as ItemUpdate, Code, Message);
    }
    const isStuck = retries.length === left.length;
    left = retries;
    if (isStuck) throw new ThrottledError(reason);
  };
  // A table that takes a part of each request makes progress, for however long: only one that takes none is given up.
  while (left.length > 0) {
    await write.acquire(left.length);
    await client.retry(attempt, { onThrottled: () => write.slowDown() });
    if (left.length > 0) write.slowDown();
  }
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

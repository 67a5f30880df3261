import type { AttributeValue, BatchStatementRequest, BatchStatementResponse } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Api } from './api.ts';
import { type Item, plainItem } from './attribute.ts';
import { isThrottled, isUnknown, TooMuch } from './errors.ts';
import { quote } from './names.ts';
import type { Pace } from './pace.ts';
import type { Hold } from './settled.ts';

/** What is to become of one item, if it is still as it was read. */
export interface Change {
  readonly key: Item;
  readonly set?: Item;
  readonly remove?: readonly string[];
  /** What the attributes were; undefined where there was none. */
  readonly was: Readonly<Record<string, AttributeValue | undefined>>;
}

/**
 * `refused`: the item is not what it was, or gone. `doubtful`: so it is said, but an answer was lost before, and the
 * change may have been ours.
 */
export type Outcome = 'changed' | 'refused' | 'doubtful';

/** As many as one request takes. */
export const BATCH = 25;

const AGAIN: ReadonlySet<string | undefined> = new Set([
  'ProvisionedThroughputExceeded',
  'ThrottlingError',
  'RequestLimitExceeded',
  'TransactionConflict',
  'InternalServerError',
]);

/**
 * Changes at most 25 items of a table in one request, each for itself. A statement never makes an item that is gone,
 * as UpdateItem would. `hold` is asked before each time that it is sent: waiting for its turn takes as long as it takes.
 */
export async function changeItems(
  api: Api,
  table: string,
  changes: readonly Change[],
  pace: Pace,
  hold: Hold,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = changes.map(() => 'refused');
  const doubtful = new Set<number>();
  let left = changes.map((_, index) => index);
  await pace.take(left.length);
  await api.persist(
    async () => {
      await hold();
      const statements = left.map((index) => statementOf(table, changes[index] as Change));
      let answers: readonly BatchStatementResponse[];
      try {
        answers = (await api.once('BatchExecuteStatement', { Statements: statements })).Responses ?? [];
      } catch (error) {
        if (isUnknown(error) && !isThrottled(error)) for (const index of left) doubtful.add(index);
        throw error;
      }
      const again: number[] = [];
      let busy = '';
      for (const [at, index] of left.entries()) {
        const { Code, Message } = answers[at]?.Error ?? {};
        if (Code === undefined) outcomes[index] = 'changed';
        else if (Code === 'ConditionalCheckFailed') outcomes[index] = doubtful.has(index) ? 'doubtful' : 'refused';
        else if (AGAIN.has(Code)) {
          again.push(index);
          busy = Message ?? Code;
          if (Code === 'InternalServerError') doubtful.add(index);
        } else throw refused(table, changes[index] as Change, Code, Message);
      }
      left = again;
      if (left.length > 0) throw new TooMuch(busy);
    },
    { onThrottled: () => pace.throttled() },
  );
  return outcomes;
}

function refused(table: string, { key }: Change, code: string, message: string | undefined): SvcError {
  return new SvcError('data_violates', `DynamoDB refused to change an item of "${table}".`, {
    why: `${JSON.stringify(plainItem(key))}: ${code}: ${message ?? ''}`,
    next: ['Correct what it says; what was changed before stays changed, and the next run goes on.'],
  });
}

function statementOf(table: string, { key, set = {}, remove = [], was }: Change): BatchStatementRequest {
  const parameters: AttributeValue[] = [];
  const given = (value: AttributeValue) => {
    parameters.push(value);
    return '?';
  };
  const parts = [
    ...Object.entries(set).map(([name, value]) => `SET ${quote(name)}=${given(value)}`),
    ...remove.map((name) => `REMOVE ${quote(name)}`),
  ];
  const conditions = [
    ...Object.entries(key).map(([name, value]) => `${quote(name)}=${given(value)}`),
    ...Object.entries(was).map(([name, value]) => {
      if (value === undefined) return `${quote(name)} IS MISSING`;
      return value.NULL ? `${quote(name)} IS NULL` : `${quote(name)}=${given(value)}`;
    }),
  ];
  return {
    Statement: `UPDATE ${quote(table)} ${parts.join(' ')} WHERE ${conditions.join(' AND ')}`,
    ...(parameters.length > 0 && { Parameters: parameters }),
  };
}

import type { Progress } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { shapeOfTable, type TableShape } from '../catalog/table-shape.ts';
import type { Action, DynamoClient, Input, Output } from '../connection/client.ts';
import type { StateTable } from '../connection/state-table.ts';
import { type AssertLease, describeTable } from '../connection/wait-for-table.ts';
import { RateLimiter } from '../data/rate-limiter.ts';

/** The dependencies of every step of a run. */
export interface RunContext {
  readonly client: DynamoClient;
  readonly state: StateTable;
  readonly epoch: number;
  readonly assertLease: AssertLease;
  /** Limit of items written per second; undefined for none. */
  readonly itemsPerSecond: number | undefined;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  /** Called for each request that may have changed something. */
  readonly onChange?: () => void;
}

/** Sends a change. A request that DynamoDB rejected had no effect. */
export async function sendChange<A extends Action>(
  { client, onChange }: Pick<RunContext, 'client' | 'onChange'>,
  action: A,
  input: Input<A>,
): Promise<Output<A> | 'unknown'> {
  const response = await client.sendNonIdempotent(action, input);
  onChange?.();
  return response;
}

export function reportProgress(
  { onProgress }: Pick<RunContext, 'onProgress'>,
  collection: string,
  done: number,
  total: number,
  checksOnly = false,
): void {
  // DynamoDB updates its item count every six hours, so it may be less than `done`.
  onProgress?.({ collection, done, ...(total >= done && { total }), ...(checksOnly && { checksOnly }) });
}

/** Throws `collection_unknown`. `items` is DynamoDB's estimate. */
export async function requireTable(
  { client }: Pick<RunContext, 'client'>,
  table: string,
): Promise<{ name: string; items: number; shape: TableShape }> {
  const name = client.table(table);
  const found = await describeTable(client, name);
  if (found) return { name, items: found.ItemCount ?? 0, shape: shapeOfTable(found, undefined) };
  throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, {
    next: ['See what differs: svc db schema check'],
  });
}

/** On a provisioned table data moves use half of the write capacity; the application needs the other half. */
export async function rateLimiterFor(
  { client, itemsPerSecond }: Pick<RunContext, 'client' | 'itemsPerSecond'>,
  name: string,
): Promise<RateLimiter> {
  if (itemsPerSecond !== undefined) return new RateLimiter(itemsPerSecond);
  const units = (await describeTable(client, name))?.ProvisionedThroughput?.WriteCapacityUnits ?? 0;
  return new RateLimiter(units > 0 ? Math.max(1, units / 2) : undefined);
}

import type { Progress } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { shapeOfTable, type TableShape } from '../catalog/table-shape.ts';
import type { Api } from '../connection/api.ts';
import type { StateTable } from '../connection/system-table.ts';
import { type AssertLease, describeTable } from '../connection/wait-for-table.ts';
import { RateLimiter } from '../data/batch-update.ts';
/** The dependencies of every step of a run. */
export interface RunContext {
  readonly api: Api;
  readonly state: StateTable;
  readonly epoch: number;
  readonly assertLease: AssertLease;
  /** Limit of items written per second; undefined for none. */
  readonly itemsPerSecond: number | undefined;
  readonly onProgress: ((progress: Progress) => void) | undefined;
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
  { api }: Pick<RunContext, 'api'>,
  table: string,
): Promise<{ name: string; items: number; shape: TableShape }> {
  const name = api.table(table);
  const found = await describeTable(api, name);
  if (found) return { name, items: found.ItemCount ?? 0, shape: shapeOfTable(found, undefined) };
  throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, {
    next: ['See what differs: svc db schema check'],
  });
}

/** On a provisioned table data moves use half of the write capacity; the application needs the other half. */
export async function rateLimiterFor(
  { api, itemsPerSecond }: Pick<RunContext, 'api' | 'itemsPerSecond'>,
  name: string,
): Promise<RateLimiter> {
  if (itemsPerSecond !== undefined) return new RateLimiter(itemsPerSecond);
  const units = (await describeTable(api, name))?.ProvisionedThroughput?.WriteCapacityUnits ?? 0;
  return new RateLimiter(units > 0 ? Math.max(1, units / 2) : undefined);
}

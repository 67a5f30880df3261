import type { Progress } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { shapeOfTable, type TableShape } from '../catalog/table-shape.ts';
import type { Action, DynamoClient, Input, Output } from '../connection/client.ts';
import type { StateTable } from '../connection/state-table.ts';
import { type AssertLease, describeTable } from '../connection/wait-for-table.ts';
import { type CapacityLimits, capacityLimits } from '../data/capacity.ts';
import { segmentCount } from '../data/scan.ts';

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

/** Throws `collection_unknown`. `items` is DynamoDB's estimate; `limits` are for one scan. */
export async function requireTable(
  { client, itemsPerSecond }: Pick<RunContext, 'client' | 'itemsPerSecond'>,
  table: string,
): Promise<{ name: string; items: number; shape: TableShape; limits: CapacityLimits }> {
  const name = client.table(table);
  const found = await describeTable(client, name);
  if (found) {
    const items = found.ItemCount ?? 0;
    const limits = capacityLimits(found, segmentCount(items), itemsPerSecond);
    return { name, items, shape: shapeOfTable(found, undefined), limits };
  }
  throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, {
    next: ['See what differs: svc db schema check'],
  });
}

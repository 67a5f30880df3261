import type { ConsumedCapacity, TableDescription } from '@aws-sdk/client-dynamodb';
import { RateLimiter } from './rate-limiter.ts';

/** Limits what a scan and its writes use of the capacity of a table. */
export interface CapacityLimits {
  readonly read: RateLimiter;
  readonly write: RateLimiter;
  /** `write` limits units of capacity, and not items. */
  readonly isWriteInUnits: boolean;
}

/** The application needs the other half. */
const SHARE = 0.5;
/**
 * What DynamoDB takes a second in one partition. Each segment of a scan may be in a partition of its own, and four are what a new
 * on-demand table takes.
 */
const PARTITION = { read: 3_000, write: 1_000 } as const;

/** In each segment. */
const MOST_BATCHES = 8;

/** On a provisioned table half of its capacity; on another one half of what the scanned partitions take. */
export function capacityLimits(
  { ProvisionedThroughput, GlobalSecondaryIndexes = [] }: TableDescription,
  segments: number,
  itemsPerSecond?: number,
): CapacityLimits {
  const shareOf = (units: number) => Math.max(1, units * SHARE);
  const provisionedReads = ProvisionedThroughput?.ReadCapacityUnits ?? 0;
  // A write of an item is also one of each index, and the slowest of them throttles the table.
  const provisionedWrites = [
    ProvisionedThroughput,
    ...GlobalSecondaryIndexes.map((index) => index.ProvisionedThroughput),
  ]
    .map((throughput) => throughput?.WriteCapacityUnits ?? 0)
    .filter((units) => units > 0);
  const writes = provisionedWrites.length > 0 ? Math.min(...provisionedWrites) : PARTITION.write * segments;
  return {
    read: new RateLimiter(shareOf(provisionedReads > 0 ? provisionedReads : PARTITION.read * segments)),
    write: new RateLimiter(itemsPerSecond ?? shareOf(writes)),
    isWriteInUnits: itemsPerSecond === undefined,
  };
}

/** The most that a request used of the table or of one index. */
export function unitsUsed(consumed: readonly ConsumedCapacity[] = []): number {
  const units = new Map<string, number>();
  const add = (name: string, count = 0) => units.set(name, (units.get(name) ?? 0) + count);
  for (const { CapacityUnits, Table, GlobalSecondaryIndexes = {} } of consumed) {
    add('', Table?.CapacityUnits ?? CapacityUnits);
    for (const [name, index] of Object.entries(GlobalSecondaryIndexes)) add(name, index.CapacityUnits);
  }
  return Math.max(0, ...units.values());
}

/** Items that a page may have so that reading it uses about one second of the limit. */
export function pageSize({ rate }: RateLimiter, unitsPerItem: number, most: number): number {
  return Math.max(1, Math.min(most, Math.floor(rate / Math.max(unitsPerItem, Number.EPSILON))));
}

/** Enough for the rate: an answer takes a few hundredths of a second. More would only be waited for by requests of others. */
export function batchesAtOnce({ rate }: RateLimiter): number {
  return Math.max(2, Math.min(MOST_BATCHES, Math.ceil(rate / 1_000)));
}

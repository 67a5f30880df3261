import { SvcError } from '../../../../core/errors.ts';
import { keyNames, type TableShape } from '../catalog/table-shape.ts';
import type { DynamoClient } from '../connection/client.ts';
import type { AssertLease } from '../connection/wait-for-table.ts';
import { type Item, parseKey, serializeKey } from './attribute.ts';
import { type ItemUpdate, MAX_BATCH, updateBatch } from './batch-update.ts';
import { batchesAtOnce, type CapacityLimits, pageSize } from './capacity.ts';

/** The progress of a scan of a table. Another process can resume from it. */
export interface ScanPosition {
  readonly segments: { last?: string; done: boolean }[];
  /** Items read. */
  scanned: number;
  /** Items that match the job. */
  matched: number;
  changed: number;
}

export interface ScanJob {
  readonly client: DynamoClient;
  /** The physical name, with the prefix. */
  readonly table: string;
  readonly shape: TableShape;
  /** Read in addition to the key. */
  readonly attributes: readonly string[];
  /** DynamoDB returns only items that pass it. Names are written with `nameInFilter`. */
  readonly filter?: { readonly text: string; readonly values?: Item };
  readonly position: ScanPosition;
  readonly limits: CapacityLimits;
  readonly assertLease: AssertLease;
  /** The update an item needs; undefined for none. */
  updateFor(item: Item): ItemUpdate | undefined;
  /** Whether an item that passed the filter matches the job; default: all do. */
  matches?(item: Item): boolean;
  /** Called after each page, once every item read so far is done. */
  onPage(position: ScanPosition): Promise<void>;
}

/** Items per page, at most. */
const PAGE_SIZE = 500;
const SEGMENT_COUNT = 4;
/** A table with fewer items is scanned in one segment. */
const ONE_SEGMENT_BELOW = 1_000;
/** Attempts at an item that other clients keep changing. */
const MAX_ROUNDS = 20;

export const segmentCount = (items: number): number => (items < ONE_SEGMENT_BELOW ? 1 : SEGMENT_COUNT);

export function startOfTable(items: number): ScanPosition {
  const segments = Array.from({ length: segmentCount(items) }, () => ({ done: false }));
  return { segments, scanned: 0, matched: 0, changed: 0 };
}

/** Reads every item once, in parallel segments, a page at a time. */
export async function scanTable(job: ScanJob): Promise<void> {
  const failed = new AbortController();
  await allSettled(
    job.position.segments.map(async (_, segment) => {
      try {
        await scanSegment(job, segment, failed.signal);
      } catch (error) {
        failed.abort();
        throw error;
      }
    }),
  );
}

/** Throws the first failure once all have ended, because the caller may then release the lock. */
async function allSettled(works: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(works);
  const failure = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failure) throw failure.reason;
}

async function scanSegment(job: ScanJob, segment: number, stopped: AbortSignal): Promise<void> {
  const {
    client,
    position,
    limits: { read },
  } = job;
  const progress = position.segments[segment];
  let unitsPerItem = 1;
  while (progress && !progress.done && !stopped.aborted) {
    // Waits for what earlier pages have used.
    await read.acquire(0);
    await job.assertLease();
    const page = await client.send(
      'Scan',
      {
        ...scanInput(job),
        Segment: segment,
        TotalSegments: position.segments.length,
        Limit: pageSize(read, unitsPerItem, PAGE_SIZE),
        ReturnConsumedCapacity: 'TOTAL',
        ...(progress.last !== undefined && { ExclusiveStartKey: parseKey(progress.last) }),
      },
      { onThrottled: () => read.slowDown() },
    );
    const units = page.ConsumedCapacity?.CapacityUnits ?? 0;
    read.charge(units);
    if (page.ScannedCount && units > 0) unitsPerItem = units / page.ScannedCount;
    const counts = await updatePage(job, page.Items ?? [], stopped);
    if (stopped.aborted) return;
    position.scanned += page.ScannedCount ?? 0;
    position.matched += counts.matched;
    position.changed += counts.changed;
    if (page.LastEvaluatedKey) progress.last = serializeKey(page.LastEvaluatedKey);
    else progress.done = true;
    await job.onPage(position);
  }
}

/** Reads the key and the attributes, under placeholders because a name may be a reserved word. */
function scanInput({ table, shape, attributes, filter }: ScanJob) {
  const names = [...new Set([...keyNames(shape), ...attributes])];
  return {
    TableName: table,
    ConsistentRead: true,
    ProjectionExpression: names.map((_, index) => `#a${index}`).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names.map((name, index) => [`#a${index}`, name])),
    ...(filter && {
      FilterExpression: substituteNames(filter.text, names),
      ...(filter.values && { ExpressionAttributeValues: filter.values }),
    }),
  };
}

/** Replaces the output of `nameInFilter` by placeholders. */
function substituteNames(text: string, names: readonly string[]): string {
  return text.replace(/\{("(?:[^"\\]|\\.)*")\}/g, (_, json: string) => {
    const index = names.indexOf(JSON.parse(json) as string);
    if (index < 0) throw new Error(`the filter names ${json}, which is not read`);
    return `#a${index}`;
  });
}

export const nameInFilter = (name: string): string => `{${JSON.stringify(name)}}`;

async function updatePage(
  job: ScanJob,
  items: readonly Item[],
  stopped: AbortSignal,
): Promise<{ matched: number; changed: number }> {
  const counts = { matched: 0, changed: 0 };
  const updates: ItemUpdate[] = [];
  for (const item of items) {
    if (job.matches && !job.matches(item)) continue;
    counts.matched += 1;
    const update = job.updateFor(item);
    if (update) updates.push(update);
  }
  const batches: ItemUpdate[][] = [];
  for (let from = 0; from < updates.length; from += MAX_BATCH) batches.push(updates.slice(from, from + MAX_BATCH));
  const worker = async () => {
    for (let batch = batches.shift(); batch && !stopped.aborted; batch = batches.shift()) {
      // In two steps: `+=` across an await would lose the counts of other workers.
      const changed = await updateUntilDone(job, batch);
      counts.changed += changed;
    }
  };
  const orStop = (error: unknown) => {
    batches.length = 0;
    throw error;
  };
  await allSettled(Array.from({ length: batchesAtOnce(job.limits.write) }, () => worker().catch(orStop)));
  return counts;
}

/** Reads an item again that another client has changed, until its update succeeds or is not needed. */
async function updateUntilDone(job: ScanJob, batch: readonly ItemUpdate[]): Promise<number> {
  const { client, table, limits, assertLease } = job;
  let changed = 0;
  let left = batch;
  for (let round = 0; left.length > 0; round += 1) {
    if (round === MAX_ROUNDS) throw contendedItem(table);
    const outcomes = await updateBatch(client, table, left, limits, assertLease);
    changed += outcomes.filter((outcome) => outcome === 'updated').length;
    const next: ItemUpdate[] = [];
    for (const [index, { key }] of left.entries()) {
      if (outcomes[index] === 'updated') continue;
      const item = await rereadItem(job, key);
      if (!item) continue;
      const update = !job.matches || job.matches(item) ? job.updateFor(item) : undefined;
      if (update) next.push(update);
      else if (outcomes[index] === 'maybeUpdated') changed += 1;
    }
    left = next;
  }
  return changed;
}

function contendedItem(table: string): SvcError {
  return new SvcError('check_failed', `An item of "${table}" changes too often.`, {
    why: `Another client changed it before each of ${MAX_ROUNDS} attempts.`,
    state: 'Earlier updates are kept.',
    next: ['Run the command again when the item is written less often: it resumes where it stopped.'],
  });
}

async function rereadItem(job: ScanJob, key: Item): Promise<Item | undefined> {
  const { FilterExpression: _f, ExpressionAttributeValues: _v, ...rest } = scanInput(job);
  return (await job.client.send('GetItem', { ...rest, Key: key })).Item;
}

/** The part of an item that identifies it. */
export function itemKey(shape: TableShape, item: Item): Item {
  return Object.fromEntries(keyNames(shape).flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
}

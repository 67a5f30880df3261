import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Api } from './api.ts';
import { type Item, keyFrom, keyText } from './attribute.ts';
import { BATCH, type Change, changeItems } from './change.ts';
import type { Pace } from './pace.ts';
import type { Hold } from './settled.ts';
import { keyNames, type TableShape } from './shape.ts';

/** Where a sweep over all items of a table stands. It can go on from here in another process. */
export interface Standing {
  readonly segments: { last?: string; done: boolean }[];
  /** Items that were read. */
  seen: number;
  /** Items that the sweep was about. */
  matched: number;
  changed: number;
}

export interface Sweep {
  readonly api: Api;
  /** The whole name. */
  readonly table: string;
  readonly shape: TableShape;
  /** Read beside the key. */
  readonly attributes: readonly string[];
  /** DynamoDB sends only those for which it holds. */
  readonly filter?: { readonly text: string; readonly values?: Item };
  readonly standing: Standing;
  readonly pace: Pace;
  readonly hold: Hold;
  /** What is to become of an item; undefined where it is fine. `matches` counts it. */
  change(item: Item): Change | undefined;
  /** Tells whether the sweep is about an item that the filter let through; default: all of them. */
  matches?(item: Item): boolean;
  /** After each page: what was read until here is done. */
  reached(standing: Standing): Promise<void>;
}

/** Items of a page: some hundred kilobytes at most are in memory at a time, whatever the size of the table. */
const PAGE = 500;
const BATCHES_AT_ONCE = 8;
const SEGMENTS = 4;
/** Below this a table is read in one go. */
const SMALL = 1_000;
/** An item that others change all the time is theirs. */
const ROUNDS = 20;

export function beginning(items: number): Standing {
  const segments = Array.from({ length: items < SMALL ? 1 : SEGMENTS }, () => ({ done: false }));
  return { segments, seen: 0, matched: 0, changed: 0 };
}

/** Goes through every item once, in segments side by side, page by page. */
export async function sweep(job: Sweep): Promise<void> {
  const failed = new AbortController();
  await ended(
    job.standing.segments.map(async (_, segment) => {
      try {
        await sweepSegment(job, segment, failed.signal);
      } catch (error) {
        failed.abort();
        throw error;
      }
    }),
  );
}

/** Nothing is under way any more when the first failure is thrown: the lock may be given back behind it. */
async function ended(works: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(works);
  const broken = outcomes.find((outcome) => outcome.status === 'rejected');
  if (broken) throw broken.reason;
}

async function sweepSegment(job: Sweep, segment: number, stopped: AbortSignal): Promise<void> {
  const { api, standing } = job;
  const own = standing.segments[segment];
  while (own && !own.done && !stopped.aborted) {
    await job.hold();
    const page = await api.send('Scan', {
      ...reading(job),
      Segment: segment,
      TotalSegments: standing.segments.length,
      Limit: PAGE,
      ...(own.last !== undefined && { ExclusiveStartKey: keyFrom(own.last) }),
    });
    const counted = await changePage(job, page.Items ?? [], stopped);
    if (stopped.aborted) return;
    standing.seen += page.ScannedCount ?? 0;
    standing.matched += counted.matched;
    standing.changed += counted.changed;
    if (page.LastEvaluatedKey) own.last = keyText(page.LastEvaluatedKey);
    else own.done = true;
    await job.reached(standing);
  }
}

/** What a page is read with: the key and the attributes, under names that no reserved word can meet. */
function reading({ table, shape, attributes, filter }: Sweep) {
  const wanted = [...new Set([...keyNames(shape), ...attributes])];
  return {
    TableName: table,
    ConsistentRead: true,
    ProjectionExpression: wanted.map((_, index) => `#a${index}`).join(', '),
    ExpressionAttributeNames: Object.fromEntries(wanted.map((name, index) => [`#a${index}`, name])),
    ...(filter && {
      FilterExpression: named(filter.text, wanted),
      ...(filter.values && { ExpressionAttributeValues: filter.values }),
    }),
  };
}

/** A filter names attributes as `{name}`, in JSON. */
function named(text: string, wanted: readonly string[]): string {
  return text.replace(/\{("(?:[^"\\]|\\.)*")\}/g, (_, json: string) => {
    const index = wanted.indexOf(JSON.parse(json) as string);
    if (index < 0) throw new Error(`the filter names ${json}, which is not read`);
    return `#a${index}`;
  });
}

export const attributeName = (name: string): string => `{${JSON.stringify(name)}}`;

async function changePage(
  job: Sweep,
  items: readonly Item[],
  stopped: AbortSignal,
): Promise<{ matched: number; changed: number }> {
  const counted = { matched: 0, changed: 0 };
  const changes: Change[] = [];
  for (const item of items) {
    if (job.matches && !job.matches(item)) continue;
    counted.matched += 1;
    const change = job.change(item);
    if (change) changes.push(change);
  }
  const batches: Change[][] = [];
  for (let from = 0; from < changes.length; from += BATCH) batches.push(changes.slice(from, from + BATCH));
  const worker = async () => {
    for (let batch = batches.shift(); batch && !stopped.aborted; batch = batches.shift()) {
      // In two steps: `+=` would add to what the count was before the others came in.
      const changed = await changeBatch(job, batch);
      counted.changed += changed;
    }
  };
  const orStop = (error: unknown) => {
    batches.length = 0;
    throw error;
  };
  await ended(Array.from({ length: BATCHES_AT_ONCE }, () => worker().catch(orStop)));
  return counted;
}

/** An item that somebody else changed in between is read again. */
async function changeBatch(job: Sweep, batch: readonly Change[]): Promise<number> {
  const { api, table, pace, hold } = job;
  let changed = 0;
  let left = batch;
  for (let round = 0; left.length > 0; round += 1) {
    if (round === ROUNDS) throw contended(table);
    const outcomes = await changeItems(api, table, left, pace, hold);
    changed += outcomes.filter((outcome) => outcome === 'changed').length;
    const next: Change[] = [];
    for (const [index, { key }] of left.entries()) {
      if (outcomes[index] === 'changed') continue;
      const item = await readAgain(job, key);
      if (!item) continue;
      const change = !job.matches || job.matches(item) ? job.change(item) : undefined;
      if (change) next.push(change);
      else if (outcomes[index] === 'doubtful') changed += 1;
    }
    left = next;
  }
  return changed;
}

function contended(table: string): SvcError {
  return new SvcError('check_failed', `An item of "${table}" changes all the time.`, {
    why: `${ROUNDS} times somebody else was faster.`,
    state: 'What was changed before stays changed.',
    next: ['Let it go on, which it does from there, when less is written to that item.'],
  });
}

async function readAgain(job: Sweep, key: Item): Promise<Item | undefined> {
  const { FilterExpression: _f, ExpressionAttributeValues: _v, ...rest } = reading(job) as Record<string, unknown>;
  const input = { ...rest, Key: key as Record<string, AttributeValue> } as unknown as Parameters<
    typeof job.api.send<'GetItem'>
  >[1];
  return (await job.api.send('GetItem', input)).Item;
}

/** The part of an item that identifies it. */
export function keyOf(shape: TableShape, item: Item): Item {
  return Object.fromEntries(keyNames(shape).flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
}

import { createHash } from 'node:crypto';
import type { Progress as Told } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { canonicalJson } from '../../../core/json.ts';
import type { Api } from './api.ts';
import { plainItem } from './attribute.ts';
import { planned, type Tested, tested } from './move-plan.ts';
import { Pace } from './pace.ts';
import { forgotten, moveId, Progress } from './progress.ts';
import { sweepOn } from './resumed.ts';
import { describe, type Hold } from './settled.ts';
import { shapeFrom, type TableShape } from './shape.ts';
import type { State } from './state.ts';
import type { Move } from './step.ts';
import { beginning, keyOf, sweep } from './sweep.ts';

/** What steps are run with. */
export interface Work {
  readonly api: Api;
  readonly state: State;
  readonly epoch: number;
  readonly hold: Hold;
  /** Items that are written in a second at most; undefined for as many as DynamoDB takes. */
  readonly itemsPerSecond: number | undefined;
  readonly onProgress: ((progress: Told) => void) | undefined;
}

/** Moves one field of every item, from where an interrupted attempt stopped. */
export async function moveItems(work: Work, table: string, move: Move): Promise<void> {
  const { api, state, epoch } = work;
  const { name, items, shape } = await tableFor(work, table);
  const what = createHash('sha256').update(canonicalJson(move)).digest('hex');
  const progress = new Progress(
    state,
    moveId(table),
    what,
    (item) => state.fenced(epoch, [item]),
    () => api.clock.now(),
  );
  const { attributes, filter, change } = planned(work, shape, move);
  await sweepOn({
    items,
    progress,
    api,
    table: name,
    shape,
    attributes,
    ...(filter && { filter }),
    pace: await paceOf(work, name),
    hold: work.hold,
    settles: true,
    change,
    told: (seen) => told(work, table, seen, items),
  });
}

/** Reads every item and refuses with a count and some keys what the move could not do; forgets what was half moved before. */
export async function checkItems(work: Work, table: string, move: Move): Promise<void> {
  const { state, epoch } = work;
  await refuseItems(work, table, await tableFor(work, table), tested(move));
  await state.fenced(epoch, [forgotten(state, moveId(table))]);
}

/** Throws `data_violates` with a count and some keys where an item does not pass. */
export async function refuseItems(
  work: Work,
  table: string,
  { name, items, shape }: Awaited<ReturnType<typeof tableFor>>,
  test: Tested,
): Promise<void> {
  const { api } = work;
  const found = { count: 0, keys: [] as string[], why: '' };
  const standing = beginning(items);
  await sweep({
    api,
    table: name,
    shape,
    attributes: test.attributes,
    ...(test.filter && { filter: test.filter }),
    standing,
    pace: new Pace(),
    hold: work.hold,
    change(item) {
      const why = test.problem(item);
      if (why === undefined) return undefined;
      found.count += 1;
      found.why ||= why;
      if (found.keys.length < 3) found.keys.push(JSON.stringify(plainItem(keyOf(shape, item))));
      return undefined;
    },
    reached: async (now) => told(work, table, now.seen, items, true),
  });
  if (found.count > 0) {
    throw new SvcError('data_violates', `Items of "${table}" do not allow the change.`, {
      why: `Of ${found.count} ${found.count === 1 ? 'item' : 'items'}: ${found.why}. Such as ${found.keys.join(', ')}.`,
      state: 'Nothing was changed.',
      next: ['Correct or delete those items, then run the command again.'],
      details: { count: found.count },
    });
  }
}

export function told(
  { onProgress }: Pick<Work, 'onProgress'>,
  collection: string,
  done: number,
  total: number,
  checks = false,
): void {
  // DynamoDB counts every six hours.
  onProgress?.({ collection, done, ...(total >= done && { total }), ...(checks && { checks }) });
}

export async function tableFor(
  { api }: Pick<Work, 'api'>,
  table: string,
): Promise<{ name: string; items: number; shape: TableShape }> {
  const name = api.table(table);
  const found = await describe(api, name);
  if (found) return { name, items: found.ItemCount ?? 0, shape: shapeFrom(found, undefined) };
  throw new SvcError('collection_unknown', `The table "${table}" does not exist.`, {
    next: ['Look what became of it: svc db schema check'],
  });
}

/** Of a provisioned table half of what it can write: the application needs the other half. */
export async function paceOf(
  { api, itemsPerSecond }: Pick<Work, 'api' | 'itemsPerSecond'>,
  name: string,
): Promise<Pace> {
  if (itemsPerSecond !== undefined) return new Pace(itemsPerSecond);
  const units = (await describe(api, name))?.ProvisionedThroughput?.WriteCapacityUnits ?? 0;
  return new Pace(units > 0 ? Math.max(1, units / 2) : undefined);
}

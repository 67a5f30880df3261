import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { TableDescription, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { exists } from '../../../core/schema/lookup.ts';
import type { Api, Input } from './api.ts';
import { collectionFrom, type Definition } from './definition.ts';
import { nameOf } from './errors.ts';
import type { Work } from './move.ts';
import { announcing, type Entry, entryRemoval, entryWrite } from './registry.ts';
import { describe, isReady, present, settled } from './settled.ts';
import { type IndexShape, keyAttributes, ON_DEMAND, shapeFrom, shapeOf, type TableShape } from './shape.ts';
import { setTimeToLive } from './time-to-live.ts';

const AGAIN_MS = 100;
/** `DescribeTable` may not know a table in the moment after it was created. */
const APPEARS_MS = 30_000;

/** What is known of a table before it is created. */
export interface Outset {
  readonly there: TableDescription | undefined;
  /** An attempt before this one announced it. */
  readonly begun: boolean;
  /** What says in the registry that it is there. */
  readonly entry: TransactWriteItem;
  /** What says that it is being created; written before the table is. */
  readonly announcement: readonly TransactWriteItem[];
}

/**
 * A table that no entry announces is somebody else's: it is looked for before anything announces it. `listed` are the
 * tables that there are, where they were asked for.
 */
export async function outsetOf(
  { api, state, hold }: Work,
  table: string,
  definition: Definition,
  entry: Promise<Entry | undefined>,
  listed?: Promise<ReadonlySet<string>>,
): Promise<Outset> {
  const look = async () => ((await listed)?.has(table) === false ? undefined : present(api, api.table(table), hold));
  const [known, there] = await Promise.all([entry, look()]);
  const begun = known?.creating === true && isDeepStrictEqual(known.collection, collectionFrom(definition));
  if (there && !begun) throw exists('collection', table);
  const said = entryWrite(state, table, definition);
  return { there, begun, entry: said, announcement: begun ? [] : [announcing(said)] };
}

/** Creates an announced table and waits until it can be used. Gives what says in the registry that it is there. */
export async function createTable(
  work: Work,
  table: string,
  definition: Definition,
  { there, begun, entry }: Outset,
): Promise<TransactWriteItem[]> {
  const { api, state, epoch, hold } = work;
  const name = api.table(table);
  const wanted = shapeOf(collectionFrom(definition));
  let made: TableDescription | undefined;
  try {
    made = there ?? (await make(work, table, wanted, begun));
  } catch (error) {
    // What it was refused for is told; an entry without a table, or for somebody else's, would only confuse.
    if (isForeign(error) || !(await describe(api, name).catch(() => true)))
      await state.fenced(epoch, [entryRemoval(state, table)]).catch(() => undefined);
    throw error;
  }
  if (!isReady(made)) made = await settled(api, name, hold);
  const { ttl: _, ...expected } = wanted;
  if (!made || !isDeepStrictEqual(shapeFrom(made, undefined), expected)) {
    throw new SvcError('table_differs', `The table "${table}" already exists and is not what the definition says.`, {
      why: 'Somebody else created it in the same moment.',
      next: ['Use another name, or drop what is there.'],
    });
  }
  if (wanted.ttl !== undefined) await setTimeToLive(work, name, wanted.ttl);
  return [entry];
}

const isForeign = (error: unknown): boolean => isSvcError(error) && error.code === 'collection_exists';

async function make({ api, hold }: Work, table: string, wanted: TableShape, begun: boolean): Promise<TableDescription> {
  const name = api.table(table);
  const input = creation(name, wanted);
  // Only a request of which nobody knows what became can have made what is there.
  for (let doubtful = begun; ; doubtful = true) {
    try {
      const answer = await api.attempt('CreateTable', input);
      if (answer !== 'unknown') return isReady(answer.TableDescription) ? answer.TableDescription : appeared(api, name);
    } catch (error) {
      if (nameOf(error) !== 'ResourceInUseException') throw error;
      if (!doubtful) throw exists('collection', table);
    }
    await wait(AGAIN_MS);
    const there = await present(api, name, hold);
    if (there) return there;
  }
}

async function appeared(api: Api, name: string): Promise<TableDescription> {
  const deadline = performance.now() + APPEARS_MS;
  for (;;) {
    const table = await describe(api, name);
    if (table) return table;
    if (performance.now() > deadline) throw new Error(`${name} was created and cannot be seen`);
    await wait(AGAIN_MS);
  }
}

function creation(name: string, shape: TableShape): Input<'CreateTable'> {
  const { globals, locals, stream, capacity } = shape;
  return {
    TableName: name,
    AttributeDefinitions: keyAttributes(shape).map((key) => ({ AttributeName: key.name, AttributeType: key.type })),
    KeySchema: keySchema(shape),
    BillingMode: shape.billing === ON_DEMAND ? 'PAY_PER_REQUEST' : 'PROVISIONED',
    ...throughput(capacity),
    ...(globals.length > 0 && { GlobalSecondaryIndexes: globals.map((index) => globalIndex(index, capacity)) }),
    ...(locals.length > 0 && { LocalSecondaryIndexes: locals.map((index) => globalIndex(index, undefined)) }),
    ...(stream !== undefined && {
      StreamSpecification: { StreamEnabled: true, StreamViewType: stream as 'NEW_AND_OLD_IMAGES' },
    }),
  };
}

/** An index as requests name it; a local one has no throughput of its own. */
export function globalIndex(index: IndexShape, capacity: TableShape['capacity']) {
  return {
    IndexName: index.name,
    KeySchema: keySchema(index),
    Projection: { ProjectionType: index.projection as 'ALL' },
    ...throughput(capacity),
  };
}

function throughput(capacity: TableShape['capacity']) {
  return capacity
    ? { ProvisionedThroughput: { ReadCapacityUnits: capacity.read, WriteCapacityUnits: capacity.write } }
    : {};
}

function keySchema({ partition, sort }: Pick<TableShape, 'partition' | 'sort'>) {
  return [
    { AttributeName: partition.name, KeyType: 'HASH' as const },
    ...(sort ? [{ AttributeName: sort.name, KeyType: 'RANGE' as const }] : []),
  ];
}

import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { TableDescription, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { alreadyExistsError } from '../../../../core/schema/find-or-throw.ts';
import { collectionFrom, entryRemoval, type TableDefinition } from '../catalog/registry.ts';
import {
  type IndexShape,
  keyAttributes,
  ON_DEMAND,
  shapeOfCollection,
  shapeOfTable,
  type TableShape,
} from '../catalog/table-shape.ts';
import type { DynamoClient, Input } from '../connection/client.ts';
import { errorName } from '../connection/errors.ts';
import {
  describeTable,
  describeTimeToLive,
  isReady,
  waitForTable,
  waitWhileDeleting,
} from '../connection/wait-for-table.ts';
import type { CreatePreflight } from './create-preflight.ts';
import { type RunContext, sendChange } from './run-context.ts';

const RETRY_MS = 100;
/** DescribeTable is eventually consistent and may not find a table that was just created. */
const VISIBLE_WITHIN_MS = 30_000;

/** Creates an announced table and waits until it is usable. Returns the registry write to commit next. */
export async function createTable(
  context: RunContext,
  table: string,
  definition: TableDefinition,
  { existing, interrupted, entry }: CreatePreflight,
): Promise<TransactWriteItem[]> {
  const { client, state, epoch, assertLease } = context;
  const name = client.table(table);
  const wanted = shapeOfCollection(collectionFrom(definition));
  let created: TableDescription | undefined;
  try {
    created = existing ?? (await sendCreate(context, table, wanted, interrupted));
  } catch (error) {
    // No entry may announce a missing table, or a table that another client created.
    if (isAlreadyExists(error) || !(await describeTable(client, name).catch(() => true)))
      await state.writeFenced(epoch, [entryRemoval(state, table)]).catch(() => undefined);
    throw error;
  }
  if (!isReady(created)) created = await waitForTable(client, name, assertLease);
  const { ttl: _, ...expected } = wanted;
  if (!created || !isDeepStrictEqual(shapeOfTable(created, undefined), expected)) {
    throw new SvcError('table_differs', `The table "${table}" already exists and differs from the definition.`, {
      why: 'Another client created it at the same time.',
      next: ['Use another name, or drop the existing table.'],
    });
  }
  if (wanted.ttl !== undefined) await enableTimeToLive(context, name, wanted.ttl);
  return [entry];
}

const isAlreadyExists = (error: unknown): boolean => isSvcError(error) && error.code === 'collection_exists';

async function sendCreate(
  context: RunContext,
  table: string,
  wanted: TableShape,
  interrupted: boolean,
): Promise<TableDescription> {
  const { client, assertLease } = context;
  const name = client.table(table);
  const input = createTableInput(name, wanted);
  // Only a request with an unknown outcome can have created an existing table.
  for (let maybeSent = interrupted; ; maybeSent = true) {
    try {
      const response = await sendChange(context, 'CreateTable', input);
      if (response !== 'unknown')
        return isReady(response.TableDescription) ? response.TableDescription : waitUntilVisible(client, name);
    } catch (error) {
      if (errorName(error) !== 'ResourceInUseException') throw error;
      if (!maybeSent) throw alreadyExistsError('collection', table);
    }
    await wait(RETRY_MS);
    const existing = await waitWhileDeleting(client, name, assertLease);
    if (existing) return existing;
  }
}

async function waitUntilVisible(client: DynamoClient, name: string): Promise<TableDescription> {
  const deadline = performance.now() + VISIBLE_WITHIN_MS;
  for (;;) {
    const table = await describeTable(client, name);
    if (table) return table;
    if (performance.now() > deadline) throw new Error(`${name} was created but DescribeTable does not find it`);
    await wait(RETRY_MS);
  }
}

function createTableInput(name: string, shape: TableShape): Input<'CreateTable'> {
  const { globals, locals, stream, capacity } = shape;
  return {
    TableName: name,
    AttributeDefinitions: keyAttributes(shape).map((key) => ({ AttributeName: key.name, AttributeType: key.type })),
    KeySchema: keySchema(shape),
    BillingMode: shape.billing === ON_DEMAND ? 'PAY_PER_REQUEST' : 'PROVISIONED',
    ...throughput(capacity),
    ...(globals.length > 0 && {
      GlobalSecondaryIndexes: globals.map((index) => indexInput(index, index.capacity ?? capacity)),
    }),
    ...(locals.length > 0 && { LocalSecondaryIndexes: locals.map((index) => indexInput(index, undefined)) }),
    ...(shape.tableClass !== undefined && { TableClass: shape.tableClass as 'STANDARD' }),
    ...(shape.isProtected && { DeletionProtectionEnabled: true }),
    ...(stream !== undefined && {
      StreamSpecification: { StreamEnabled: true, StreamViewType: stream as 'NEW_AND_OLD_IMAGES' },
    }),
  };
}

/** An index in a request. A local index has no capacity of its own. */
export function indexInput(index: IndexShape, capacity: TableShape['capacity']) {
  return {
    IndexName: index.name,
    KeySchema: keySchema(index),
    Projection: {
      ProjectionType: index.projection as 'ALL',
      ...(index.included && { NonKeyAttributes: [...index.included] }),
    },
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

const TTL_RETRY_MS = 200;

/** Checks first, because enabling it twice is an error. ENABLING, which can last an hour on AWS, counts as enabled. */
async function enableTimeToLive(context: RunContext, name: string, field: string): Promise<void> {
  const { client, assertLease } = context;
  for (;;) {
    await assertLease();
    const now = await describeTimeToLive(client, name);
    const enabled = now?.TimeToLiveStatus === 'ENABLED' || now?.TimeToLiveStatus === 'ENABLING';
    if (enabled && now?.AttributeName === field) return;
    if (enabled) {
      throw new SvcError('table_differs', `The time to live of "${name}" uses the attribute "${now?.AttributeName}".`, {
        next: ['Disable the time to live, wait an hour, then run the migration again.'],
      });
    }
    const input = { TableName: name, TimeToLiveSpecification: { Enabled: true, AttributeName: field } };
    if (now?.TimeToLiveStatus !== 'DISABLING' && (await sendChange(context, 'UpdateTimeToLive', input)) !== 'unknown')
      return;
    await wait(TTL_RETRY_MS);
  }
}

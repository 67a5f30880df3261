import type { TableDescription } from '@aws-sdk/client-dynamodb';
import type { UnsupportedObject } from '../../../../core/dialect.ts';
import type { Collection, Field, Index, SchemaModel } from '../../../../core/schema/model.ts';
import type { DynamoKey, DynamoOptions } from '../../../../core/schema/options.ts';
import { isSystemTable, logicalName } from '../compile/names.ts';
import { FIELD_TYPE_OF_KEY, keyType } from '../compile/types.ts';
import type { DynamoClient } from '../connection/client.ts';
import { errorName } from '../connection/errors.ts';
import type { StateTable } from '../connection/state-table.ts';
import { describeTable, describeTimeToLive } from '../connection/wait-for-table.ts';
import { readEntries } from './registry.ts';
import {
  type IndexShape,
  type KeyAttribute,
  ON_DEMAND,
  shapeOfCollection,
  shapeOfTable,
  type TableShape,
} from './table-shape.ts';

const CONCURRENCY = 16;

/** The logical names of the tables of this database, without system tables. Includes tables that are being deleted. */
export async function listTables(client: DynamoClient): Promise<string[]> {
  const found: string[] = [];
  let start: string | undefined;
  do {
    const page = await client.send('ListTables', { ...(start !== undefined && { ExclusiveStartTableName: start }) });
    for (const name of page.TableNames ?? []) {
      const table = logicalName(client.prefix, name);
      if (table !== undefined && !isSystemTable(table)) found.push(table);
    }
    start = page.LastEvaluatedTableName;
  } while (start !== undefined);
  return found;
}

/** Combines DynamoDB's description of tables with the fields in the registry. Leaves out tables that are being deleted. */
export async function introspect(
  client: DynamoClient,
  state: StateTable,
  tables?: readonly string[],
): Promise<SchemaModel> {
  const names = (tables ?? (await listTables(client))).filter((name) => !isSystemTable(name));
  const [found, entries] = await Promise.all([describeAll(client, names), readEntries(client, state, names)]);
  const model = new Map<string, ReturnType<typeof normalCollection>>();
  for (const [name, { table, ttl }] of found) {
    const entry = entries.get(name);
    if (entry?.creating) continue;
    const shape = shapeOfTable(table, ttl);
    const unknown = { name, fields: new Map(), indexes: new Map(), options: {} };
    model.set(
      name,
      entry ? normalCollection(shape, entry.collection) : normalCollection(shape, unknown, new Set(OPTIONAL)),
    );
  }
  return model;
}

/** A table without an entry in the registry, as it would be with this one; undefined if it is not such a table. */
export async function introspectAs(
  client: DynamoClient,
  state: StateTable,
  collection: Collection,
): Promise<Collection | undefined> {
  const { name } = collection;
  const [found, entries] = await Promise.all([describeAll(client, [name]), readEntries(client, state, [name])]);
  const described = entries.has(name) ? undefined : found.get(name);
  return described && normalCollection(shapeOfTable(described.table, described.ttl), collection);
}

type DescribedTables = Map<string, { table: TableDescription; ttl: Awaited<ReturnType<typeof describeTimeToLive>> }>;

async function describeAll(client: DynamoClient, names: readonly string[]): Promise<DescribedTables> {
  const found: DescribedTables = new Map();
  const left = [...names];
  const worker = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      if (!isLegalTableName(name)) continue;
      const physical = client.table(name);
      const [table, ttl] = await Promise.all([describeTable(client, physical), describeTimeToLive(client, physical)]);
      if (table && table.TableStatus !== 'DELETING') found.set(name, { table, ttl });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return new Map(names.flatMap((name) => (found.has(name) ? [[name, found.get(name) as never]] : [])));
}

/** DescribeTable rejects other names. */
const isLegalTableName = (name: string): boolean => /^[a-zA-Z0-9_.-]{1,190}$/.test(name);

/** Properties of tables that neither DynamoOptions nor the registry can express. */
export async function unsupportedObjects(client: DynamoClient, state: StateTable): Promise<UnsupportedObject[]> {
  const names = await listTables(client);
  const [found, entries] = await Promise.all([describeAll(client, names), readEntries(client, state, names)]);
  const others = await Promise.all([...found.values()].map(({ table }) => propertiesOutside(client, table)));
  return [...found].flatMap(([collection, { table }], at) => {
    const what: string[] = [...(others[at] ?? [])];
    if (!entries.has(collection))
      what.push('has attributes outside its keys, which DynamoDB does not list: declare them');
    const known = entries.get(collection)?.collection.options;
    const named = known ? declaredProperties(known) : new Set(OPTIONAL);
    const shape = shapeOfTable(table, undefined);
    for (const { name, capacity } of named.has('capacity') ? [] : shape.globals)
      if (capacity) what.push(`has the index "${name}" with a capacity of its own, which no migration sets`);
    if (table.SSEDescription) what.push('is encrypted with its own key');
    if (shape.isProtected && !named.has('deletionProtectionEnabled'))
      what.push('is protected against deletion, which no migration sets');
    if (shape.tableClass !== undefined && !named.has('tableClass'))
      what.push(`is of the class ${shape.tableClass}, which no migration sets`);
    if (table.Replicas?.length)
      what.push(`has replicas in ${table.Replicas.map(({ RegionName }) => RegionName).join(', ')}`);
    if (table.OnDemandThroughput) what.push('has a limit on its on-demand throughput');
    for (const { IndexName: index, OnDemandThroughput: limit, KeySchema: key = [] } of table.GlobalSecondaryIndexes ??
      []) {
      if (limit) what.push(`has the index "${index}" with a limit on its on-demand throughput`);
      if (key.length > 2)
        what.push(`has the index "${index}" with a key of ${key.length} attributes, which svc cannot create`);
    }
    return what.map((one) => ({ collection, what: one }));
  });
}

/** What DescribeTable does not have. A user may not be allowed to read it. */
async function propertiesOutside(client: DynamoClient, table: TableDescription): Promise<string[]> {
  const [backups, tags] = await Promise.allSettled([
    client.send('DescribeContinuousBackups', { TableName: table.TableName }),
    client.send('ListTagsOfResource', { ResourceArn: table.TableArn }),
  ]);
  const recovery =
    backups.status === 'fulfilled' &&
    backups.value.ContinuousBackupsDescription?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus;
  const keys = tags.status === 'fulfilled' ? (tags.value.Tags ?? []).map(({ Key }) => Key) : [];
  // DynamoDB Local has no such operation, and therefore none of them.
  const isUnread = (read: PromiseSettledResult<unknown>) =>
    read.status === 'rejected' && errorName(read.reason) !== 'UnknownOperationException';
  return [
    ...(recovery === 'ENABLED' ? ['has point-in-time recovery, which svc does not enable'] : []),
    ...(keys.length > 0 ? [`has the tags ${keys.join(', ')}, which svc does not set`] : []),
    ...(isUnread(backups) ? ['has perhaps point-in-time recovery, which could not be read'] : []),
    ...(isUnread(tags) ? ['has perhaps tags, which could not be read'] : []),
  ];
}

/** The parts of a collection that come from the model or the registry, in addition to the table's shape. */
type KnownCollection = Pick<Collection, 'name' | 'fields' | 'indexes' | 'options'>;

/** The model as introspection would return it. */
export function normalize(model: SchemaModel): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => [name, normalCollection(shapeOfCollection(collection), collection)]),
  );
}

/** Properties that people also change by hand: they are compared where the options name them. */
const OPTIONAL = ['tableClass', 'deletionProtectionEnabled', 'capacity'] as const;
type OptionalProperty = (typeof OPTIONAL)[number];

function declaredProperties({ dynamoOptions = {} }: Collection['options']): ReadonlySet<OptionalProperty> {
  const hasCapacity = dynamoOptions.globalSecondaryIndexes?.some(({ readCapacityUnits: units }) => units !== undefined);
  return new Set<OptionalProperty>([
    ...(dynamoOptions.tableClass === undefined ? [] : ['tableClass' as const]),
    ...(dynamoOptions.deletionProtectionEnabled === undefined ? [] : ['deletionProtectionEnabled' as const]),
    ...(hasCapacity ? ['capacity' as const] : []),
  ]);
}

/** The same collection for the same table, independent of how its options were written: keys explicit, indexes sorted. */
function normalCollection(
  shape: TableShape,
  known: KnownCollection,
  named = declaredProperties(known.options),
): Collection {
  const declared = new Set((known.options.dynamoOptions?.globalSecondaryIndexes ?? []).map(({ name }) => name));
  const capacityOf = (index: IndexShape) => (named.has('capacity') ? index.capacity : undefined);
  const isIndex = (index: IndexShape) =>
    index.projection === 'ALL' && !declared.has(index.name) && capacityOf(index) === undefined;
  const globals = shape.globals.filter((index) => !isIndex(index));
  const options: DynamoOptions = {
    partitionKey: keyOption(shape.partition),
    ...(shape.sort && { sortKey: keyOption(shape.sort) }),
    ...(shape.billing !== ON_DEMAND && { billingMode: shape.billing }),
    ...(shape.capacity && { readCapacityUnits: shape.capacity.read, writeCapacityUnits: shape.capacity.write }),
    ...(globals.length > 0 && {
      globalSecondaryIndexes: globals.map((index) => {
        const capacity = capacityOf(index);
        return {
          name: index.name,
          partitionKey: keyOption(index.partition),
          ...(index.sort && { sortKey: keyOption(index.sort) }),
          projection: index.projection,
          ...(index.included && { nonKeyAttributes: index.included }),
          ...(capacity && { readCapacityUnits: capacity.read, writeCapacityUnits: capacity.write }),
        };
      }),
    }),
    ...(shape.locals.length > 0 && {
      localSecondaryIndexes: shape.locals.map(({ name, sort, projection, included }) => ({
        name,
        sortKey: keyOption(sort),
        projection,
        ...(included && { nonKeyAttributes: included }),
      })),
    }),
    ...(shape.stream !== undefined && { streamEnabled: true, streamViewType: shape.stream }),
    ...(shape.ttl !== undefined && { ttlAttribute: shape.ttl }),
    ...(named.has('tableClass') && shape.tableClass !== undefined && { tableClass: shape.tableClass }),
    ...(named.has('deletionProtectionEnabled') && shape.isProtected && { deletionProtectionEnabled: true }),
  };
  return {
    name: known.name,
    fields: fieldsOf(shape, known),
    indexes: new Map(shape.globals.filter(isIndex).map((index) => [index.name, indexOf(index)])),
    constraints: new Map(),
    options: { dynamoOptions: options },
  };
}

const keyOption = ({ name, type }: KeyAttribute): DynamoKey => ({ name, type });

function indexOf({ name, partition, sort }: IndexShape): Index {
  return { name, columns: [{ name: partition.name }, ...(sort ? [{ name: sort.name }] : [])] };
}

/** Flags key fields. A key that is not in the registry, or with another type, becomes a field of the attribute's type. */
function fieldsOf({ partition, sort, globals, locals, ttl }: TableShape, known: KnownCollection): Map<string, Field> {
  const key = new Set([partition.name, ...(sort ? [sort.name] : [])]);
  const fields = new Map<string, Field>();
  for (const [name, { primaryKey: _, ...field }] of known.fields) fields.set(name, field);
  // The time to live is a number of whole seconds.
  if (ttl !== undefined && !fields.has(ttl)) fields.set(ttl, { name: ttl, type: 'bigint' });
  const indexed = [...globals, ...locals].flatMap((index) => [index.partition, index.sort]);
  for (const attribute of [partition, sort, ...indexed]) {
    if (!attribute) continue;
    const { name, type } = attribute;
    const declared = fields.get(name);
    const field = declared && keyType(declared.type) === type ? declared : { name, type: FIELD_TYPE_OF_KEY[type] };
    fields.set(name, key.has(name) ? { ...field, primaryKey: true, required: true } : field);
  }
  return fields;
}

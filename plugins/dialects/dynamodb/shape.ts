import type { TableDescription, TimeToLiveDescription } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../core/errors.ts';
import type { Collection, Index } from '../../../core/schema/model.ts';
import type { DynamoKey, DynamoOptions } from '../../../core/schema/options.ts';
import { type KeyType, keyType } from './types.ts';

export interface Key {
  readonly name: string;
  readonly type: KeyType;
}

export interface IndexShape {
  readonly name: string;
  readonly partition: Key;
  readonly sort?: Key;
  readonly projection: string;
}

/** What DynamoDB itself knows of a table: the rest of its fields exist in our registry only. */
export interface TableShape {
  readonly partition: Key;
  readonly sort?: Key;
  readonly billing: string;
  /** Of a provisioned table and each of its global indexes. */
  readonly capacity?: { readonly read: number; readonly write: number };
  readonly globals: readonly IndexShape[];
  readonly locals: readonly (IndexShape & { readonly sort: Key })[];
  readonly stream?: string;
  /** The field of the time to live. */
  readonly ttl?: string;
}

export const ON_DEMAND = 'PAY_PER_REQUEST';
const STREAM = 'NEW_AND_OLD_IMAGES';
const PROJECTION = 'ALL';

/** What a collection asks DynamoDB for. Throws `field_invalid` or `not_supported` where it cannot be had. */
export function shapeOf(collection: Collection): TableShape {
  const options = collection.options.dynamoOptions ?? {};
  const { partition, sort } = keysOf(collection, options);
  const globals: IndexShape[] = (options.globalSecondaryIndexes ?? []).map((index) => ({
    name: index.name,
    partition: declaredKey(collection, index.partitionKey, `the index "${index.name}"`),
    ...(index.sortKey && { sort: declaredKey(collection, index.sortKey, `the index "${index.name}"`) }),
    projection: index.projection ?? PROJECTION,
  }));
  return {
    partition,
    ...(sort && { sort }),
    billing: options.billingMode ?? ON_DEMAND,
    ...(options.readCapacityUnits !== undefined &&
      options.writeCapacityUnits !== undefined && {
        capacity: { read: options.readCapacityUnits, write: options.writeCapacityUnits },
      }),
    globals: sorted([...globals, ...[...collection.indexes.values()].map((index) => indexShape(collection, index))]),
    locals: sorted(
      (options.localSecondaryIndexes ?? []).map((index) => ({
        name: index.name,
        partition,
        sort: declaredKey(collection, index.sortKey, `the index "${index.name}"`),
        projection: index.projection ?? PROJECTION,
      })),
    ),
    ...(options.streamEnabled && { stream: options.streamViewType ?? STREAM }),
    ...(options.ttlAttribute !== undefined && { ttl: options.ttlAttribute }),
  };
}

/** An index of the model: a global one that has every attribute. */
export function indexShape(collection: Collection, index: Index): IndexShape {
  const [first, second, ...more] = index.columns;
  if (!first || more.length > 0) {
    throw new SvcError('not_supported', `dynamodb cannot have an index on ${index.columns.length} fields.`, {
      why: 'An index has a partition key and at most one sort key.',
      next: ['Put several values into one field, and the index on that: "2026#eu".'],
    });
  }
  const key = (name: string) => fieldKey(collection, name, `the index "${index.name}"`);
  return {
    name: index.name,
    partition: key(first.name),
    ...(second && { sort: key(second.name) }),
    projection: PROJECTION,
  };
}

/** By the options, else by the fields that say `primaryKey`: partition key, then sort key. */
function keysOf(collection: Collection, { partitionKey, sortKey }: DynamoOptions): { partition: Key; sort?: Key } {
  const flagged = [...collection.fields.values()].filter((field) => field.primaryKey).map(({ name }) => name);
  const refuse = (why: string, next: string) =>
    new SvcError('field_invalid', `The key of the table "${collection.name}" cannot be made.`, { why, next: [next] });
  if (!partitionKey) {
    const [first, second, ...more] = flagged;
    if (first === undefined || more.length > 0) {
      throw refuse(
        first === undefined
          ? 'A DynamoDB table needs a partition key.'
          : `A key has a partition key and at most one sort key; ${flagged.length} fields say primaryKey.`,
        'Mark one field, or two, with primaryKey: true, or name them in dynamoOptions.',
      );
    }
    if (sortKey) throw refuse('dynamoOptions has a sortKey and no partitionKey.', 'Name the partitionKey too.');
    const partition = fieldKey(collection, first, 'the key');
    return { partition, ...(second !== undefined && { sort: fieldKey(collection, second, 'the key') }) };
  }
  const partition = declaredKey(collection, partitionKey, 'the key');
  const sort = sortKey && declaredKey(collection, sortKey, 'the key');
  const named = [partition.name, ...(sort ? [sort.name] : [])];
  const other = flagged.find((name) => !named.includes(name));
  if (other !== undefined) {
    throw refuse(
      `The field "${other}" says primaryKey and is not in the key that dynamoOptions names.`,
      `Remove primaryKey from "${other}", or name it in dynamoOptions.`,
    );
  }
  if (sort && sort.name === partition.name) {
    throw refuse('Partition key and sort key are one field.', 'Remove the sortKey.');
  }
  return { partition, ...(sort && { sort }) };
}

function declaredKey(collection: Collection, { name, type }: DynamoKey, where: string): Key {
  const key = fieldKey(collection, name, where);
  if (key.type === type) return key;
  throw new SvcError('field_invalid', `The type of "${collection.name}.${name}" contradicts ${where}.`, {
    why: `dynamoOptions says ${type}; the field is of type ${collection.fields.get(name)?.type}, which is ${key.type}.`,
    next: [`Write { "name": "${name}", "type": "${key.type}" }, or give the field another type.`],
  });
}

function fieldKey(collection: Collection, name: string, where: string): Key {
  const field = collection.fields.get(name);
  if (!field) {
    throw new SvcError(
      'field_unknown',
      `The table "${collection.name}" has no field "${name}", which ${where} names.`,
      {
        why: 'A key can never be changed: a name with a typing error would stay.',
        next: [`Add the field "${name}" to the table.`],
      },
    );
  }
  const type = keyType(field.type);
  if (type === undefined) {
    throw new SvcError('not_supported', `dynamodb cannot have "${collection.name}.${name}" in ${where}.`, {
      why: `A key is a text, a number or bytes; the field is of type ${field.type}.`,
      next: ['Use a field of another type: "true" as a string, for example.'],
    });
  }
  if (Buffer.byteLength(name) <= 255) return { name, type };
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a field on dynamodb.`, {
    why: `It is in ${where} and has ${Buffer.byteLength(name)} bytes; the limit is 255.`,
    next: ['Choose a shorter name.'],
  });
}

/** What `DescribeTable` and `DescribeTimeToLive` say. */
export function shapeFrom(table: TableDescription, ttl: TimeToLiveDescription | undefined): TableShape {
  const types = new Map(
    (table.AttributeDefinitions ?? []).map(({ AttributeName, AttributeType }) => [AttributeName, AttributeType]),
  );
  const key = (schema: TableDescription['KeySchema'], kind: 'HASH' | 'RANGE'): Key | undefined => {
    const name = schema?.find(({ KeyType }) => KeyType === kind)?.AttributeName;
    return name === undefined ? undefined : { name, type: (types.get(name) ?? 'S') as KeyType };
  };
  const index = (one: NonNullable<TableDescription['GlobalSecondaryIndexes']>[number]): IndexShape => {
    const sort = key(one.KeySchema, 'RANGE');
    return {
      name: one.IndexName ?? '',
      partition: key(one.KeySchema, 'HASH') ?? { name: '', type: 'S' },
      ...(sort && { sort }),
      projection: one.Projection?.ProjectionType ?? PROJECTION,
    };
  };
  const sort = key(table.KeySchema, 'RANGE');
  // A provisioned table says nothing of its billing.
  const billing = table.BillingModeSummary?.BillingMode ?? 'PROVISIONED';
  const { ReadCapacityUnits: read = 0, WriteCapacityUnits: write = 0 } = table.ProvisionedThroughput ?? {};
  const enabled = ttl?.TimeToLiveStatus === 'ENABLED' || ttl?.TimeToLiveStatus === 'ENABLING';
  return {
    partition: key(table.KeySchema, 'HASH') ?? { name: '', type: 'S' },
    ...(sort && { sort }),
    billing,
    ...(billing === 'PROVISIONED' && { capacity: { read, write } }),
    globals: sorted((table.GlobalSecondaryIndexes ?? []).filter((one) => one.IndexStatus !== 'DELETING').map(index)),
    locals: sorted((table.LocalSecondaryIndexes ?? []).map((one) => index(one) as IndexShape & { sort: Key })),
    ...(table.StreamSpecification?.StreamEnabled && { stream: table.StreamSpecification.StreamViewType ?? STREAM }),
    ...(enabled && ttl?.AttributeName !== undefined && { ttl: ttl.AttributeName }),
  };
}

/** The attributes that keys are made of: DynamoDB wants exactly these declared. */
export function keyAttributes({ partition, sort, globals, locals }: TableShape): Key[] {
  const all = [partition, sort, ...[...globals, ...locals].flatMap((index) => [index.partition, index.sort])];
  return [...new Map(all.flatMap((key) => (key ? [[key.name, key] as const] : []))).values()];
}

/** The names of the fields that identify an item. */
export const keyNames = ({ partition, sort }: Pick<TableShape, 'partition' | 'sort'>): string[] =>
  sort ? [partition.name, sort.name] : [partition.name];

/** The index that has the field in its key. */
export function indexOn({ globals, locals }: TableShape, field: string): string | undefined {
  return [...globals, ...locals].find(({ partition, sort }) => partition.name === field || sort?.name === field)?.name;
}

function sorted<T extends { readonly name: string }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => (a.name < b.name ? -1 : 1));
}

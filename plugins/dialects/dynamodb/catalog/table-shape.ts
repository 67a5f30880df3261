import type { TableDescription, TimeToLiveDescription } from '@aws-sdk/client-dynamodb';
import { SvcError } from '../../../../core/errors.ts';
import type { Collection, Index } from '../../../../core/schema/model.ts';
import type { DynamoKey, DynamoOptions } from '../../../../core/schema/options.ts';
import { type KeyType, keyType } from '../compile/types.ts';

export interface KeyAttribute {
  readonly name: string;
  readonly type: KeyType;
}

export interface IndexShape {
  readonly name: string;
  readonly partition: KeyAttribute;
  readonly sort?: KeyAttribute;
  readonly projection: string;
  /** The attributes of the projection INCLUDE, sorted. */
  readonly included?: readonly string[];
  /** Where it is not that of the table. */
  readonly capacity?: Capacity;
}

interface Capacity {
  readonly read: number;
  readonly write: number;
}

/** The properties of a table that DynamoDB itself stores. Fields outside keys are only in the registry. */
export interface TableShape {
  readonly partition: KeyAttribute;
  readonly sort?: KeyAttribute;
  readonly billing: string;
  /** Of a provisioned table and of each of its global indexes. */
  readonly capacity?: Capacity;
  readonly globals: readonly IndexShape[];
  readonly locals: readonly (IndexShape & { readonly sort: KeyAttribute })[];
  readonly stream?: string;
  /** The time-to-live attribute. */
  readonly ttl?: string;
  /** Only of a table that is of another class than the standard one. */
  readonly tableClass?: string;
  readonly isProtected?: true;
}

const STANDARD = 'STANDARD';
export const ON_DEMAND = 'PAY_PER_REQUEST';
const DEFAULT_STREAM_VIEW = 'NEW_AND_OLD_IMAGES';
const DEFAULT_PROJECTION = 'ALL';

/** Throws `field_invalid`, `field_unknown`, `name_invalid` or `not_supported`. */
export function shapeOfCollection(collection: Collection): TableShape {
  const options = collection.options.dynamoOptions ?? {};
  const { partition, sort } = keyAttributesOf(collection, options);
  const globals: IndexShape[] = (options.globalSecondaryIndexes ?? []).map((index) => ({
    name: index.name,
    partition: optionKey(collection, index.partitionKey, `the index "${index.name}"`),
    ...(index.sortKey && { sort: optionKey(collection, index.sortKey, `the index "${index.name}"`) }),
    projection: index.projection ?? DEFAULT_PROJECTION,
    ...includedOf(index.nonKeyAttributes),
    ...ownCapacity(index.readCapacityUnits, index.writeCapacityUnits, options),
  }));
  return {
    partition,
    ...(sort && { sort }),
    billing: options.billingMode ?? ON_DEMAND,
    ...(options.readCapacityUnits !== undefined &&
      options.writeCapacityUnits !== undefined && {
        capacity: { read: options.readCapacityUnits, write: options.writeCapacityUnits },
      }),
    globals: sortByName([
      ...globals,
      ...[...collection.indexes.values()].map((index) => shapeOfIndex(collection, index)),
    ]),
    locals: sortByName(
      (options.localSecondaryIndexes ?? []).map((index) => ({
        name: index.name,
        partition,
        sort: optionKey(collection, index.sortKey, `the index "${index.name}"`),
        projection: index.projection ?? DEFAULT_PROJECTION,
        ...includedOf(index.nonKeyAttributes),
      })),
    ),
    ...(options.streamEnabled && { stream: options.streamViewType ?? DEFAULT_STREAM_VIEW }),
    ...(options.ttlAttribute !== undefined && { ttl: options.ttlAttribute }),
    ...(options.tableClass !== undefined && options.tableClass !== STANDARD && { tableClass: options.tableClass }),
    ...(options.deletionProtectionEnabled && { isProtected: true }),
  };
}

const includedOf = (names: readonly string[] | undefined): Pick<IndexShape, 'included'> =>
  names && names.length > 0 ? { included: [...names].sort() } : {};

function ownCapacity(
  read: number | undefined,
  write: number | undefined,
  { readCapacityUnits, writeCapacityUnits }: Pick<DynamoOptions, 'readCapacityUnits' | 'writeCapacityUnits'>,
): Pick<IndexShape, 'capacity'> {
  if (read === undefined || write === undefined) return {};
  return read === readCapacityUnits && write === writeCapacityUnits ? {} : { capacity: { read, write } };
}

/** An index of the model is a global index that projects all attributes. */
export function shapeOfIndex(collection: Collection, index: Index): IndexShape {
  const [first, second, ...more] = index.columns;
  if (!first || more.length > 0) {
    throw new SvcError('not_supported', `DynamoDB cannot have an index on ${index.columns.length} fields.`, {
      why: 'An index has a partition key and at most one sort key.',
      next: ['Combine several values in one field, such as "2026#eu", and create the index on that field.'],
    });
  }
  const key = (name: string) => fieldKey(collection, name, `the index "${index.name}"`);
  return {
    name: index.name,
    partition: key(first.name),
    ...(second && { sort: key(second.name) }),
    projection: DEFAULT_PROJECTION,
  };
}

/** From the options, otherwise from the fields with `primaryKey`: partition key first, then sort key. */
function keyAttributesOf(
  collection: Collection,
  { partitionKey, sortKey }: DynamoOptions,
): { partition: KeyAttribute; sort?: KeyAttribute } {
  const flagged = [...collection.fields.values()].filter((field) => field.primaryKey).map(({ name }) => name);
  const invalidKey = (why: string, next: string) =>
    new SvcError('field_invalid', `The key of the table "${collection.name}" is not valid.`, { why, next: [next] });
  if (!partitionKey) {
    const [first, second, ...more] = flagged;
    if (first === undefined || more.length > 0) {
      throw invalidKey(
        first === undefined
          ? 'A DynamoDB table needs a partition key.'
          : `A key has a partition key and at most one sort key; ${flagged.length} fields have primaryKey.`,
        'Mark one field, or two, with primaryKey: true, or name them in dynamoOptions.',
      );
    }
    if (sortKey) throw invalidKey('dynamoOptions has a sortKey but no partitionKey.', 'Name the partitionKey too.');
    const partition = fieldKey(collection, first, 'the key');
    return { partition, ...(second !== undefined && { sort: fieldKey(collection, second, 'the key') }) };
  }
  const partition = optionKey(collection, partitionKey, 'the key');
  const sort = sortKey && optionKey(collection, sortKey, 'the key');
  const named = [partition.name, ...(sort ? [sort.name] : [])];
  const other = flagged.find((name) => !named.includes(name));
  if (other !== undefined) {
    throw invalidKey(
      `The field "${other}" has primaryKey but is not in the key of dynamoOptions.`,
      `Remove primaryKey from "${other}", or name it in dynamoOptions.`,
    );
  }
  if (sort && sort.name === partition.name) {
    throw invalidKey('The partition key and the sort key are the same field.', 'Remove the sortKey.');
  }
  return { partition, ...(sort && { sort }) };
}

function optionKey(collection: Collection, { name, type }: DynamoKey, where: string): KeyAttribute {
  const key = fieldKey(collection, name, where);
  if (key.type === type) return key;
  throw new SvcError('field_invalid', `The type of "${collection.name}.${name}" contradicts ${where}.`, {
    why: `dynamoOptions has ${type}; the field is of type ${collection.fields.get(name)?.type}, which is ${key.type}.`,
    next: [`Write { "name": "${name}", "type": "${key.type}" }, or give the field another type.`],
  });
}

function fieldKey(collection: Collection, name: string, where: string): KeyAttribute {
  const field = collection.fields.get(name);
  if (!field) {
    throw new SvcError('field_unknown', `The table "${collection.name}" has no field "${name}", which ${where} uses.`, {
      why: 'A key can never be changed, so a misspelled name would be permanent.',
      next: [`Add the field "${name}" to the table.`],
    });
  }
  const type = keyType(field.type);
  if (type === undefined) {
    throw new SvcError('not_supported', `DynamoDB cannot use "${collection.name}.${name}" in ${where}.`, {
      why: `A key must be a string, a number or bytes; the field is of type ${field.type}.`,
      next: ['Use a field of another type, for example the string "true".'],
    });
  }
  if (Buffer.byteLength(name) <= 255) return { name, type };
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a field on DynamoDB.`, {
    why: `It is in ${where} and has ${Buffer.byteLength(name)} bytes; the limit is 255.`,
    next: ['Choose a shorter name.'],
  });
}

/** The shape of a table from the responses of DescribeTable and DescribeTimeToLive. */
export function shapeOfTable(table: TableDescription, ttl: TimeToLiveDescription | undefined): TableShape {
  const types = new Map(
    (table.AttributeDefinitions ?? []).map(({ AttributeName, AttributeType }) => [AttributeName, AttributeType]),
  );
  const key = (schema: TableDescription['KeySchema'], kind: 'HASH' | 'RANGE'): KeyAttribute | undefined => {
    const name = schema?.find(({ KeyType }) => KeyType === kind)?.AttributeName;
    return name === undefined ? undefined : { name, type: (types.get(name) ?? 'S') as KeyType };
  };
  // DescribeTable omits the billing mode of a provisioned table.
  const billing = table.BillingModeSummary?.BillingMode ?? 'PROVISIONED';
  const { ReadCapacityUnits: read = 0, WriteCapacityUnits: write = 0 } = table.ProvisionedThroughput ?? {};
  const index = (one: NonNullable<TableDescription['GlobalSecondaryIndexes']>[number]): IndexShape => {
    const sort = key(one.KeySchema, 'RANGE');
    return {
      name: one.IndexName ?? '',
      partition: key(one.KeySchema, 'HASH') ?? { name: '', type: 'S' },
      ...(sort && { sort }),
      projection: one.Projection?.ProjectionType ?? DEFAULT_PROJECTION,
      ...includedOf(one.Projection?.NonKeyAttributes),
      ...(billing === 'PROVISIONED' &&
        ownCapacity(one.ProvisionedThroughput?.ReadCapacityUnits, one.ProvisionedThroughput?.WriteCapacityUnits, {
          readCapacityUnits: read,
          writeCapacityUnits: write,
        })),
    };
  };
  const sort = key(table.KeySchema, 'RANGE');
  const tableClass = table.TableClassSummary?.TableClass;
  const enabled = ttl?.TimeToLiveStatus === 'ENABLED' || ttl?.TimeToLiveStatus === 'ENABLING';
  return {
    partition: key(table.KeySchema, 'HASH') ?? { name: '', type: 'S' },
    ...(sort && { sort }),
    billing,
    ...(billing === 'PROVISIONED' && { capacity: { read, write } }),
    globals: sortByName(
      (table.GlobalSecondaryIndexes ?? []).filter((one) => one.IndexStatus !== 'DELETING').map(index),
    ),
    locals: sortByName(
      (table.LocalSecondaryIndexes ?? []).map((one) => index(one) as IndexShape & { sort: KeyAttribute }),
    ),
    ...(table.StreamSpecification?.StreamEnabled && {
      stream: table.StreamSpecification.StreamViewType ?? DEFAULT_STREAM_VIEW,
    }),
    ...(enabled && ttl?.AttributeName !== undefined && { ttl: ttl.AttributeName }),
    ...(tableClass !== undefined && tableClass !== STANDARD && { tableClass }),
    ...(table.DeletionProtectionEnabled && { isProtected: true }),
  };
}

/** The attributes used in keys: AttributeDefinitions must list exactly these. */
export function keyAttributes({ partition, sort, globals, locals }: TableShape): KeyAttribute[] {
  const all = [partition, sort, ...[...globals, ...locals].flatMap((index) => [index.partition, index.sort])];
  return [...new Map(all.flatMap((key) => (key ? [[key.name, key] as const] : []))).values()];
}

/** The fields of the primary key. */
export const keyNames = ({ partition, sort }: Pick<TableShape, 'partition' | 'sort'>): string[] =>
  sort ? [partition.name, sort.name] : [partition.name];

/** The name of an index that has the field in its key. */
export function indexKeyedBy({ globals, locals }: TableShape, field: string): string | undefined {
  return [...globals, ...locals].find(({ partition, sort }) => partition.name === field || sort?.name === field)?.name;
}

function sortByName<T extends { readonly name: string }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => (a.name < b.name ? -1 : 1));
}

const BILLING_MODES = [ON_DEMAND, 'PROVISIONED'];
const STREAM_VIEWS = ['KEYS_ONLY', 'NEW_IMAGE', 'OLD_IMAGE', 'NEW_AND_OLD_IMAGES'];
const PROJECTIONS = ['ALL', 'KEYS_ONLY', 'INCLUDE'];
const TABLE_CLASSES = [STANDARD, 'STANDARD_INFREQUENT_ACCESS'];
const TTL_TYPES = ['integer', 'bigint', 'timestamp'];
export const MAX_GLOBAL_INDEXES = 20;
const MAX_LOCAL_INDEXES = 5;

/** Rejects options that AWS rejects but DynamoDB Local accepts. Throws `schema_invalid`. */
export function assertTableOptions({ name: table, fields, options }: Collection): void {
  const { dynamoOptions = {} } = options;
  const invalidOption = (option: string, why: string, next: string) =>
    new SvcError('schema_invalid', `The dynamoOptions of the table "${table}" cannot be used.`, {
      why,
      next: [next],
      details: { path: ['dynamoOptions', option] },
    });
  const assertOneOf = (option: string, value: string | undefined, allowed: readonly string[]) => {
    if (value === undefined || allowed.includes(value)) return;
    throw invalidOption(option, `"${value}" is not a valid ${option}.`, `Use one of: ${allowed.join(', ')}.`);
  };
  const { billingMode, readCapacityUnits, writeCapacityUnits, streamEnabled, streamViewType, ttlAttribute } =
    dynamoOptions;
  const { globalSecondaryIndexes: globals = [], localSecondaryIndexes: locals = [] } = dynamoOptions;
  assertOneOf('billingMode', billingMode, BILLING_MODES);
  assertOneOf('streamViewType', streamViewType, STREAM_VIEWS);
  assertOneOf('tableClass', dynamoOptions.tableClass, TABLE_CLASSES);
  if (streamViewType !== undefined && !streamEnabled) {
    throw invalidOption('streamViewType', 'A streamViewType needs a stream.', 'Add streamEnabled: true.');
  }
  for (const units of [readCapacityUnits, writeCapacityUnits]) {
    if (billingMode === 'PROVISIONED' ? !Number.isInteger(units) || (units ?? 0) < 1 : units !== undefined) {
      throw invalidOption(
        'billingMode',
        'PROVISIONED, and only PROVISIONED, needs readCapacityUnits and writeCapacityUnits, whole numbers of at least 1.',
        `Give both with billingMode: 'PROVISIONED', or use billingMode: '${ON_DEMAND}'.`,
      );
    }
  }
  const taken = new Set<string>();
  for (const index of [...globals, ...locals]) {
    assertOneOf('projection', index.projection, PROJECTIONS);
    const includes = (index.nonKeyAttributes ?? []).length > 0;
    if (includes !== (index.projection === 'INCLUDE'))
      throw invalidOption(
        'projection',
        `The index "${index.name}" has the projection INCLUDE without nonKeyAttributes, or these without it.`,
        'Give both, or neither.',
      );
    if (taken.has(index.name))
      throw invalidOption('globalSecondaryIndexes', `Two indexes have the name "${index.name}".`, 'Rename one.');
    taken.add(index.name);
  }
  if (globals.length > MAX_GLOBAL_INDEXES || locals.length > MAX_LOCAL_INDEXES) {
    throw invalidOption(
      globals.length > MAX_GLOBAL_INDEXES ? 'globalSecondaryIndexes' : 'localSecondaryIndexes',
      `A table has at most ${MAX_GLOBAL_INDEXES} global and ${MAX_LOCAL_INDEXES} local indexes.`,
      'Remove the indexes that no query uses.',
    );
  }
  for (const { name, readCapacityUnits: read, writeCapacityUnits: write } of globals) {
    if (read === undefined && write === undefined) continue;
    if (billingMode === 'PROVISIONED' && [read, write].every((units) => Number.isInteger(units) && (units ?? 0) > 0))
      continue;
    throw invalidOption(
      'globalSecondaryIndexes',
      `The capacity of the index "${name}" is not two whole numbers of at least 1 with the billing mode PROVISIONED.`,
      'Give readCapacityUnits and writeCapacityUnits, or leave both out.',
    );
  }
  const hasSortKey =
    dynamoOptions.sortKey !== undefined ||
    (!dynamoOptions.partitionKey && [...fields.values()].filter((one) => one.primaryKey).length > 1);
  if (locals.length > 0 && !hasSortKey) {
    throw invalidOption(
      'localSecondaryIndexes',
      'Local indexes need a table with a sort key.',
      'Add a sortKey, or use global indexes.',
    );
  }
  if (ttlAttribute === undefined) return;
  const ttl = fields.get(ttlAttribute);
  if (!ttl)
    throw invalidOption(
      'ttlAttribute',
      `The table has no field "${ttlAttribute}".`,
      `Add the field "${ttlAttribute}".`,
    );
  if (TTL_TYPES.includes(ttl.type)) return;
  throw invalidOption(
    'ttlAttribute',
    `The time to live is a number of whole seconds since 1970; "${ttlAttribute}" is of type ${ttl.type}.`,
    `Give the field one of the types ${TTL_TYPES.join(', ')}.`,
  );
}

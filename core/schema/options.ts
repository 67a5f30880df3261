import type { Json } from '../json.ts';
import type { Shape } from '../validate-shape.ts';

/** The third argument of `db.schema.create`. An engine rejects the options of other engines. */
export interface CreateOptions {
  /** Adds `createdAt` and `updatedAt`: type timestamp, required, default now. */
  readonly timestamps?: boolean;
  readonly sqlOptions?: SqlOptions;
  readonly mongoOptions?: MongoOptions;
  readonly dynamoOptions?: DynamoOptions;
  readonly cassandraOptions?: CassandraOptions;
}

/** The options that are stored with a table. */
export type TableOptions = Omit<CreateOptions, 'timestamps'>;

export interface SqlOptions {
  /**
   * If an equal table exists, the migration is recorded without a change, and a rollback keeps the table. Throws
   * `table_differs` if the existing table is different.
   */
  readonly ifNotExists?: boolean;
  /** The table exists until the session ends. It is not part of the model. */
  readonly temporary?: boolean;
  /** PostgreSQL only: the table is not written to the write-ahead log and is truncated after a server crash. */
  readonly unlogged?: boolean;
  /**
   * MySQL and MariaDB only: the collation of the table's texts, which determines their character set; default the
   * database's.
   */
  readonly collation?: string;
  /** The comment of the table in the catalog. */
  readonly comment?: string;
  /** Options in the engine's own language, as they follow the columns: `WITH (fillfactor=80)`. */
  readonly native?: string;
}

export interface MongoOptions {
  readonly capped?: boolean;
  /** Bytes. Required for a capped collection. */
  readonly size?: number;
  readonly max?: number;
  readonly validator?: { readonly [key: string]: Json };
  readonly validationLevel?: string;
  readonly validationAction?: string;
  /** The validator says all about the fields that it names: svc adds no rules of its own for them. */
  readonly validatorDescribesFields?: boolean;
  /** The options of `create` that cannot be changed later. */
  readonly timeseries?: { readonly [key: string]: Json };
  /** Seconds after which a measurement of a time series, or a document of a clustered collection, is deleted. */
  readonly expireAfterSeconds?: number;
  readonly clusteredIndex?: { readonly [key: string]: Json };
  readonly collation?: { readonly [key: string]: Json };
  readonly changeStreamPreAndPostImages?: { readonly [key: string]: Json };
  readonly storageEngine?: { readonly [key: string]: Json };
  readonly indexOptionDefaults?: { readonly [key: string]: Json };
}

/** The options of `createIndexes`, by their names there. */
interface MongoIndexOptions {
  /** MongoDB deletes a document this many seconds after the date in the single indexed field. */
  readonly expireAfterSeconds?: number;
  /** The key as `createIndexes` has it, instead of the columns: `{ "place": "2dsphere" }`. svc then adds no filter of its own. */
  readonly key?: { readonly [path: string]: Json };
  readonly sparse?: boolean;
  readonly hidden?: boolean;
  readonly partialFilterExpression?: { readonly [key: string]: Json };
  readonly collation?: { readonly [key: string]: Json };
  readonly weights?: { readonly [path: string]: Json };
  readonly default_language?: string;
  readonly language_override?: string;
  readonly textIndexVersion?: number;
  readonly '2dsphereIndexVersion'?: number;
  readonly bits?: number;
  readonly min?: number;
  readonly max?: number;
  readonly wildcardProjection?: { readonly [path: string]: Json };
  readonly storageEngine?: { readonly [key: string]: Json };
}

export interface DynamoKey {
  readonly name: string;
  readonly type: 'S' | 'N' | 'B';
}

export interface DynamoOptions {
  readonly partitionKey?: DynamoKey;
  readonly sortKey?: DynamoKey;
  readonly billingMode?: string;
  /** For the table and each global index. Both are required with billingMode PROVISIONED. */
  readonly readCapacityUnits?: number;
  readonly writeCapacityUnits?: number;
  readonly globalSecondaryIndexes?: readonly {
    readonly name: string;
    readonly partitionKey: DynamoKey;
    readonly sortKey?: DynamoKey;
    readonly projection?: string;
    /** With the projection INCLUDE. */
    readonly nonKeyAttributes?: readonly string[];
    /** Of a provisioned table: those of the table without it. */
    readonly readCapacityUnits?: number;
    readonly writeCapacityUnits?: number;
  }[];
  readonly localSecondaryIndexes?: readonly {
    readonly name: string;
    readonly sortKey: DynamoKey;
    readonly projection?: string;
    readonly nonKeyAttributes?: readonly string[];
  }[];
  readonly streamEnabled?: boolean;
  readonly streamViewType?: string;
  readonly ttlAttribute?: string;
  readonly tableClass?: string;
  /** DynamoDB then refuses to delete the table. */
  readonly deletionProtectionEnabled?: boolean;
}

/** Engine-specific options of an index. */
export interface IndexOptions {
  /**
   * SQL: the definition in the engine's own language, as it follows the name of the table: `(lower(email)) WHERE gone IS NULL`,
   * `USING gin (data)`. `columns` are then the fields that it reads.
   */
  readonly native?: string;
  /** `sai` is a storage-attached index, available since Cassandra 5.0. */
  readonly cassandraOptions?: { readonly using?: 'sai' };
  readonly mongoOptions?: MongoIndexOptions;
}

export interface CassandraOptions {
  readonly partitionKey?: readonly string[];
  readonly clusteringColumns?: readonly string[];
  readonly clusteringOrder?: readonly { readonly column: string; readonly order: 'ASC' | 'DESC' }[];
  /** Seconds. */
  readonly defaultTTL?: number;
  readonly compaction?: { readonly class: string; readonly [key: string]: Json };
  /** Other properties of the table by their names in CQL: `gc_grace_seconds`, `comment`, `compression`. */
  readonly properties?: { readonly [name: string]: Json };
}

export const DYNAMO_KEY: Shape = {
  properties: { name: 'string', type: { oneOf: ['S', 'N', 'B'] } },
  required: ['name', 'type'],
};
const NAMES: Shape = { list: 'string' };

const ENGINE_OPTIONS: Readonly<Record<Exclude<keyof CreateOptions, 'timestamps'>, Shape>> = {
  sqlOptions: {
    properties: {
      ifNotExists: 'boolean',
      temporary: 'boolean',
      unlogged: 'boolean',
      collation: 'string',
      comment: 'string',
      native: 'string',
    },
  },
  mongoOptions: {
    properties: {
      capped: 'boolean',
      size: 'number',
      max: 'number',
      validator: { map: 'json' },
      validationLevel: 'string',
      validationAction: 'string',
      validatorDescribesFields: 'boolean',
      timeseries: { map: 'json' },
      expireAfterSeconds: 'number',
      clusteredIndex: { map: 'json' },
      collation: { map: 'json' },
      changeStreamPreAndPostImages: { map: 'json' },
      storageEngine: { map: 'json' },
      indexOptionDefaults: { map: 'json' },
    },
  },
  dynamoOptions: {
    properties: {
      partitionKey: DYNAMO_KEY,
      sortKey: DYNAMO_KEY,
      billingMode: 'string',
      readCapacityUnits: 'number',
      writeCapacityUnits: 'number',
      globalSecondaryIndexes: {
        list: {
          properties: {
            name: 'string',
            partitionKey: DYNAMO_KEY,
            sortKey: DYNAMO_KEY,
            projection: 'string',
            nonKeyAttributes: NAMES,
            readCapacityUnits: 'number',
            writeCapacityUnits: 'number',
          },
          required: ['name', 'partitionKey'],
        },
      },
      localSecondaryIndexes: {
        list: {
          properties: { name: 'string', sortKey: DYNAMO_KEY, projection: 'string', nonKeyAttributes: NAMES },
          required: ['name', 'sortKey'],
        },
      },
      streamEnabled: 'boolean',
      streamViewType: 'string',
      ttlAttribute: 'string',
      tableClass: 'string',
      deletionProtectionEnabled: 'boolean',
    },
  },
  cassandraOptions: {
    properties: {
      partitionKey: NAMES,
      clusteringColumns: NAMES,
      clusteringOrder: {
        list: { properties: { column: 'string', order: { oneOf: ['ASC', 'DESC'] } }, required: ['column', 'order'] },
      },
      defaultTTL: 'number',
      compaction: { map: 'json' },
      properties: { map: 'json' },
    },
  },
};

const MONGO_INDEX_OPTIONS: Readonly<Record<keyof MongoIndexOptions, Shape>> = {
  expireAfterSeconds: 'number',
  key: { map: 'json' },
  sparse: 'boolean',
  hidden: 'boolean',
  partialFilterExpression: { map: 'json' },
  collation: { map: 'json' },
  weights: { map: 'json' },
  default_language: 'string',
  language_override: 'string',
  textIndexVersion: 'number',
  '2dsphereIndexVersion': 'number',
  bits: 'number',
  min: 'number',
  max: 'number',
  wildcardProjection: { map: 'json' },
  storageEngine: { map: 'json' },
};

export const INDEX_OPTIONS_PROPERTIES: Readonly<Record<keyof IndexOptions, Shape>> = {
  native: 'string',
  cassandraOptions: { properties: { using: { oneOf: ['sai'] } } },
  mongoOptions: { properties: MONGO_INDEX_OPTIONS },
};

export const OPTIONS_PROPERTIES: Readonly<Record<keyof CreateOptions, Shape>> = {
  timestamps: 'boolean',
  ...ENGINE_OPTIONS,
};

export const OPTIONS_SHAPE: Shape = { properties: OPTIONS_PROPERTIES };

/** Fields named in table options: keys in DynamoDB and Cassandra, and the partition key of PostgreSQL. */
export function fieldsNamedInOptions(options: TableOptions): ReadonlySet<string> {
  const found = new Set<string>();
  renameFieldsInOptions(options, (name) => {
    found.add(name);
    return name;
  });
  return found;
}

/** Options with every field name in them replaced by `rename(name)`. */
export function renameFieldsInOptions(options: TableOptions, rename: (name: string) => string): TableOptions {
  const { dynamoOptions: dynamo, cassandraOptions: cassandra, sqlOptions: sql } = options;
  const isPartitioned = PARTITION_BY.test(sql?.native ?? '');
  if (!dynamo && !cassandra && !isPartitioned) return options;
  const key = (of: DynamoKey): DynamoKey => ({ ...of, name: rename(of.name) });
  return {
    ...options,
    ...(sql?.native !== undefined &&
      isPartitioned && { sqlOptions: { ...sql, native: renameInPartitionKey(sql.native, rename) } }),
    ...(dynamo && {
      dynamoOptions: {
        ...dynamo,
        ...(dynamo.partitionKey && { partitionKey: key(dynamo.partitionKey) }),
        ...(dynamo.sortKey && { sortKey: key(dynamo.sortKey) }),
        ...(dynamo.ttlAttribute !== undefined && { ttlAttribute: rename(dynamo.ttlAttribute) }),
        ...(dynamo.globalSecondaryIndexes && {
          globalSecondaryIndexes: dynamo.globalSecondaryIndexes.map((index) => ({
            ...index,
            partitionKey: key(index.partitionKey),
            ...(index.sortKey && { sortKey: key(index.sortKey) }),
          })),
        }),
        ...(dynamo.localSecondaryIndexes && {
          localSecondaryIndexes: dynamo.localSecondaryIndexes.map((index) => ({
            ...index,
            sortKey: key(index.sortKey),
          })),
        }),
      },
    }),
    ...(cassandra && {
      cassandraOptions: {
        ...cassandra,
        ...(cassandra.partitionKey && { partitionKey: cassandra.partitionKey.map(rename) }),
        ...(cassandra.clusteringColumns && { clusteringColumns: cassandra.clusteringColumns.map(rename) }),
        ...(cassandra.clusteringOrder && {
          clusteringOrder: cassandra.clusteringOrder.map((order) => ({ ...order, column: rename(order.column) })),
        }),
      },
    }),
  };
}

const PARTITION_BY = /^(\s*PARTITION\s+BY\s+\w+)(.*)$/is;

function renameInPartitionKey(native: string, rename: (name: string) => string): string {
  const [, head = '', key = ''] = PARTITION_BY.exec(native) ?? [];
  const renamed = key.replace(/'(?:[^']|'')*'|"((?:[^"]|"")*)"|[\p{L}_][\p{L}\p{N}_$]*/gu, (token, quoted?: string) => {
    if (token.startsWith("'")) return token;
    const name = quoted === undefined ? token.toLowerCase() : quoted.replaceAll('""', '"');
    const next = rename(name);
    if (next === name) return token;
    return /^[a-z_][a-z0-9_]*$/.test(next) ? next : `"${next.replaceAll('"', '""')}"`;
  });
  return head + renamed;
}

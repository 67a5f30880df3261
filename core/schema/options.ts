import type { Json } from '../json.ts';

/** Third argument of `db.schema.create`; an engine refuses the options of another one. */
export interface CreateOptions {
  /** Adds `createdAt` and `updatedAt`: type timestamp, required, default now. */
  readonly timestamps?: boolean;
  readonly sqlOptions?: SqlOptions;
  readonly mongoOptions?: MongoOptions;
  readonly dynamoOptions?: DynamoOptions;
  readonly cassandraOptions?: CassandraOptions;
}

export interface SqlOptions {
  /**
   * Records the migration without a change when an equal table exists, which stays when the migration is rolled back;
   * `table_differs` when it is not equal.
   */
  readonly ifNotExists?: boolean;
  /** The table lives as long as the session; recorded, and left out of the model. */
  readonly temporary?: boolean;
  /** PostgreSQL only: not written to the log, emptied after a crash of the server. */
  readonly unlogged?: boolean;
}

export interface MongoOptions {
  readonly capped?: boolean;
  /** Bytes; a capped collection needs it. */
  readonly size?: number;
  readonly max?: number;
  readonly validator?: { readonly [key: string]: Json };
  readonly validationLevel?: string;
  readonly validationAction?: string;
}

export interface DynamoKey {
  readonly name: string;
  readonly type: 'S' | 'N' | 'B';
}

export interface DynamoOptions {
  readonly partitionKey?: DynamoKey;
  readonly sortKey?: DynamoKey;
  readonly billingMode?: string;
  /** Of the table and of each global index; with billingMode PROVISIONED both are needed. */
  readonly readCapacityUnits?: number;
  readonly writeCapacityUnits?: number;
  readonly globalSecondaryIndexes?: readonly {
    readonly name: string;
    readonly partitionKey: DynamoKey;
    readonly sortKey?: DynamoKey;
    readonly projection?: string;
  }[];
  readonly localSecondaryIndexes?: readonly {
    readonly name: string;
    readonly sortKey: DynamoKey;
    readonly projection?: string;
  }[];
  readonly streamEnabled?: boolean;
  readonly streamViewType?: string;
  readonly ttlAttribute?: string;
}

/** What an engine has to know of an index beside its columns. */
export interface IndexOptions {
  /** `sai`: a storage-attached index, from Cassandra 5.0 on. */
  readonly cassandraOptions?: { readonly using?: 'sai' };
  /** Documents go away so many seconds after the date in the one field of the index. */
  readonly mongoOptions?: { readonly expireAfterSeconds?: number };
}

export interface CassandraOptions {
  readonly partitionKey?: readonly string[];
  readonly clusteringColumns?: readonly string[];
  readonly clusteringOrder?: readonly { readonly column: string; readonly order: 'ASC' | 'DESC' }[];
  /** Seconds. */
  readonly defaultTTL?: number;
  readonly compaction?: { readonly class: string; readonly [key: string]: Json };
}

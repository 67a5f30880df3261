import type { CreateOptions, IndexOptions } from './options.ts';
import type { Shape } from './shape.ts';

const KEY: Shape = { properties: { name: 'string', type: { oneOf: ['S', 'N', 'B'] } }, required: ['name', 'type'] };
const NAMES: Shape = { list: 'string' };

const ENGINE_OPTIONS: Readonly<Record<Exclude<keyof CreateOptions, 'timestamps'>, Shape>> = {
  sqlOptions: { properties: { ifNotExists: 'boolean', temporary: 'boolean', unlogged: 'boolean' } },
  mongoOptions: {
    properties: {
      capped: 'boolean',
      size: 'number',
      max: 'number',
      validator: { map: 'json' },
      validationLevel: 'string',
      validationAction: 'string',
    },
  },
  dynamoOptions: {
    properties: {
      partitionKey: KEY,
      sortKey: KEY,
      billingMode: 'string',
      readCapacityUnits: 'number',
      writeCapacityUnits: 'number',
      globalSecondaryIndexes: {
        list: {
          properties: { name: 'string', partitionKey: KEY, sortKey: KEY, projection: 'string' },
          required: ['name', 'partitionKey'],
        },
      },
      localSecondaryIndexes: {
        list: { properties: { name: 'string', sortKey: KEY, projection: 'string' }, required: ['name', 'sortKey'] },
      },
      streamEnabled: 'boolean',
      streamViewType: 'string',
      ttlAttribute: 'string',
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
    },
  },
};

/** Beside the columns of an index. */
export const INDEX_OPTIONS_PROPERTIES: Readonly<Record<keyof IndexOptions, Shape>> = {
  cassandraOptions: { properties: { using: { oneOf: ['sai'] } } },
  mongoOptions: { properties: { expireAfterSeconds: 'number' } },
};

export const OPTIONS_PROPERTIES: Readonly<Record<keyof CreateOptions, Shape>> = {
  timestamps: 'boolean',
  ...ENGINE_OPTIONS,
};

/** SPEC 2.10. */
export const OPTIONS_SHAPE: Shape = { properties: OPTIONS_PROPERTIES };

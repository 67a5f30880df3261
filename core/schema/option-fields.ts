import type { TableOptions } from './model.ts';
import type { DynamoKey } from './options.ts';

/** Fields that the options of a table name: keys of DynamoDB and Cassandra. */
export function optionFields(options: TableOptions): ReadonlySet<string> {
  const found = new Set<string>();
  renamedOptions(options, (name) => {
    found.add(name);
    return name;
  });
  return found;
}

/** The options with each field they name under the name that `rename` gives it. */
export function renamedOptions(options: TableOptions, rename: (name: string) => string): TableOptions {
  if (!options.dynamoOptions && !options.cassandraOptions) return options;
  const { dynamoOptions: dynamo, cassandraOptions: cassandra } = options;
  const key = (of: DynamoKey): DynamoKey => ({ ...of, name: rename(of.name) });
  return {
    ...options,
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

import { SvcError } from '../../../../core/errors.ts';
import type { Collection } from '../../../../core/schema/model.ts';

export interface TableKey {
  readonly partition: readonly string[];
  readonly clustering: readonly { readonly name: string; readonly order: 'ASC' | 'DESC' }[];
}

export const keyColumns = ({ partition, clustering }: TableKey): string[] => [
  ...partition,
  ...clustering.map(({ name }) => name),
];

/**
 * The key from the options and from the fields with `primaryKey`. Without options the first such field is the partition
 * key and the others are clustering columns, as in PRIMARY KEY (a, b). Throws `schema_invalid`.
 */
export function tableKey({ name, fields, options }: Pick<Collection, 'name' | 'fields' | 'options'>): TableKey {
  const { partitionKey, clusteringColumns, clusteringOrder = [] } = options.cassandraOptions ?? {};
  const flagged = [...fields.values()].filter((field) => field.primaryKey).map((field) => field.name);
  const rest = flagged.filter((field) => !clusteringColumns?.includes(field));
  const partition = partitionKey ?? (clusteringColumns ? rest : rest.slice(0, 1));
  const clustering = clusteringColumns ?? (partitionKey ? [] : rest.slice(1));
  const key = [...partition, ...clustering];
  if (partition.length === 0) {
    throw invalidKey(name, 'It has no partition key, which every Cassandra table needs.', [
      'Mark a field with primaryKey: true, or name it in cassandraOptions.partitionKey.',
    ]);
  }
  const unknown = key.find((column) => !fields.has(column));
  if (unknown !== undefined) throw invalidKey(name, `Its key names "${unknown}", which is not a field of the table.`);
  const twice = key.find((column, index) => key.indexOf(column) !== index);
  if (twice !== undefined) throw invalidKey(name, `Its key names "${twice}" twice.`);
  const outside = flagged.find((field) => !key.includes(field));
  if (outside !== undefined) {
    throw invalidKey(name, `The field "${outside}" has primaryKey but is not in the key of cassandraOptions.`, [
      `Add "${outside}" to partitionKey or clusteringColumns, or remove primaryKey from it.`,
    ]);
  }
  const unordered = clusteringOrder.find(({ column }) => !clustering.includes(column));
  if (unordered)
    throw invalidKey(name, `clusteringOrder names "${unordered.column}", which is not a clustering column.`);
  const array = key.find((column) => fields.get(column)?.type === 'array');
  if (array !== undefined) throw invalidKey(name, `"${array}" is an array, which cannot be in a key.`);
  // CLUSTERING ORDER BY must list the columns in key order, without gaps.
  const order = new Map(clusteringOrder.map(({ column, order: direction }) => [column, direction]));
  return { partition, clustering: clustering.map((column) => ({ name: column, order: order.get(column) ?? 'ASC' })) };
}

function invalidKey(table: string, why: string, next: readonly string[] = ['Correct cassandraOptions.']): SvcError {
  return new SvcError('schema_invalid', `The key of the table "${table}" is not valid on Cassandra.`, {
    why,
    next,
    details: { path: ['options', 'cassandraOptions'] },
  });
}

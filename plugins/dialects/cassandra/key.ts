import { SvcError } from '../../../core/errors.ts';
import type { Collection } from '../../../core/schema/model.ts';

export interface Key {
  readonly partition: readonly string[];
  readonly clustering: readonly { readonly name: string; readonly order: 'ASC' | 'DESC' }[];
}

export const keyColumns = ({ partition, clustering }: Key): string[] => [
  ...partition,
  ...clustering.map(({ name }) => name),
];

/**
 * What the options and the flags of the fields make the key. Without options the first field of the primary key is
 * the partition and the others order its rows, as CQL reads PRIMARY KEY (a, b). Throws `schema_invalid`.
 */
export function keyOf({ name, fields, options }: Pick<Collection, 'name' | 'fields' | 'options'>): Key {
  const { partitionKey, clusteringColumns, clusteringOrder = [] } = options.cassandraOptions ?? {};
  const flagged = [...fields.values()].filter((field) => field.primaryKey).map((field) => field.name);
  const rest = flagged.filter((field) => !clusteringColumns?.includes(field));
  const partition = partitionKey ?? (clusteringColumns ? rest : rest.slice(0, 1));
  const clustering = clusteringColumns ?? (partitionKey ? [] : rest.slice(1));
  const key = [...partition, ...clustering];
  if (partition.length === 0) {
    throw refused(name, 'No field of it is the partition key, and Cassandra has no table without one.', [
      'Give a field primaryKey: true, or name it in cassandraOptions.partitionKey.',
    ]);
  }
  const unknown = key.find((column) => !fields.has(column));
  if (unknown !== undefined) throw refused(name, `Its key names "${unknown}", which is no field of the table.`);
  const twice = key.find((column, index) => key.indexOf(column) !== index);
  if (twice !== undefined) throw refused(name, `Its key names "${twice}" twice.`);
  const outside = flagged.find((field) => !key.includes(field));
  if (outside !== undefined) {
    throw refused(name, `"${outside}" is a primary key, and cassandraOptions do not have it in the key.`, [
      `Add "${outside}" to partitionKey or clusteringColumns, or take its primaryKey away.`,
    ]);
  }
  const stray = clusteringOrder.find(({ column }) => !clustering.includes(column));
  if (stray) throw refused(name, `clusteringOrder names "${stray.column}", which is no clustering column.`);
  const array = key.find((column) => fields.get(column)?.type === 'array');
  if (array !== undefined) throw refused(name, `"${array}" is an array, which cannot be in a key.`);
  // The server wants the order of every column up to the last one named, in the order of the key.
  const order = new Map(clusteringOrder.map(({ column, order: direction }) => [column, direction]));
  return { partition, clustering: clustering.map((column) => ({ name: column, order: order.get(column) ?? 'ASC' })) };
}

function refused(table: string, why: string, next: readonly string[] = ['Correct cassandraOptions.']): SvcError {
  return new SvcError('schema_invalid', `The key of the table "${table}" cannot be made on Cassandra.`, {
    why,
    next,
    details: { path: ['options', 'cassandraOptions'] },
  });
}

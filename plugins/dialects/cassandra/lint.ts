import { forExistingTables } from '../../../core/lint/existing-tables.ts';
import type { LintRule } from '../../../core/lint/rule.ts';
import type { FieldType } from '../../../core/schema/model.ts';

/** Almost every row has a value of its own. */
const MANY_VALUES: ReadonlySet<FieldType> = new Set([
  'uuid',
  'timestamp',
  'datetime',
  'time',
  'double',
  'float',
  'decimal',
]);

const rules: readonly LintRule[] = [
  {
    id: 'SVC621',
    name: 'column-copied',
    level: 'warning',
    summary: 'A column is renamed by copying it.',
    impact: 'Every row is read and written, and the old values remain on disk until compaction.',
    fix: 'Add the new column, write both from the application, and drop the old one later.',
    scalesWithRows: true,
    check: (step) =>
      forExistingTables(step, 'renameField', ({ collection, from, strategy }) =>
        strategy === 'copy'
          ? { table: collection, message: `Every row of "${collection}" is written for "${from}".` }
          : undefined,
      ),
  },
  {
    id: 'SVC622',
    name: 'index-of-many-values',
    level: 'warning',
    summary: 'A secondary index is on a field where almost every row has a value of its own.',
    impact: 'Each query asks every node, for one row.',
    fix: 'Create a table whose partition key is that field; or a storage-attached index, with "using": "sai".',
    check: ({ operation, after }) => {
      if (
        operation.type !== 'createIndex' ||
        operation.cassandraOptions?.using === 'sai' ||
        operation.native !== undefined
      )
        return [];
      const [column] = operation.columns;
      const field = column && after.get(operation.collection)?.fields.get(column.name);
      return field && (field.unique || MANY_VALUES.has(field.type))
        ? [{ table: operation.collection, message: `"${operation.index}" is on the ${field.type} "${field.name}".` }]
        : [];
    },
  },
  {
    id: 'SVC623',
    name: 'dropped-column-comes-back',
    level: 'note',
    summary: 'A column is dropped.',
    impact: 'Its values stay on disk until compaction, and a column of the same name cannot have another type later.',
    fix: 'Give a later column another name.',
    check: (step) =>
      forExistingTables(step, 'dropField', ({ collection, field }) => ({
        table: collection,
        message: `"${collection}.${field}" is dropped.`,
      })),
  },
  {
    id: 'SVC624',
    name: 'large-partition',
    level: 'warning',
    summary: 'Rows are spread by a field that has few values.',
    impact:
      'A partition is on as many nodes as there are replicas: a few partitions use few nodes, and grow without limit.',
    fix: 'Use a partition key with many values, such as an id, or an id and a day.',
    check: ({ operation, after }) => {
      if (operation.type !== 'createCollection') return [];
      const table = after.get(operation.name);
      const key =
        operation.options?.cassandraOptions?.partitionKey ??
        [...(table?.fields.values() ?? [])].flatMap(({ name, primaryKey }) => (primaryKey ? [name] : [])).slice(0, 1);
      const types = key.map((name) => table?.fields.get(name)?.type);
      return types.length > 0 && types.every((type) => type === 'boolean' || type === 'enum')
        ? [
            {
              table: operation.name,
              message: `The partition key "${key.join(', ')}" of "${operation.name}" has few values.`,
            },
          ]
        : [];
    },
  },
];

export default rules;

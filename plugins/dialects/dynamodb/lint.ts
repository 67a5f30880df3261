import { changedField, forExistingTables } from '../../../core/lint/existing-tables.ts';
import type { LintRule } from '../../../core/lint/rule.ts';
import type { Collection } from '../../../core/schema/model.ts';

const rules: readonly LintRule[] = [
  {
    id: 'SVC611',
    name: 'items-rewritten',
    level: 'warning',
    summary: 'A field is renamed, dropped, or gets another type.',
    impact: 'Every item is read and written, which uses, and costs, capacity. It resumes after an interruption.',
    fix: 'Run it at a quiet time; or write the new field from the application, and drop the old one later.',
    scalesWithRows: true,
    check: (step) => [
      ...forExistingTables(step, 'renameField', ({ collection, from }) => ({
        table: collection,
        message: `Every item of "${collection}" is written for "${from}".`,
      })),
      ...forExistingTables(step, 'dropField', ({ collection, field }) => ({
        table: collection,
        message: `Every item of "${collection}" is written for "${field}".`,
      })),
      ...forExistingTables(step, 'modifyField', ({ collection, field, changes }) => {
        const { from, to } = changedField(step, collection, field, changes) ?? {};
        return from && to && from.type !== to.type
          ? { table: collection, message: `Every item of "${collection}" is written for the type of "${field}".` }
          : undefined;
      }),
    ],
  },
  {
    id: 'SVC612',
    name: 'index-filled',
    level: 'warning',
    summary: 'A global index is added to a table that exists.',
    impact:
      'DynamoDB fills it from all items, which may take hours; with provisioned capacity, writes to the table are throttled if the index cannot keep up.',
    fix: 'Give the index enough write capacity while it is filled, or add it at a quiet time.',
    scalesWithRows: true,
    check: (step) =>
      forExistingTables(step, 'createIndex', ({ collection, index }) => ({
        table: collection,
        message: `The index "${index}" is filled from the items of "${collection}".`,
      })),
  },
  {
    id: 'SVC613',
    name: 'sparse-index',
    level: 'note',
    summary: 'The key of an index is a field that items may lack.',
    impact: 'An item without a value is not in the index, so a query of it does not find the item.',
    fix: 'Require the field, unless that is what the index is for.',
    check: ({ operation, after }) =>
      operation.type === 'createIndex'
        ? operation.columns.flatMap(({ name }) => {
            const field = after.get(operation.collection)?.fields.get(name);
            return field && !field.required
              ? [{ table: operation.collection, message: `"${name}", a key of "${operation.index}", is not required.` }]
              : [];
          })
        : [],
  },
  {
    id: 'SVC614',
    name: 'hot-partition',
    level: 'warning',
    summary: 'Items are spread by a field that has few values.',
    impact:
      'A partition takes 3,000 reads and 1,000 writes a second; more are throttled, whatever the capacity of the table.',
    fix: 'Use a partition key with many values, such as an id.',
    check: ({ operation, after }) => {
      if (operation.type === 'createIndex') {
        const [first] = operation.columns;
        return fewValues(after.get(operation.collection), first && [first.name]);
      }
      if (operation.type !== 'createCollection') return [];
      const { partitionKey } = operation.options?.dynamoOptions ?? {};
      return fewValues(after.get(operation.name), partitionKey && [partitionKey.name]);
    },
  },
];

/** Whether a key consists of fields with few values: a boolean, an enum. */
function fewValues(
  table: Collection | undefined,
  names: readonly string[] | undefined,
): readonly { readonly table: string; readonly message: string }[] {
  const key =
    names ??
    [...(table?.fields.values() ?? [])].flatMap(({ name, primaryKey }) => (primaryKey ? [name] : [])).slice(0, 1);
  const fields = key.map((name) => table?.fields.get(name));
  const areFew = fields.length > 0 && fields.every((field) => field?.type === 'boolean' || field?.type === 'enum');
  return table && areFew ? [{ table: table.name, message: `"${key.join(', ')}" has few values.` }] : [];
}

export default rules;

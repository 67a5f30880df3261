import { isObjectOperation } from '../schema/database-object.ts';
import type { Collection, Field, Index } from '../schema/model.ts';
import type { LintMatch, LintRule, LintStep } from './rule.ts';

/** What makes a schema slow or wrong later, on any engine. */

const MONEY = /(?:^|_)(?:amount|balance|price|cost|fee|salary|subtotal|total|discount|tax|vat|refund)(?:$|_)/;

/** The words of a name: `unitPrice` is `unit_price`. */
const words = (name: string): string => name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase();

export const designRules: readonly LintRule[] = [
  {
    id: 'SVC401',
    name: 'small-key',
    level: 'note',
    summary: 'A generated key is an integer of 32 bits or less.',
    impact: 'Inserts fail after 2,147,483,647 rows (a smallint: 32,767), also if most of them were deleted.',
    fix: 'Use bigint or uuid for a table that may grow: the change is expensive later.',
    check: (step) =>
      definedFields(step).flatMap(({ table, field }) =>
        field.primaryKey && field.autoGenerate && (field.type === 'integer' || field.type === 'smallint')
          ? [{ table: table.name, message: `The key "${table.name}.${field.name}" is a generated ${field.type}.` }]
          : [],
      ),
  },
  {
    id: 'SVC403',
    name: 'redundant-index',
    level: 'warning',
    summary: 'An index is the beginning of another one, or equal to it.',
    impact: 'Every write maintains both, and queries need only one.',
    fix: 'Leave out the shorter one.',
    check: ({ operation, after }) => {
      if (operation.type !== 'createIndex' || !isPlainIndex(operation) || operation.unique) return [];
      const table = after.get(operation.collection);
      const columns = operation.columns.map(columnKey);
      const [only, ...more] = operation.columns;
      const isUnique = only !== undefined && more.length === 0 && table?.fields.get(only.name)?.unique;
      if (isUnique) {
        const message = `"${only.name}" of "${operation.collection}" is unique, which is an index already.`;
        return [{ table: operation.collection, message }];
      }
      const other = [...(table?.indexes.values() ?? [])].find(
        (index) =>
          index.name !== operation.index &&
          isPlainIndex(index) &&
          columns.every((column, at) => index.columns[at] !== undefined && columnKey(index.columns[at]) === column),
      );
      return other
        ? [{ table: operation.collection, message: `"${operation.index}" is contained in "${other.name}".` }]
        : [];
    },
  },
  {
    id: 'SVC409',
    name: 'inexact-money',
    level: 'warning',
    summary: 'A field with the name of an amount of money has a type that rounds.',
    impact: '0.1 + 0.2 is not 0.3: sums and comparisons are wrong by cents.',
    fix: 'Use decimal with precision and scale, or a bigint of the smallest unit.',
    check: (step) =>
      definedFields(step).flatMap(({ table, field }) =>
        (field.type === 'float' || field.type === 'double') && MONEY.test(words(field.name))
          ? [{ table: table.name, message: `"${table.name}.${field.name}" is a ${field.type}.` }]
          : [],
      ),
  },
  {
    id: 'SVC411',
    name: 'key-types-differ',
    level: 'warning',
    summary: 'A foreign key has another type than the key it references.',
    impact: 'Joins convert every value, and a smaller type fails once the referenced key outgrows it.',
    fix: 'Give both fields the same type.',
    check: ({ operation, after }) => {
      if (operation.type !== 'addConstraint' || operation.constraint.type !== 'foreignKey') return [];
      const { collection, constraint } = operation;
      return constraint.columns.flatMap((name, at): readonly LintMatch[] => {
        const from = after.get(collection)?.fields.get(name);
        const to = after.get(constraint.references.table)?.fields.get(constraint.references.columns[at] ?? '');
        if (!from || !to || kindOf(from) === kindOf(to)) return [];
        const target = `${constraint.references.table}.${to.name}`;
        return [
          {
            table: collection,
            message: `"${collection}.${name}" is ${kindOf(from)}, and "${target}" is ${kindOf(to)}.`,
          },
        ];
      });
    },
  },
  {
    id: 'SVC509',
    name: 'irreversible',
    level: 'warning',
    summary: 'A migration cannot be rolled back.',
    impact: 'If the new code has to be withdrawn, the schema stays.',
    fix: 'Write its "down", or make sure that the code of before runs with the schema of after.',
    check: ({ migration, dialect, earlier }) => {
      const { irreversible, irreversibleOn } = migration;
      const applies = irreversible !== undefined && (irreversibleOn === undefined || irreversibleOn.includes(dialect));
      return applies && earlier.length === 0 ? [{ message: `It cannot be rolled back: ${irreversible}` }] : [];
    },
  },
];

/** Another index does not replace one with a filter, of another kind, or that deletes expired documents. */
const isPlainIndex = ({ native, mongoOptions }: Pick<Index, 'native' | 'mongoOptions'>): boolean =>
  native === undefined && mongoOptions === undefined;

const columnKey = ({ name, order }: { readonly name: string; readonly order?: string }): string =>
  `${name} ${order?.toLowerCase() === 'desc' ? 'desc' : 'asc'}`;

/** Two strings of different length compare as they are. A serial, an identity and a collation leave the type as it is. */
function kindOf({ type, native }: Field): string {
  const own = native?.replace(/\s+(?:generated|auto_increment|collate)\b.*$/is, '');
  if (own !== undefined && !/^(?:small|big)?serial\d?$/i.test(own)) return own;
  return type === 'string' || type === 'text' || type === 'enum' ? 'text' : type;
}

/** The fields that an operation defines, as they are after it. */
export function definedFields({
  operation,
  after,
}: LintStep): readonly { readonly table: Collection; readonly field: Field }[] {
  if (isObjectOperation(operation)) return [];
  const name =
    operation.type === 'createCollection' ? operation.name : 'collection' in operation ? operation.collection : '';
  const table = after.get(name);
  if (!table) return [];
  if (operation.type === 'createCollection') return [...table.fields.values()].map((field) => ({ table, field }));
  const field =
    operation.type === 'addField'
      ? table.fields.get(operation.field.name)
      : operation.type === 'modifyField' && (operation.changes.type !== undefined || operation.changes.native != null)
        ? table.fields.get(operation.field)
        : undefined;
  return field ? [{ table, field }] : [];
}

import { defineConstraint } from '../../../core/schema/define.ts';
import { changedField } from '../../../core/schema/field-changes.ts';
import type { Collection, Constraint, Field, SchemaModel } from '../../../core/schema/model.ts';
import type { Operation } from '../../../core/schema/operation.ts';
import { keyAfter } from '../../sql/compile.ts';
import { primaryKeyFields } from '../../sql/names.ts';
import { quote } from './quote.ts';
import type { Traits } from './traits.ts';
import { columnType, isNumbered, STRING_LENGTH } from './types.ts';
import { unfit } from './unfit.ts';

/** Rows for which the server refuses a change. */
export interface Violating {
  /** A condition that such a row meets. */
  readonly rows: string;
  readonly why: string;
  /** The columns that it reads, by their table. */
  readonly reads: Readonly<Record<string, readonly string[]>>;
  readonly joins?: Joins;
}

/** Columns of a table, with their types where svc makes them, and those of another table that they point at. */
export interface Joins {
  readonly columns: readonly string[];
  readonly types: readonly string[];
  readonly parent: string;
  readonly target: readonly string[];
}

/** Rows in the way of an operation: one step alone tells of them itself, behind another one that is too late. */
export function violating(traits: Traits, operation: Operation, before: SchemaModel): Violating[] {
  if (!('collection' in operation)) return [];
  const collection = before.get(operation.collection);
  if (!collection) return [];
  const table = collection.name;
  switch (operation.type) {
    case 'createIndex':
      return operation.unique
        ? twice(
            table,
            operation.columns.map(({ name }) => name),
          )
        : [];
    case 'addConstraint':
      return against(collection, defineConstraint(operation.constraint, table, collection.fields.keys()));
    case 'modifyField': {
      const from = collection.fields.get(operation.field);
      if (!from) return [];
      const to = changedField(from, operation.changes, table);
      const keyed = to.primaryKey && !from.primaryKey;
      return [
        ...(to.required && !from.required && !isNumbered(to) ? missing(table, to.name) : []),
        ...misfits(traits, table, from, to),
        // Values of another type may be equal where these are not, and the other way round.
        ...(to.unique && !from.unique && to.type === from.type ? twice(table, [to.name]) : []),
        ...(keyed && primaryKeyFields(collection).length === 0 ? twice(table, keyAfter(collection, to)) : []),
      ];
    }
    default:
      return [];
  }
}

function against({ name: table, fields }: Collection, constraint: Constraint): Violating[] {
  const { name, type, columns } = constraint;
  switch (type) {
    case 'unique':
      return twice(table, columns);
    case 'primaryKey':
      return [...columns.flatMap((column) => missing(table, column)), ...twice(table, columns)];
    case 'check':
      return [
        {
          rows: `NOT (${constraint.expression})`,
          why: `The check "${name}" does not hold.`,
          reads: { [table]: columns },
        },
      ];
    case 'foreignKey': {
      const { table: parent, columns: target } = constraint.references;
      const own = columns.map((column) => `${quote(table)}.${quote(column)}`);
      const met = target.map((column, index) => `svc_parent.${quote(column)} = ${own[index]}`);
      const exists = `EXISTS (SELECT 1 FROM ${quote(parent)} AS svc_parent WHERE ${met.join(' AND ')})`;
      return [
        {
          rows: `${own.map((column) => `${column} IS NOT NULL`).join(' AND ')} AND NOT ${exists}`,
          why: `Values of ${columns.join(', ')} point at no row of "${parent}".`,
          reads: { [parent]: target, [table]: parent === table ? [...columns, ...target] : columns },
          joins: {
            columns,
            types: columns.map((column) => columnType(fields.get(column) ?? { type: 'text' }, table)),
            parent,
            target,
          },
        },
      ];
    }
  }
}

const missing = (table: string, column: string): Violating[] => [
  { rows: `${quote(column)} IS NULL`, why: `${column} would be required.`, reads: { [table]: [column] } },
];

function misfits(traits: Traits, table: string, from: Field, to: Field): Violating[] {
  const { name, type, length = STRING_LENGTH } = to;
  const isSame = from.type === type && columnType(from, table) === columnType(to, table);
  const rows = isSame ? undefined : unfit(traits, from, to);
  if (rows === undefined) return [];
  const fits = type === 'string' ? `are longer than ${length} characters` : `do not fit ${columnType(to, table)}`;
  return [{ rows, why: `Values of ${name} ${fits}.`, reads: { [table]: [name] } }];
}

function twice(table: string, columns: readonly string[]): Violating[] {
  const list = columns.map(quote).join(', ');
  return [
    {
      rows: `(${list}) IN (SELECT ${list} FROM ${quote(table)} GROUP BY ${list} HAVING COUNT(*) > 1)`,
      why: `Values of ${columns.join(', ')} are there more than once.`,
      reads: { [table]: columns },
    },
  ];
}

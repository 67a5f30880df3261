import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type {
  CheckConstraint,
  Collection,
  Constraint,
  Field,
  Index,
  SchemaModel,
} from '../../../../core/schema/model.ts';
import { setFlags } from '../../sql/catalog-values.ts';
import { columnDefinition } from '../../sql/column.ts';
import { constraintDefinition } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { uniqueName } from '../../sql/names.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { isAutoIncrement, STRING_LENGTH } from '../compile/types.ts';
import type { Traits } from '../variant.ts';
import { type CatalogDefault, PRIMARY_KEY } from './catalog-table.ts';
import { canonicalDefault, parseDefault } from './defaults.ts';
import { columnsIn } from './introspect.ts';
import { lineOf, replaceSupplementary, textAfter, withoutOuterParentheses } from './show-create-table.ts';
import { hexSql } from './supplementary-characters.ts';

/** The part of a model that the catalog stores. Expressions stay as written. */
export function normalizeModel(model: SchemaModel): SchemaModel {
  return new Map([...model].map(([name, collection]) => [name, normalizeCollection(collection)]));
}

function normalizeCollection(collection: Collection): Collection {
  const fields = new Map([...collection.fields].map(([name, field]) => [name, normalizeField(field)]));
  const constraints = new Map<string, Constraint>();
  const indexes = new Map<string, Index>();
  for (const constraint of collection.constraints.values()) {
    switch (constraint.type) {
      case 'check':
        constraints.set(constraint.name, constraint);
        break;
      case 'foreignKey': {
        const { onDelete, onUpdate, ...references } = constraint.references;
        constraints.set(constraint.name, {
          ...constraint,
          references: {
            ...references,
            ...(onDelete && onDelete !== 'RESTRICT' && { onDelete }),
            ...(onUpdate && onUpdate !== 'RESTRICT' && { onUpdate }),
          },
        });
        break;
      }
      case 'unique': {
        const columns = constraint.columns.map((name) => ({ name }));
        indexes.set(constraint.name, { name: constraint.name, columns, unique: true });
        break;
      }
      case 'primaryKey':
        for (const name of constraint.columns) setFlags(fields, name, { required: true });
        if (isInOrder(collection, constraint.columns))
          for (const name of constraint.columns) setFlags(fields, name, { primaryKey: true });
        else constraints.set(PRIMARY_KEY, { ...constraint, name: PRIMARY_KEY });
    }
  }
  for (const index of collection.indexes.values()) indexes.set(index.name, index);
  for (const [name, index] of indexes) {
    const [only, ...more] = index.columns;
    if (isAutomaticIndex(index, constraints.get(name))) indexes.delete(name);
    if (!index.unique || more.length > 0 || !only || only.order) continue;
    if (name !== uniqueName(collection.name, only.name)) continue;
    indexes.delete(name);
    setFlags(fields, only.name, { unique: true });
  }
  const collation = collection.options.sqlOptions?.collation;
  const options = collation === undefined ? {} : { sqlOptions: { collation } };
  return { ...collection, fields, constraints, indexes, options };
}

/** The model without collations that tables have by default. */
export function withoutDefaultCollation(model: SchemaModel, collation: string): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => [
      name,
      collection.options.sqlOptions?.collation === collation ? { ...collection, options: {} } : collection,
    ]),
  );
}

function isInOrder({ fields }: Collection, columns: readonly string[]): boolean {
  const order = [...fields.keys()];
  return (
    primaryKeyFields({ fields }).length === 0 &&
    columns.every((column, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(column))
  );
}

/** Whether the index looks like the one that the server creates for a foreign key of that name. */
function isAutomaticIndex({ unique, columns }: Index, key: Constraint | undefined): boolean {
  return (
    !unique &&
    key?.type === 'foreignKey' &&
    key.columns.length === columns.length &&
    key.columns.every((name, at) => columns[at]?.name === name && !columns[at]?.order)
  );
}

function normalizeField(field: Field): Field {
  const { length, default: value, items, ...rest } = field;
  const type = field.type === 'binary' && length === undefined ? 'blob' : field.type;
  return {
    ...rest,
    type,
    ...(items !== undefined && { items: 'string' }),
    ...(type === 'string' && { length: length ?? STRING_LENGTH }),
    ...(type === 'binary' && length !== undefined && { length }),
    ...(isAutoIncrement(field) && { required: true }),
    ...(value !== undefined && { default: canonicalDefault(value, field) }),
  };
}

const PROBE = quoteIdentifier('_svc_expressions');

export interface NormalizeContext {
  readonly session: Session;
  readonly traits: Traits;
  readonly grammar: Grammar;
  /** The character set of a new table. */
  readonly tableOptions: string;
}

/**
 * Replaces expressions by the server's own spelling, read from a temporary table with the same columns. Creating it does not commit,
 * and its name hides no other table. `model` comes from `normalizeModel`.
 */
export async function normalizeExpressions(context: NormalizeContext, model: SchemaModel): Promise<SchemaModel> {
  const found = new Map(model);
  for (const collection of model.values()) {
    if (!hasExpressions(collection)) continue;
    found.set(collection.name, await context.session.exclusive((exec) => respellCollection(exec, context, collection)));
  }
  return found;
}

function hasExpressions({ fields, constraints }: Collection): boolean {
  return (
    [...fields.values()].some((field) => field.default !== undefined && isExpression(field.default)) ||
    [...constraints.values()].some((constraint) => constraint.type === 'check')
  );
}

async function respellCollection(
  exec: ExecSql,
  { traits, grammar, tableOptions }: NormalizeContext,
  collection: Collection,
): Promise<Collection> {
  const { name, fields, constraints } = collection;
  const checks = [...constraints.values()].filter((constraint) => constraint.type === 'check');
  const lines = [
    // A server may require a primary key.
    '_svc_n int PRIMARY KEY',
    ...[...fields.values()].map((field) => {
      // The server returns the default of a required field only together with a row.
      const { autoGenerate: _, required: __, ...plain } = field;
      return columnDefinition({ ...grammar, columnCheck: () => '' }, plain, name);
    }),
    ...checks.map((check) => constraintDefinition(grammar, check)),
  ];
  try {
    const replaced = replaceSupplementary(lines.join(', '));
    await exec(`CREATE TEMPORARY TABLE ${PROBE} (${replaced.text})${tableOptions}`);
    const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${PROBE}`);
    const text = replaced.restore(String(row?.['Create Table']));
    const read = new Map<string, Field>();
    for (const [key, field] of fields) read.set(key, await respellField(exec, traits, field, text));
    return {
      ...collection,
      fields: read,
      constraints: new Map(
        [...constraints].map(([key, constraint]) => [
          key,
          constraint.type === 'check' ? respellCheck(constraint, text, [...fields.keys()]) : constraint,
        ]),
      ),
    };
  } finally {
    await exec(`DROP TEMPORARY TABLE IF EXISTS ${PROBE}`);
  }
}

async function respellField(exec: ExecSql, traits: Traits, field: Field, table: string): Promise<Field> {
  if (field.default === undefined || !isExpression(field.default)) return field;
  const shown = textAfter(' DEFAULT ', lineOf(`${quoteIdentifier(field.name)} `, table));
  const parsed = shown === undefined ? undefined : traits.catalog.parseShownDefault(shown);
  if (!parsed) return field;
  const isBytes = 'literal' in parsed && (field.type === 'binary' || field.type === 'blob');
  const found = isBytes ? await readBinaryDefault(exec, field.name) : parsed;
  const { default: _, ...rest } = field;
  const value = parseDefault(found, rest);
  return value === undefined ? { ...rest, autoGenerate: true } : { ...rest, default: value };
}

/** SHOW CREATE TABLE loses bytes that are not text. */
async function readBinaryDefault(exec: ExecSql, column: string): Promise<CatalogDefault> {
  const value = hexSql(`DEFAULT(svc_no.${quoteIdentifier(column)})`);
  const [row] = await rowsOf(
    exec,
    `SELECT ${value} AS bytes FROM (SELECT 1 AS one) AS svc_one LEFT JOIN ${PROBE} AS svc_no ON FALSE`,
  );
  return { literal: String(row?.bytes) };
}

function respellCheck(check: CheckConstraint, table: string, fields: readonly string[]): CheckConstraint {
  const shown = lineOf(`CONSTRAINT ${quoteIdentifier(check.name)} CHECK `, table);
  if (shown === '') return check;
  const expression = withoutOuterParentheses(shown);
  return { ...check, expression, columns: columnsIn(expression, fields) };
}

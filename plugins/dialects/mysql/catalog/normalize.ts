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
import { hasServerSpelling, setFlags } from '../../sql/catalog-values.ts';
import { columnDefinition } from '../../sql/column.ts';
import { constraintDefinition } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { uniqueName } from '../../sql/names.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { assertCollationName, canonicalTableOptions } from '../compile/native-options.ts';
import { isAutoIncrement, readType, STRING_LENGTH } from '../compile/types.ts';
import type { Traits } from '../variant.ts';
import { type CatalogDefault, type CatalogIndex, PRIMARY_KEY } from './catalog-table.ts';
import { canonicalDefault, parseDefault } from './defaults.ts';
import { nativeType, primaryKeyOf } from './introspect.ts';
import {
  nativeKeyOf,
  PROBED_KEY,
  probedIndex,
  readIndexes,
  respellIndexes,
  withoutPlainKey,
  withoutPlainText,
} from './native-indexes.ts';
import { columnsIn, lineOf, replaceSupplementary, textAfter, withoutOuterParentheses } from './show-create-table.ts';
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
      case 'check': {
        const { native, ...check } = constraint;
        constraints.set(check.name, { ...check, ...(native !== undefined && { native: native.toUpperCase() }) });
        break;
      }
      case 'foreignKey': {
        const { native: _, ...key } = constraint;
        const { onDelete, onUpdate, ...references } = key.references;
        constraints.set(key.name, {
          ...key,
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
      case 'primaryKey': {
        const { columns } = constraint;
        const native = withoutPlainKey(constraint.native);
        for (const name of columns) setFlags(fields, name, { required: true });
        if (native === undefined && isInOrder(collection, columns))
          for (const name of columns) setFlags(fields, name, { primaryKey: true });
        else
          constraints.set(PRIMARY_KEY, {
            name: PRIMARY_KEY,
            type: 'primaryKey',
            columns,
            ...(native !== undefined && { native }),
          });
      }
    }
  }
  for (const index of collection.indexes.values()) indexes.set(index.name, withoutPlainText(index));
  for (const [name, index] of indexes) {
    const [only, ...more] = index.columns;
    if (isAutomaticIndex(index, constraints.get(name))) indexes.delete(name);
    if (!index.unique || more.length > 0 || !only || only.order) continue;
    if (name !== uniqueName(collection.name, only.name)) continue;
    indexes.delete(name);
    setFlags(fields, only.name, { unique: true });
  }
  const { ifNotExists: _, temporary: __, unlogged: ___, ...sqlOptions } = collection.options.sqlOptions ?? {};
  const { native } = sqlOptions;
  const canonical = { ...sqlOptions, ...(native !== undefined && { native: canonicalTableOptions(native) }) };
  const options = Object.keys(canonical).length > 0 ? { sqlOptions: canonical } : {};
  return { ...collection, fields, constraints, indexes, options };
}

/** The model without collations that tables have by default. */
export function withoutDefaultCollation(model: SchemaModel, collation: string): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => [
      name,
      collection.options.sqlOptions?.collation === collation ? withoutCollation(collection) : collection,
    ]),
  );
}

function withoutCollation(collection: Collection): Collection {
  const { collation: _, ...rest } = collection.options.sqlOptions ?? {};
  return { ...collection, options: Object.keys(rest).length > 0 ? { sqlOptions: rest } : {} };
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
    if (!hasServerSpelling(collection) && nativeKeyOf(collection) === undefined) continue;
    found.set(collection.name, await context.session.exclusive((exec) => respellCollection(exec, context, collection)));
  }
  return found;
}

async function respellCollection(
  exec: ExecSql,
  { traits, grammar, tableOptions }: NormalizeContext,
  collection: Collection,
): Promise<Collection> {
  const { name, fields, constraints, indexes, options } = collection;
  const key = nativeKeyOf(collection);
  const checks = [...constraints.values()].filter((constraint) => constraint.type === 'check');
  const lines = [
    // A server may require a primary key.
    '_svc_n int PRIMARY KEY',
    // Has the collation of the table.
    '_svc_t varchar(1)',
    ...[...fields.values()].map((field) => {
      // The server returns the default of a required field only together with a row.
      const { autoGenerate: _, required: __, ...plain } = field;
      return columnDefinition({ ...grammar, columnCheck: () => '' }, plain, name);
    }),
    ...checks.map((check) => constraintDefinition(grammar, check)),
    ...[...indexes.values()].flatMap((index) => probedIndex(index, name)),
    ...(key === undefined ? [] : probedIndex({ name: PROBED_KEY, unique: true, native: key }, name)),
  ];
  try {
    const replaced = replaceSupplementary(lines.join(', '));
    const collation = options.sqlOptions?.collation;
    const suffix = collation === undefined ? tableOptions : ` DEFAULT COLLATE ${assertCollationName(collation, name)}`;
    await exec(`CREATE TEMPORARY TABLE ${PROBE} (${replaced.text})${suffix}`);
    const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${PROBE}`);
    const text = replaced.restore(String(row?.['Create Table']));
    const read = new Map<string, Field>();
    const types = await readNativeTypes(exec, [...fields.values()], text);
    for (const [key, field] of fields) {
      read.set(key, await respellField(exec, traits, types.get(key) ?? field, text));
    }
    const found = await readIndexes(exec, traits, PROBE, collection);
    return {
      ...collection,
      fields: read,
      indexes: respellIndexes(indexes, found),
      constraints: new Map(
        [...constraints].map(([key, constraint]) => [key, respellConstraint(constraint, text, fields, found)]),
      ),
    };
  } finally {
    await exec(`DROP TEMPORARY TABLE IF EXISTS ${PROBE}`);
  }
}

/** The native types as the server spells them. */
async function readNativeTypes(exec: ExecSql, fields: readonly Field[], table: string): Promise<Map<string, Field>> {
  const found = new Map<string, Field>();
  if (!fields.some(({ native }) => native !== undefined)) return found;
  const shown = new Map((await rowsOf(exec, `SHOW FULL COLUMNS FROM ${PROBE}`)).map((row) => [String(row.Field), row]));
  const tableCollation = String(shown.get('_svc_t')?.Collation);
  for (const field of fields) {
    const row = shown.get(field.name);
    if (field.native === undefined || !row) continue;
    const { length: _, precision: __, scale: ___, enumValues: ____, native, type: _____, ...rest } = field;
    const collation = row.Collation === null ? null : String(row.Collation);
    const charset = collation === null ? null : (collation.split('_')[0] ?? null);
    const column = {
      name: field.name,
      type: String(row.Type),
      required: false,
      default: undefined,
      extra: String(row.Extra),
      charset,
      collation,
      comment: '',
      spatial: /\b(?:srid|ref_system_id) ?=? ?\d+/i.exec(native)?.[0] ?? '',
      generated: expressionOf(field.name, table),
    };
    found.set(field.name, { ...rest, ...nativeType(column, readType(column.type, charset), tableCollation) });
  }
  return found;
}

/** The expression of a computed column in SHOW CREATE TABLE; empty for any other. */
function expressionOf(name: string, table: string): string {
  const shown = textAfter(' AS ', lineOf(`${quoteIdentifier(name)} `, table)) ?? '';
  const rest = textAfter(')', shown);
  return rest === undefined ? '' : shown.slice(1, shown.length - rest.length - 1);
}

function respellConstraint(
  constraint: Constraint,
  shown: string,
  fields: Collection['fields'],
  probed: ReadonlyMap<string, CatalogIndex>,
): Constraint {
  if (constraint.type === 'check') return respellCheck(constraint, shown, [...fields.keys()]);
  const key = constraint.type === 'primaryKey' && constraint.native !== undefined ? probed.get(PROBED_KEY) : undefined;
  return key ? primaryKeyOf(key) : constraint;
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
  const expression = withoutOuterParentheses(shown.replace(/ \/\*!80016 NOT ENFORCED \*\/$/, ''));
  return { ...check, expression, columns: columnsIn(expression, fields) };
}

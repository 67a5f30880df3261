import type { UnsupportedObject, WholeCatalog } from '../../../../core/dialect.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Constraint, Field, Index, SchemaModel } from '../../../../core/schema/model.ts';
import { defaultExpression } from '../column.ts';
import type { Grammar } from '../grammar.ts';
import { enumCheckName, primaryKeyName, uniqueName } from '../names.ts';
import { readType, UNKNOWN_TYPE } from '../text-catalog/syntax.ts';
import type { CatalogColumn, CatalogRows } from './catalog-rows.ts';
import { readSqlDefault, unquoteSql } from './defaults.ts';
import { normalConstraint } from './grammar.ts';
import type { SqlServerSyntax } from './syntax.ts';

/** The catalog as a model. Constraints of flags of fields are recognized by their names, which have the limit of `grammar`. */
export function toWholeCatalog(
  syntax: SqlServerSyntax,
  { names }: Pick<Grammar, 'names'>,
  catalog: CatalogRows,
): WholeCatalog {
  const unsupported: UnsupportedObject[] = [...catalog.unsupported];
  const ofTable = <T extends { readonly table: string }>(table: string, all: readonly T[]) =>
    all.filter((one) => one.table === table);
  const model = new Map<string, Collection>();
  for (const name of catalog.tables) {
    const constraints = new Map(
      ofTable(name, catalog.constraints).map(({ table: _, ...one }): [string, Constraint] => [
        one.name,
        normalConstraint(syntax, one),
      ]),
    );
    const columns = ofTable(name, catalog.columns);
    const key = takeKeyFlags(primaryKeyName(name, names), columns, constraints);
    const keys = new Set([
      ...key,
      ...[...constraints.values()].flatMap((one) => (one.type === 'primaryKey' ? one.columns : [])),
    ]);
    const fields = columns.map((column): [string, Field] => {
      const type = columnType(syntax, column, enumCheckName(name, column.name, names), constraints);
      if (!type) unsupported.push({ collection: name, field: column.name, what: `has the type ${column.type}` });
      const field: Field = {
        name: column.name,
        ...(type ?? UNKNOWN_TYPE),
        ...readSqlDefault(syntax, column.default, type ?? UNKNOWN_TYPE),
        ...(key.includes(column.name) && { primaryKey: true }),
        ...((column.required || keys.has(column.name)) && { required: true }),
        ...(column.identity && { autoGenerate: true }),
        ...(constraints.delete(uniqueName(name, column.name, names)) && { unique: true }),
      };
      return [column.name, field];
    });
    model.set(name, {
      name,
      fields: new Map(fields),
      indexes: toIndexes(ofTable(name, catalog.indexes)),
      constraints,
      options: {},
    });
  }
  return { model, unsupported };
}

/** The columns of the primary key that the flags of fields describe, and removes its constraint. */
function takeKeyFlags(
  named: string,
  columns: readonly CatalogColumn[],
  constraints: Map<string, Constraint>,
): readonly string[] {
  const key = constraints.get(named);
  if (key?.type !== 'primaryKey') return [];
  // A key in another order than the columns is a constraint.
  const inOrder = columns.flatMap(({ name }) => (key.columns.includes(name) ? [name] : []));
  if (inOrder.some((name, at) => name !== key.columns[at])) return [];
  constraints.delete(key.name);
  return key.columns;
}

/** The type of a column; undefined if svc has none. Removes the check of an enum. */
function columnType(
  syntax: SqlServerSyntax,
  { type, values }: CatalogColumn,
  checkName: string,
  constraints: Map<string, Constraint>,
): Omit<Field, 'name'> | undefined {
  const check = constraints.get(checkName);
  const listed = syntax.nativeEnum || check?.type !== 'check' ? values : textsIn(check.expression);
  const read = readType(syntax, type);
  if (!listed) return read;
  if (check) constraints.delete(check.name);
  return { type: 'enum', enumValues: listed };
}

const textsIn = (expression: string): readonly string[] =>
  (expression.match(/(?:U&)?'(?:[^']|'')*'/gi) ?? []).map(unquoteSql);

function toIndexes(columns: CatalogRows['indexes']): ReadonlyMap<string, Index> {
  const indexes = new Map<string, Index>();
  for (const { name, column, descending, unique } of columns) {
    const before = indexes.get(name)?.columns ?? [];
    const key = { name: column, ...(descending && { order: 'desc' as const }) };
    indexes.set(name, { name, columns: [...before, key], ...(unique && { unique: true as const }) });
  }
  return indexes;
}

/** The model as the catalog describes it, apart from how the server spells expressions. */
export function normalizeSqlServer(syntax: SqlServerSyntax, grammar: Grammar, model: SchemaModel): SchemaModel {
  const normalField = (field: Field, table: string): Field => {
    const type = field.type === 'enum' ? undefined : readType(syntax, grammar.columnType(field, table));
    // An engine that writes no length, or no type of elements, has none in its catalog.
    const { default: value, items, length, precision, scale, ...rest } = field;
    const isWritten = value !== undefined && !isExpression(value);
    const read = isWritten ? readSqlDefault(syntax, defaultExpression(grammar, field, table), field) : undefined;
    return { ...rest, ...type, ...(value !== undefined && { default: value }), ...read };
  };
  return new Map(
    [...model].map(([name, { fields, constraints, indexes }]) => {
      const normal = {
        name,
        fields: new Map([...fields].map(([key, field]) => [key, normalField(field, name)])),
        constraints: new Map([...constraints].map(([key, one]) => [key, normalConstraint(syntax, one)])),
        indexes,
        options: {},
      };
      return [name, normal];
    }),
  );
}

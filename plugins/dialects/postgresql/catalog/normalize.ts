import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type { Collection, Constraint, Field, SchemaModel } from '../../../../core/schema/model.ts';
import { hasServerSpelling, isSpelledByServer, setFlags } from '../../sql/catalog-values.ts';
import { columnDefinition } from '../../sql/column.ts';
import { constraintDefinition } from '../../sql/compile.ts';
import { primaryKeyName, uniqueName } from '../../sql/names.ts';
import type { ExecSql, Session } from '../../sql/session.ts';
import { grammar } from '../compile/grammar.ts';
import { isIdentity } from '../compile/modify-field.ts';
import { pathOf, quoteIdentifier, relationOf } from '../compile/names.ts';
import {
  canonicalOptions,
  canonicalTableOptions,
  nativeIndex,
  nativeTableOptions,
  tableOptions,
} from '../compile/native-options.ts';
import { DEFAULT_STRING_LENGTH } from '../compile/types.ts';
import { isInvalidStatement } from '../connection/errors.ts';
import { normalizeDefault } from './defaults.ts';
import { toModel } from './introspect.ts';
import type { Schemas } from './namespaces.ts';
import { readCatalog } from './read-catalog.ts';

/** The part of a model that the catalog stores. Expressions stay as written. */
export function normalize(model: SchemaModel): SchemaModel {
  return new Map([...model].map(([name, collection]) => [name, normalizeCollection(collection)]));
}

function normalizeCollection(collection: Collection): Collection {
  const fields = new Map([...collection.fields].map(([name, field]) => [name, normalizeField(field)]));
  const constraints = new Map<string, Constraint>();
  for (const constraint of collection.constraints.values()) {
    if (constraint.type === 'primaryKey') {
      for (const name of constraint.columns) setFlags(fields, name, { required: true });
    }
    if (equalsFieldFlag(collection, constraint)) {
      for (const name of constraint.columns) {
        setFlags(fields, name, constraint.type === 'unique' ? { unique: true } : { primaryKey: true });
      }
    } else {
      constraints.set(constraint.name, withCanonicalOptions(constraint));
    }
  }
  return { ...collection, fields, constraints, options: withCanonicalTableOptions(collection.options) };
}

function withCanonicalTableOptions(options: Collection['options']): Collection['options'] {
  const native = options.sqlOptions?.native;
  return native === undefined
    ? options
    : { sqlOptions: { ...options.sqlOptions, native: canonicalTableOptions(native) } };
}

/** Whether a constraint is the same as one created by a flag of its fields. */
function equalsFieldFlag({ name: table, fields }: Collection, { type, name, columns, native }: Constraint): boolean {
  if (native !== undefined) return false;
  if (type === 'unique') return columns.length === 1 && name === uniqueName(table, columns[0] ?? '');
  if (type !== 'primaryKey' || name !== primaryKeyName(table) || primaryKeyFields({ fields }).length > 0) return false;
  const order = [...fields.keys()];
  return columns.every(
    (column, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(column),
  );
}

/** Options as the catalog has them: what is the default is not written. */
function withCanonicalOptions<C extends Constraint>(constraint: C): C {
  const { native, ...rest } = constraint;
  if (native === undefined) return constraint;
  const canonical = canonicalOptions(native);
  return { ...rest, ...(canonical !== '' && { native: canonical }) } as C;
}

function normalizeField(field: Field): Field {
  const { length, default: value, ...rest } = field;
  const type = field.type === 'blob' ? 'binary' : field.type;
  const items = field.items === 'blob' ? 'binary' : field.items;
  return {
    ...rest,
    type,
    ...(items !== undefined && { items }),
    ...(type === 'string' && { length: length ?? DEFAULT_STRING_LENGTH }),
    ...(isIdentity(field) && { required: true }),
    ...(value !== undefined && { default: normalizeDefault(value, field) }),
  };
}

/**
 * Replaces expressions by the server's own form: temporary tables with the same columns are created, read and rolled
 * back. If the server rejects an expression of a table, for example because a function was dropped, the table keeps its expressions,
 * which differ from any in the catalog. `model` is a result of `normalize`.
 */
export async function normalizeExpressions(
  session: Session,
  model: SchemaModel,
  schemas: Schemas,
): Promise<SchemaModel> {
  const bySchema = new Map<string | undefined, Collection[]>();
  for (const collection of model.values()) {
    if (!hasServerSpelling(collection) && !isPartitioned(collection)) continue;
    const { schema } = relationOf(collection.name);
    bySchema.set(schema, [...(bySchema.get(schema) ?? []), collection]);
  }
  const normal = new Map(model);
  for (const [schema, collections] of bySchema) {
    const local = collections.map((one) => ({ ...one, name: relationOf(one.name).name }));
    const fromServer = await session.exclusive((exec) => readAsTemporary(exec, local, schemas));
    for (const collection of local) {
      const name = pathOf({ schema, name: collection.name });
      normal.set(name, { ...withServerExpressions(collection, fromServer.get(collection.name)), name });
    }
  }
  return normal;
}

async function readAsTemporary(exec: ExecSql, collections: readonly Collection[], schemas: Schemas) {
  await exec('BEGIN');
  try {
    for (const collection of collections) {
      await exec(`SAVEPOINT before_table; ${createTemporaryTable(collection)}`).catch(async (error) => {
        if (!isInvalidStatement(error)) throw error;
        await exec('ROLLBACK TO before_table');
      });
    }
    const names = collections.map(({ name }) => name);
    return toModel(await readCatalog(exec, { ...schemas, isTemporary: true }, names)).model;
  } finally {
    await exec('ROLLBACK');
  }
}

const isPartitioned = ({ options }: Collection): boolean =>
  tableOptions(options.sqlOptions?.native ?? '').partition !== '';

function createTemporaryTable(collection: Collection): string {
  const { name, fields, constraints, indexes, options } = collection;
  const { partition } = tableOptions(nativeTableOptions(options.sqlOptions?.native, name).trim());
  const lines = [
    ...[...fields.values()].map((field) => columnDefinition(grammar, { ...field, type: field.type }, name)),
    ...[...constraints.values()]
      .filter(({ type }) => type === 'check')
      // A new table has no check that is not valid.
      .map(({ native: _, ...check }) => constraintDefinition(grammar, check)),
  ];
  const table = `pg_temp.${quoteIdentifier(name)}`;
  const created = [...indexes.values()].flatMap(({ name: index, native, unique }) =>
    native === undefined
      ? []
      : [
          `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${quoteIdentifier(index)} ON ${table} ${nativeIndex(native, name, index)}`,
        ],
  );
  return [`CREATE TEMPORARY TABLE ${table} (${lines.join(', ')}) ${partition}`, ...created].join('; ');
}

/** The field with the type that the catalog has for a native one. */
function withType(field: Field, read: Field): Field {
  const {
    type: _,
    length: __,
    precision: ___,
    scale: ____,
    items: _____,
    enumValues: ______,
    native: _______,
    ...rest
  } = field;
  const { name, primaryKey, autoGenerate, required, unique, comment, default: value, ...type } = read;
  return { ...rest, ...type };
}

function withServerExpressions(collection: Collection, fromServer: Collection | undefined): Collection {
  if (!fromServer) return collection;
  const fields = new Map(collection.fields);
  for (const [name, field] of fields) {
    const read = fromServer.fields.get(name);
    if (!read || !isSpelledByServer(field)) continue;
    const { default: _, ...plain } = field.native === undefined ? field : withType(field, read);
    const { default: value, autoGenerate } = read;
    fields.set(name, {
      ...plain,
      ...(value !== undefined && { default: value }),
      ...(autoGenerate && { autoGenerate }),
    });
  }
  const constraints = new Map(collection.constraints);
  for (const [name, constraint] of constraints) {
    const read = fromServer.constraints.get(name);
    if (constraint.type !== 'check') continue;
    // It uses what the catalog of the tables is read without.
    if (!read) constraints.delete(name);
    else constraints.set(name, constraint.native === undefined ? read : { ...read, native: constraint.native });
  }
  const indexes = new Map(collection.indexes);
  for (const [name, index] of indexes) {
    if (index.native === undefined) continue;
    const read = fromServer.indexes.get(name);
    if (read) indexes.set(name, read);
    else indexes.delete(name);
  }
  return { ...collection, fields, constraints, indexes, options: withServerPartition(collection, fromServer) };
}

function withServerPartition({ options }: Collection, fromServer: Collection): Collection['options'] {
  const { partition } = tableOptions(fromServer.options.sqlOptions?.native ?? '');
  const { native } = options.sqlOptions ?? {};
  if (partition === '' || native === undefined) return options;
  const { parameters } = tableOptions(native);
  return { sqlOptions: { ...options.sqlOptions, native: [partition, parameters].join(' ').trim() } };
}

import { isDeepStrictEqual } from 'node:util';
import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import type { Collection, Field, Index, SchemaModel } from '../../../../core/schema/model.ts';
import type { CassandraOptions, TableOptions } from '../../../../core/schema/options.ts';
import { tableKey } from '../compile/key.ts';
import { type Registered, registeredFields } from '../compile/step.ts';
import { columnType, fieldTypeOf } from '../compile/types.ts';
import type { Session } from '../connection/session.ts';
import { type CatalogTable, keyOfTable, readCatalog } from './read-catalog.ts';
import { readRegistry } from './registry.ts';

/** The catalog, with the registry's entries where the two agree. */
export async function introspect(session: Session, named?: readonly string[]): Promise<SchemaModel> {
  const [tables, registered] = await Promise.all([readCatalog(session, named), readRegistry(session)]);
  return new Map(
    tables.map((table) => {
      const entry = registered.get(table.name);
      const isOfDroppedTable = entry?.dropping !== undefined && entry.dropping !== table.id;
      return [table.name, collectionOf(table, isOfDroppedTable ? undefined : entry)];
    }),
  );
}

/** A table without an entry in the registry, as it would be with this one; undefined if it is not such a table. */
export async function introspectAs(session: Session, collection: Collection): Promise<Collection | undefined> {
  const [[table], registered] = await Promise.all([readCatalog(session, [collection.name]), readRegistry(session)]);
  const dropping = registered.get(collection.name)?.dropping;
  const isRegistered = registered.has(collection.name) && (dropping === undefined || dropping === table?.id);
  return table && !isRegistered ? collectionOf(table, registeredFields(collection)) : undefined;
}

function collectionOf(table: CatalogTable, registered: Registered | undefined): Collection {
  const fields = fieldsOf(table, registered);
  const options = registered?.options.find((written) => matchesOptions(written, table, fields)) ?? optionsOf(table);
  return {
    name: table.name,
    fields,
    indexes: new Map(table.indexes.map((index) => [index.name, indexOf(index)])),
    constraints: new Map(),
    options,
  };
}

function fieldsOf({ columns }: CatalogTable, registered: Registered | undefined): Map<string, Field> {
  const fields = new Map<string, Field>();
  const pending = new Set<string>();
  for (const { replaces, ...field } of registered?.fields ?? []) {
    const column = columns.get(field.name);
    if (!column || column.type !== columnType(field) || column.kind === 'static') continue;
    if (replaces !== undefined && columns.has(replaces)) pending.add(field.name);
    else fields.set(field.name, field);
  }
  for (const { name, kind, type } of columns.values()) {
    if (fields.has(name) || pending.has(name)) continue;
    const { inexact: _, ...read } = fieldTypeOf(type);
    const key = kind === 'partition_key' || kind === 'clustering';
    fields.set(name, { name, ...read, ...(key && { primaryKey: true, required: true }) });
  }
  return fields;
}

function indexOf({ name, target, using }: CatalogTable['indexes'][number]): Index {
  const column = /^(?:values|full)\((.+)\)$/.exec(target)?.[1] ?? target;
  const plain = column.replace(/^"(.*)"$/, '$1').replaceAll('""', '"');
  return { name, columns: [{ name: plain }], ...(using === 'sai' && { cassandraOptions: { using } }) };
}

/** Whether the table has the properties that the options set. */
function matchesOptions(options: TableOptions, table: CatalogTable, fields: ReadonlyMap<string, Field>): boolean {
  try {
    const key = tableKey({ name: table.name, fields, options });
    const found = {
      partition: keyOfTable(table, 'partition_key').map(({ name }) => name),
      clustering: keyOfTable(table, 'clustering').map(({ name, order }) => ({ name, order })),
    };
    if (!isDeepStrictEqual(key, found)) return false;
  } catch (error) {
    if (isSvcError(error)) return false;
    throw error;
  }
  const { defaultTTL = 0, compaction = {} } = options.cassandraOptions ?? {};
  return (
    defaultTTL === table.defaultTTL &&
    Object.entries(compaction).every(([name, value]) => {
      const actual = table.compaction[name];
      return name === 'class' ? lastPart(actual) === lastPart(String(value)) : actual === String(value);
    })
  );
}

const lastPart = (name: string | undefined): string | undefined => name?.split('.').at(-1);

/** The options of a table that is not in the registry. */
function optionsOf(table: CatalogTable): TableOptions {
  const clustering = keyOfTable(table, 'clustering');
  const strategy = lastPart(table.compaction.class);
  const cassandraOptions: CassandraOptions = {
    partitionKey: keyOfTable(table, 'partition_key').map(({ name }) => name),
    ...(clustering.length > 0 && { clusteringColumns: clustering.map(({ name }) => name) }),
    ...(clustering.some(({ order }) => order === 'DESC') && {
      clusteringOrder: clustering.map(({ name, order }) => ({ column: name, order })),
    }),
    ...(table.defaultTTL > 0 && { defaultTTL: table.defaultTTL }),
    ...(strategy !== undefined && strategy !== 'SizeTieredCompactionStrategy' && { compaction: { class: strategy } }),
  };
  return { cassandraOptions };
}

export async function unsupportedObjects(session: Session): Promise<UnsupportedObject[]> {
  const tables = await readCatalog(session);
  const views = await session.rows(
    'SELECT view_name, base_table_name FROM system_schema.views WHERE keyspace_name = ?',
    [session.keyspace],
  );
  return [
    ...tables.flatMap(({ name, columns, indexes }): UnsupportedObject[] => [
      ...[...columns.values()].flatMap((column): UnsupportedObject[] => [
        ...(fieldTypeOf(column.type).inexact
          ? [
              {
                collection: name,
                field: column.name,
                what: `has the type ${column.type}, which svc cannot create: it is read as ${fieldTypeOf(column.type).type}`,
              },
            ]
          : []),
        ...(column.kind === 'static'
          ? [{ collection: name, field: column.name, what: 'is static: it is read as an ordinary field' }]
          : []),
      ]),
      ...indexes
        .filter(({ using }) => using !== undefined && using !== 'sai')
        .map(({ name: index, using }) => ({
          collection: name,
          what: `has the index ${index} of the class ${using}: it is read as an ordinary index`,
        })),
    ]),
    ...views.map((row) => ({
      collection: String(row.base_table_name),
      what: `has the materialized view ${String(row.view_name)}, which svc ignores`,
    })),
  ];
}

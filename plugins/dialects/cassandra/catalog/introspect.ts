import { isDeepStrictEqual } from 'node:util';
import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import type { Collection, Field, SchemaModel } from '../../../../core/schema/model.ts';
import type { CassandraOptions, TableOptions } from '../../../../core/schema/options.ts';
import { tableKey } from '../compile/key.ts';
import { indexOf } from '../compile/native-index.ts';
import { type Registered, registeredFields } from '../compile/step.ts';
import { chosenProperties, hasProperties } from '../compile/table-properties.ts';
import { columnType, fieldTypeOf, isStatic, withCatalogType } from '../compile/types.ts';
import { isObjectUnknown } from '../connection/schema-lag.ts';
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
    indexes: new Map(table.indexes.map((index) => [index.name, indexOf(index.name, index)])),
    constraints: new Map(),
    options,
  };
}

function fieldsOf({ columns }: CatalogTable, registered: Registered | undefined): Map<string, Field> {
  const fields = new Map<string, Field>();
  const pending = new Set<string>();
  for (const { replaces, ...field } of registered?.fields ?? []) {
    const column = columns.get(field.name);
    if (!column || column.type !== columnType(field) || (column.kind === 'static') !== isStatic(field)) continue;
    if (replaces !== undefined && columns.has(replaces)) pending.add(field.name);
    else fields.set(field.name, withCatalogType(field));
  }
  for (const { name, kind, type } of columns.values()) {
    if (fields.has(name) || pending.has(name)) continue;
    const read = fieldTypeOf(type, kind === 'static');
    const key = kind === 'partition_key' || kind === 'clustering';
    fields.set(name, { name, ...read, ...(key && { primaryKey: true, required: true }) });
  }
  return fields;
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
  return hasProperties(table.properties, options.cassandraOptions ?? {});
}

/** The options of a table that is not in the registry. */
function optionsOf(table: CatalogTable): TableOptions {
  const clustering = keyOfTable(table, 'clustering');
  const { compaction, default_time_to_live: _, ...properties } = chosenProperties(table.properties);
  const cassandraOptions: CassandraOptions = {
    partitionKey: keyOfTable(table, 'partition_key').map(({ name }) => name),
    ...(clustering.length > 0 && { clusteringColumns: clustering.map(({ name }) => name) }),
    ...(clustering.some(({ order }) => order === 'DESC') && {
      clusteringOrder: clustering.map(({ name, order }) => ({ column: name, order })),
    }),
    ...(table.defaultTTL > 0 && { defaultTTL: table.defaultTTL }),
    ...(compaction !== undefined && { compaction: compaction as { readonly class: string } }),
    ...(Object.keys(properties).length > 0 && { properties }),
  };
  return { cassandraOptions };
}

/** What the catalog has and the model does not say. */
export async function unsupportedObjects(session: Session): Promise<UnsupportedObject[]> {
  const [tables, registered, masks, triggers] = await Promise.all([
    readCatalog(session),
    readRegistry(session),
    readMasks(session),
    session.rows('SELECT table_name, trigger_name FROM system_schema.triggers WHERE keyspace_name = ?', [
      session.keyspace,
    ]),
  ]);
  return [
    ...tables.flatMap((table) => undeclaredProperties(table, registered.get(table.name))),
    ...masks.map(({ table_name: table, column_name: column, function_name: mask }) => ({
      collection: String(table),
      field: String(column),
      what: `is masked with ${String(mask)}, which svc cannot create`,
    })),
    ...triggers.map((row) => ({
      collection: String(row.table_name),
      what: `has the trigger ${String(row.trigger_name)}, which svc cannot create: its class is a file on each node`,
    })),
  ];
}

/** Since Cassandra 5.0. */
async function readMasks(session: Session) {
  try {
    return await session.rows(
      'SELECT table_name, column_name, function_name FROM system_schema.column_masks WHERE keyspace_name = ?',
      [session.keyspace],
    );
  } catch (error) {
    if (isObjectUnknown(error)) return [];
    throw error;
  }
}

/** Properties that somebody has changed on a table whose options do not name them, and those without words. */
function undeclaredProperties(table: CatalogTable, registered: Registered | undefined): UnsupportedObject[] {
  const { name, properties } = table;
  const fields = fieldsOf(table, registered);
  const options = registered?.options.find((written) => matchesOptions(written, table, fields))?.cassandraOptions;
  const named =
    options &&
    new Set([
      ...Object.keys(options.properties ?? {}),
      'default_time_to_live',
      ...(options.compaction ? ['compaction'] : []),
    ]);
  const extensions = Object.keys(properties.extensions ?? {});
  return [
    ...Object.entries(named ? chosenProperties(properties) : {})
      .filter(([property]) => !named?.has(property))
      .map(([property, value]) => ({
        collection: name,
        what: `has ${property} ${JSON.stringify(value)}, which no migration sets`,
      })),
    ...(extensions.length > 0
      ? [{ collection: name, what: `has the extensions ${extensions.join(', ')}, which svc cannot create` }]
      : []),
  ];
}

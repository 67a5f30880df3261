import { isDeepStrictEqual } from 'node:util';
import type { Unreadable } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { anyDefinition } from '../../../core/records.ts';
import type { Collection, Field, Index, SchemaModel, TableOptions } from '../../../core/schema/model.ts';
import type { CassandraOptions } from '../../../core/schema/options.ts';
import { type CatalogTable, keyOfCatalog, readCatalog } from './catalog.ts';
import { HOME, orMissing, SCOPE, VERSION } from './home.ts';
import { keyOf } from './key.ts';
import { quote } from './names.ts';
import { type Registered, type RegistryRow, registry } from './registry.ts';
import { recordOf, seatOf } from './seat.ts';
import type { Session } from './session.ts';
import { columnType, readType } from './types.ts';

/** The catalog, with what the registry knows of it where the two agree. */
export async function introspect(session: Session, named?: readonly string[]): Promise<SchemaModel> {
  const [tables, known] = await Promise.all([readCatalog(session, named), readRegistry(session)]);
  return new Map(
    tables.map((table) => {
      const said = known.get(table.name);
      const isOther = said?.dropping !== undefined && said.dropping !== table.id;
      return [table.name, collectionOf(table, isOther ? undefined : said)];
    }),
  );
}

async function readRegistry(session: Session): Promise<ReadonlyMap<string, Registered>> {
  const seat = seatOf(anyDefinition(registry));
  const columns = Object.keys(registry.columns).map(seat.column);
  const cql = `SELECT ${[...columns, VERSION].map(quote).join(', ')} FROM ${quote(HOME)} WHERE scope = ? AND kind = ?`;
  const rows = await orMissing(
    session,
    HOME,
    columns,
    () => session.widely(cql, [SCOPE, registry.collection]),
    async () => [],
  );
  return new Map(
    rows.map((row) => {
      const { table, definition } = recordOf(seat, row) as unknown as RegistryRow;
      return [table, definition];
    }),
  );
}

function collectionOf(table: CatalogTable, known: Registered | undefined): Collection {
  const fields = fieldsOf(table, known);
  const options = known?.options.find((written) => fits(written, table, fields)) ?? optionsOf(table);
  return {
    name: table.name,
    fields,
    indexes: new Map(table.indexes.map((index) => [index.name, indexOf(index)])),
    constraints: new Map(),
    options,
  };
}

function fieldsOf({ columns }: CatalogTable, known: Registered | undefined): Map<string, Field> {
  const fields = new Map<string, Field>();
  const pending = new Set<string>();
  for (const { replaces, ...field } of known?.fields ?? []) {
    const column = columns.get(field.name);
    if (!column || column.type !== columnType(field) || column.kind === 'static') continue;
    if (replaces !== undefined && columns.has(replaces)) pending.add(field.name);
    else fields.set(field.name, field);
  }
  for (const { name, kind, type } of columns.values()) {
    if (fields.has(name) || pending.has(name)) continue;
    const { inexact: _, ...read } = readType(type);
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

/** Whether the table is what the options ask for; what they leave open may be anything. */
function fits(options: TableOptions, table: CatalogTable, fields: ReadonlyMap<string, Field>): boolean {
  try {
    const key = keyOf({ name: table.name, fields, options });
    const found = {
      partition: keyOfCatalog(table, 'partition_key').map(({ name }) => name),
      clustering: keyOfCatalog(table, 'clustering').map(({ name, order }) => ({ name, order })),
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
      const there = table.compaction[name];
      return name === 'class' ? lastPart(there) === lastPart(String(value)) : there === String(value);
    })
  );
}

const lastPart = (name: string | undefined): string | undefined => name?.split('.').at(-1);

/** Of a table that svc did not make. */
function optionsOf(table: CatalogTable): TableOptions {
  const clustering = keyOfCatalog(table, 'clustering');
  const strategy = lastPart(table.compaction.class);
  const cassandraOptions: CassandraOptions = {
    partitionKey: keyOfCatalog(table, 'partition_key').map(({ name }) => name),
    ...(clustering.length > 0 && { clusteringColumns: clustering.map(({ name }) => name) }),
    ...(clustering.some(({ order }) => order === 'DESC') && {
      clusteringOrder: clustering.map(({ name, order }) => ({ column: name, order })),
    }),
    ...(table.defaultTTL > 0 && { defaultTTL: table.defaultTTL }),
    ...(strategy !== undefined && strategy !== 'SizeTieredCompactionStrategy' && { compaction: { class: strategy } }),
  };
  return { cassandraOptions };
}

/** What no field, index or option can say. */
export async function unreadable(session: Session): Promise<Unreadable[]> {
  const tables = await readCatalog(session);
  const views = await session.rows(
    'SELECT view_name, base_table_name FROM system_schema.views WHERE keyspace_name = ?',
    [session.keyspace],
  );
  return [
    ...tables.flatMap(({ name, columns, indexes }): Unreadable[] => [
      ...[...columns.values()].flatMap((column): Unreadable[] => [
        ...(readType(column.type).inexact
          ? [
              {
                collection: name,
                field: column.name,
                what: `has the type ${column.type}, which svc does not make: it is read as ${readType(column.type).type}`,
              },
            ]
          : []),
        ...(column.kind === 'static'
          ? [{ collection: name, field: column.name, what: 'is static: it is read as an ordinary one' }]
          : []),
      ]),
      ...indexes
        .filter(({ using }) => using !== undefined && using !== 'sai')
        .map(({ name: index, using }) => ({
          collection: name,
          what: `has the index ${index} of the class ${using}: it is read as an ordinary one`,
        })),
    ]),
    ...views.map((row) => ({
      collection: String(row.base_table_name),
      what: `has the materialized view ${String(row.view_name)}, which svc does not know`,
    })),
  ];
}

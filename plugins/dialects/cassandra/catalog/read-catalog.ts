import { type IndexDefinition, indexClass } from '../compile/native-index.ts';
import { parseNativeType } from '../compile/native-type.ts';
import type { TableProperties } from '../compile/table-properties.ts';
import type { Session } from '../connection/session.ts';

export interface CatalogColumn {
  readonly name: string;
  readonly kind: 'partition_key' | 'clustering' | 'static' | 'regular';
  /** The position in the key; -1 outside of it. */
  readonly position: number;
  readonly order: 'ASC' | 'DESC';
  readonly type: string;
}

interface CatalogIndex extends IndexDefinition {
  readonly name: string;
}

export interface CatalogTable {
  readonly name: string;
  /** Distinguishes the table from earlier and later ones of the same name. */
  readonly id: string;
  readonly columns: ReadonlyMap<string, CatalogColumn>;
  readonly indexes: readonly CatalogIndex[];
  readonly defaultTTL: number;
  readonly properties: TableProperties;
}

const SYSTEM_PREFIX = '_svc_';

/** All or the named tables, without system tables. Materialized views are left out, although they have columns. */
export async function readCatalog(session: Session, named?: readonly string[]): Promise<CatalogTable[]> {
  const [tables, columns, indexes] = await Promise.all([
    querySchema(session, '*', 'tables', named),
    querySchema(session, 'table_name, column_name, kind, position, clustering_order, type', 'columns', named),
    querySchema(session, 'table_name, index_name, kind, options', 'indexes', named),
  ]);
  return tables
    .filter((row) => !String(row.table_name).startsWith(SYSTEM_PREFIX))
    .map((row) => ({
      name: String(row.table_name),
      id: String(row.id),
      columns: new Map(
        columns
          .filter((column) => column.table_name === row.table_name)
          .map(catalogColumn)
          .map((column) => [column.name, column]),
      ),
      indexes: indexes.filter((index) => index.table_name === row.table_name).map(catalogIndex),
      defaultTTL: Number(row.default_time_to_live ?? 0),
      properties: row as TableProperties,
    }));
}

type Rows = Awaited<ReturnType<Session['rows']>>;

async function querySchema(session: Session, what: string, from: string, named?: readonly string[]): Promise<Rows> {
  const cql = `SELECT ${what} FROM system_schema.${from} WHERE keyspace_name = ?`;
  return named === undefined
    ? session.rows(cql, [session.keyspace])
    : session.rows(`${cql} AND table_name IN ?`, [session.keyspace, [...named]]);
}

function catalogColumn(row: Rows[number]): CatalogColumn {
  return {
    name: String(row.column_name),
    kind: row.kind as CatalogColumn['kind'],
    position: Number(row.position),
    order: row.clustering_order === 'desc' ? 'DESC' : 'ASC',
    type: parseNativeType(String(row.type))?.type ?? String(row.type),
  };
}

function catalogIndex(row: Rows[number]): CatalogIndex {
  const { class_name: name, target = '', ...options } = (row.options ?? {}) as Readonly<Record<string, string>>;
  const [, part, written = target] = /^(keys|values|entries|full)\((.+)\)$/s.exec(target) ?? [];
  const using = name === undefined ? undefined : indexClass(name);
  return {
    name: String(row.index_name),
    column: unquote(written),
    ...(part !== undefined && part !== 'values' && { part }),
    ...(using !== undefined && { using }),
    options,
  };
}

const unquote = (name: string): string =>
  name.startsWith('"') && name.endsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;

/** The columns of one part of the key, in order. */
export function keyOfTable({ columns }: CatalogTable, kind: 'partition_key' | 'clustering'): CatalogColumn[] {
  return [...columns.values()].filter((column) => column.kind === kind).sort((a, b) => a.position - b.position);
}

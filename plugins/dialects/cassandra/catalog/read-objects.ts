import type { DatabaseObject } from '../../../../core/schema/database-object.ts';
import { isSameDefinition } from '../compile/objects.ts';
import { chosenProperties, propertyTexts, type TableProperties } from '../compile/table-properties.ts';
import type { Session } from '../connection/session.ts';

type Row = Awaited<ReturnType<Session['rows']>>[number];

const RESERVED = new Set(
  'add allow alter and any apply asc authorize batch begin by columnfamily create default delete desc describe drop entries execute from full grant if in index infinity insert into is keyspace limit mbean mbeans modify nan norecursive not null of on or order primary rename replace revoke schema select set table to token truncate unlogged unset update use using view where with'.split(
    ' ',
  ),
);

/** As the server prints it: in quotes only where it needs them. */
const printed = (name: string): string =>
  /^[a-z]\w*$/.test(name) && name === name.toLowerCase() && !RESERVED.has(name)
    ? name
    : `"${name.replaceAll('"', '""')}"`;

/** The user types, functions, aggregates and materialized views of the keyspace. */
export async function readObjects(session: Session): Promise<DatabaseObject[]> {
  const from = (table: string): Promise<Row[]> =>
    session.rows(`SELECT * FROM system_schema.${table} WHERE keyspace_name = ?`, [session.keyspace]) as Promise<Row[]>;
  const [types, functions, aggregates, views] = await Promise.all(
    ['types', 'functions', 'aggregates', 'views'].map(from),
  );
  const columns = (views ?? []).length > 0 ? await from('columns') : [];
  return [
    ...(types ?? []).map((row) => ({ kind: 'type', name: String(row.type_name), definition: typeText(row) })),
    ...named(functions ?? [], 'function', 'function_name', functionText),
    ...named(aggregates ?? [], 'aggregate', 'aggregate_name', aggregateText),
    ...(views ?? []).map((row) => ({
      kind: 'materialized_view',
      name: String(row.view_name),
      definition: viewText(
        row,
        columns.filter((column) => column.table_name === row.view_name),
      ),
    })),
  ];
}

/** Those of one name have the types of their parameters after it. */
function named(
  rows: readonly Row[],
  kind: string,
  column: string,
  text: (row: Row) => string,
): readonly DatabaseObject[] {
  return rows.map((row) => {
    const name = String(row[column]);
    const isAlone = rows.filter((other) => other[column] === row[column]).length === 1;
    return { kind, name: isAlone ? name : `${name}(${listOf(row.argument_types).join(', ')})`, definition: text(row) };
  });
}

/** The text of the catalog, if the texts mean the same. */
export async function normalizeObjects(
  session: Session,
  objects: readonly DatabaseObject[],
): Promise<readonly DatabaseObject[]> {
  const found = await readObjects(session);
  return objects.map(
    (object) =>
      found.find(
        (other) => other.kind === object.kind && other.name === object.name && isSameDefinition(other, object),
      ) ?? object,
  );
}

const listOf = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

/** Parameters and results are written without it. */
const withoutFrozen = (type: string): string => /^frozen<(.*)>$/.exec(type)?.[1] ?? type;

function typeText(row: Row): string {
  const types = listOf(row.field_types);
  const fields = listOf(row.field_names).map((name, at) => `  ${printed(name)} ${types[at]}`);
  return `CREATE TYPE ${printed(String(row.type_name))} (\n${fields.join(',\n')}\n)`;
}

function functionText(row: Row): string {
  const types = listOf(row.argument_types);
  const parameters = listOf(row.argument_names).map((name, at) => `${printed(name)} ${withoutFrozen(types[at] ?? '')}`);
  const body = String(row.body);
  const quoted = body.includes('$$') ? `'${body.replaceAll("'", "''")}'` : `$$${body}$$`;
  return [
    `CREATE FUNCTION ${printed(String(row.function_name))} (${parameters.join(', ')})`,
    `  ${row.called_on_null_input ? 'CALLED' : 'RETURNS NULL'} ON NULL INPUT`,
    `  RETURNS ${withoutFrozen(String(row.return_type))}`,
    `  LANGUAGE ${String(row.language)}`,
    `  AS ${quoted}`,
  ].join('\n');
}

function aggregateText(row: Row): string {
  return [
    `CREATE AGGREGATE ${printed(String(row.aggregate_name))} (${listOf(row.argument_types).map(withoutFrozen).join(', ')})`,
    `  SFUNC ${printed(String(row.state_func))}`,
    `  STYPE ${withoutFrozen(String(row.state_type))}`,
    ...(row.final_func == null ? [] : [`  FINALFUNC ${printed(String(row.final_func))}`]),
    ...(row.initcond == null ? [] : [`  INITCOND ${String(row.initcond)}`]),
  ].join('\n');
}

function viewText(row: Row, columns: readonly Row[]): string {
  const key = (kind: string) =>
    columns.filter((column) => column.kind === kind).sort((a, b) => Number(a.position) - Number(b.position));
  const names = (of: readonly Row[]) => of.map((column) => printed(String(column.column_name)));
  const clustering = key('clustering');
  const order = clustering.map(
    (column) => `${printed(String(column.column_name))} ${column.clustering_order === 'desc' ? 'DESC' : 'ASC'}`,
  );
  const { compaction, default_time_to_live: _, ...properties } = chosenProperties(row as unknown as TableProperties);
  const texts = propertyTexts(
    { properties, ...(compaction !== undefined && { compaction: compaction as { readonly class: string } }) },
    String(row.view_name),
  );
  const withTexts = [
    ...(clustering.some((column) => column.clustering_order === 'desc')
      ? [`CLUSTERING ORDER BY (${order.join(', ')})`]
      : []),
    ...texts,
  ];
  const lines = [
    `CREATE MATERIALIZED VIEW ${printed(String(row.view_name))} AS`,
    `SELECT ${row.include_all_columns ? '*' : names(columns).sort().join(', ')}`,
    `FROM ${printed(String(row.base_table_name))}`,
    `WHERE ${String(row.where_clause)}`,
    `PRIMARY KEY (${[`(${names(key('partition_key')).join(', ')})`, ...names(clustering)].join(', ')})`,
    ...(withTexts.length > 0 ? [`WITH ${withTexts.join('\n  AND ')}`] : []),
  ];
  return lines.join('\n');
}

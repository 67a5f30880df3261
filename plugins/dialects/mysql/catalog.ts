import { SvcError } from '../../../core/errors.ts';
import { type Exec, type Result, rowsOf } from '../../sql/session.ts';
import type { CatalogDefault } from './default.ts';
import { unmarked } from './marked.ts';
import { text } from './quote.ts';
import type { Traits } from './traits.ts';

export interface CatalogTable {
  readonly name: string;
  readonly engine: string;
  readonly collation: string;
  readonly partitioned: boolean;
  readonly columns: readonly CatalogColumn[];
  readonly indexes: readonly CatalogIndex[];
  readonly foreignKeys: readonly CatalogForeignKey[];
  readonly checks: readonly CatalogCheck[];
}

export interface CatalogColumn {
  readonly name: string;
  /** `varchar(20)`, with everything that belongs to the type. */
  readonly type: string;
  readonly required: boolean;
  readonly default: CatalogDefault | undefined;
  /** `auto_increment`, `on update …`, `INVISIBLE`, `VIRTUAL GENERATED` and so on, as the server has it. */
  readonly extra: string;
  readonly charset: string | null;
  readonly collation: string | null;
  readonly comment: string;
  /** What it says of the system of its coordinates; empty for nothing. */
  readonly spatial: string;
  /** What it is computed from; empty for none. */
  readonly generated: string;
}

export interface CatalogIndex {
  readonly name: string;
  readonly unique: boolean;
  /** Why svc does not make one like it; null where it does. */
  readonly odd: string | null;
  readonly columns: readonly { readonly name: string; readonly descending: boolean }[];
}

export interface CatalogForeignKey {
  readonly name: string;
  readonly columns: readonly string[];
  /** Null where it is in another database. */
  readonly table: string | null;
  readonly target: readonly string[];
  readonly onUpdate: string;
  readonly onDelete: string;
}

export interface CatalogCheck {
  readonly name: string;
  readonly expression: string;
  /** A part of the column's definition. */
  readonly own: boolean;
  readonly odd: string | null;
}

/** Everything of the tables of the session's database, in one round trip but for what the catalog does not know exactly. */
export async function readCatalog(exec: Exec, traits: Traits, tables?: readonly string[]): Promise<CatalogTable[]> {
  if (tables?.length === 0) return [];
  const [found = [], columns, indexes, keys, checks] = await rowsOfEach(exec, queries(traits, tables));
  const columnsOf = byTable(columns);
  const indexesOf = byTable(indexes);
  const keysOf = byTable(keys);
  const checksOf = byTable(checks);
  // The catalog compares names without case, and MariaDB's without accents.
  const wanted = tables && new Set(tables);
  const read = found.flatMap((row): CatalogTable[] => {
    const name = String(row.t);
    if (wanted && !wanted.has(name)) return [];
    return [
      {
        name,
        engine: String(row.engine),
        collation: String(row.collation),
        partitioned: /partitioned/.test(String(row.options)),
        columns: (columnsOf.get(name) ?? []).map((column) => columnOf(traits, column)),
        indexes: [...groups(indexesOf.get(name) ?? [])].map(indexOf),
        foreignKeys: [...groups(keysOf.get(name) ?? [])].map(foreignKeyOf),
        checks: (checksOf.get(name) ?? []).map((check) => ({
          name: String(check.n),
          expression: traits.catalog.expression(String(check.e)),
          own: Number(check.own) === 1,
          odd: check.odd === null ? null : String(check.odd),
        })),
      },
    ];
  });
  const exact: CatalogTable[] = [];
  for (const table of read) exact.push(await unmarked(exec, traits, table));
  return exact;
}

type Row = Result['rows'][number];

async function rowsOfEach(exec: Exec, texts: readonly string[]): Promise<Result['rows'][]> {
  return (await exec(texts.join(';\n'))).map(({ rows }) => rows);
}

function columnOf({ catalog }: Traits, row: Row): CatalogColumn {
  const extra = String(row.x);
  const generated = row.g === null ? '' : String(row.g);
  return {
    name: String(row.n),
    type: String(row.type),
    required: row.nullable === 'NO',
    default: generated === '' ? catalog.default(row.d === null ? null : String(row.d), extra) : undefined,
    extra,
    charset: row.charset === null ? null : String(row.charset),
    collation: row.collation === null ? null : String(row.collation),
    comment: String(row.comment),
    spatial: String(row.geo ?? ''),
    generated: catalog.expression(generated),
  };
}

function indexOf([name, rows]: readonly [string, readonly Row[]]): CatalogIndex {
  const odd = rows.find((row) => row.odd !== null);
  return {
    name,
    unique: rows.some((row) => Number(row.nu) === 0),
    odd: odd ? String(odd.odd) : null,
    columns: rows.map((row) => ({ name: String(row.c), descending: row.o === 'D' })),
  };
}

function foreignKeyOf([name, rows]: readonly [string, readonly Row[]]): CatalogForeignKey {
  const [first] = rows;
  // Taken for no foreign key it would be one that somebody dropped.
  if (first?.on_delete === null) throw hidden(String(first.t), name);
  return {
    name,
    columns: rows.map((row) => String(row.c)),
    table: first?.own === 0 ? null : String(first?.target),
    target: rows.map((row) => String(row.target_column)),
    onUpdate: String(first?.on_update),
    onDelete: String(first?.on_delete),
  };
}

/** MariaDB tells the rules of foreign keys only to who may do more than read. */
function hidden(table: string, name: string): SvcError {
  return new SvcError('permission_denied', `The database user may not see the foreign key "${name}" of "${table}".`, {
    why: 'The server shows foreign keys only to a user who has more than SELECT.',
    next: ['Grant it on the database, to look: SELECT and REFERENCES.'],
  });
}

function byTable(rows: readonly Row[] = []): Map<string, Row[]> {
  return new Map(groups(rows, 't'));
}

/** Rows that follow one another under one name. */
function groups(rows: readonly Row[], by = 'n'): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of rows) {
    const name = String(row[by]);
    const group = found.get(name);
    if (group) group.push(row);
    else found.set(name, [row]);
  }
  return found;
}

function queries({ catalog }: Traits, tables: readonly string[] | undefined): string[] {
  const asked = (column: string) =>
    tables ? `${column} IN (${tables.map(text).join(', ')})` : `${column} NOT LIKE '\\_svc\\_%'`;
  const ours = (alias: string) => `${alias}.table_schema = DATABASE() AND ${asked(`${alias}.table_name`)}`;
  return [
    `SELECT t.table_name AS t, t.engine AS engine, t.table_collation AS collation, t.create_options AS options
  FROM information_schema.tables t WHERE ${ours('t')} AND t.table_type = 'BASE TABLE' ORDER BY t.create_time, t.table_name`,
    `SELECT c.table_name AS t, c.column_name AS n, c.column_type AS type, c.is_nullable AS nullable, c.column_default AS d, c.extra AS x,
    c.character_set_name AS charset, c.collation_name AS collation, c.column_comment AS comment, c.generation_expression AS g,
    ${catalog.spatial} AS geo
  FROM information_schema.columns c WHERE ${ours('c')} ORDER BY c.table_name, c.ordinal_position`,
    `SELECT s.table_name AS t, s.index_name AS n, s.non_unique AS nu, s.column_name AS c, s.collation AS o,
    COALESCE(${catalog.oddIndex}, CASE WHEN s.index_type <> 'BTREE' THEN CONCAT('has the method ', s.index_type)
      WHEN s.sub_part IS NOT NULL THEN 'is on the beginning of values' END) AS odd
  FROM information_schema.statistics s WHERE ${ours('s')} ORDER BY s.table_name, s.index_name, s.seq_in_index`,
    `SELECT k.table_name AS t, k.constraint_name AS n, k.column_name AS c, k.referenced_table_schema = DATABASE() AS own,
    k.referenced_table_name AS target, k.referenced_column_name AS target_column, r.update_rule AS on_update, r.delete_rule AS on_delete
  FROM information_schema.key_column_usage k LEFT JOIN information_schema.referential_constraints r
  ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name AND r.table_name = k.table_name
  WHERE ${ours('k')} AND k.referenced_table_name IS NOT NULL ORDER BY k.table_name, k.constraint_name, k.ordinal_position`,
    `SELECT * FROM (${catalog.checks}) AS found WHERE ${asked('found.t')} ORDER BY found.t, found.n`,
  ];
}

/** Reads one table that has to be there. */
export async function readTable(exec: Exec, traits: Traits, name: string): Promise<CatalogTable> {
  const [table] = await readCatalog(exec, traits, [name]);
  if (table) return table;
  // The server says it in its own words.
  await rowsOf(exec, `SELECT 1 FROM ${`\`${name.replaceAll('`', '``')}\``} LIMIT 0`);
  throw new Error(`${name} is not a table`);
}

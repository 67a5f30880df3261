import { SvcError } from '../../../../core/errors.ts';
import { type ExecSql, type Result, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import type { Traits } from '../variant.ts';
import type { CatalogColumn, CatalogForeignKey, CatalogIndex, CatalogTable } from './catalog-table.ts';
import { columnsIn, withoutDatabase } from './show-create-table.ts';
import { withExactDefaults } from './supplementary-characters.ts';

/** Reads the tables of the session's database, in one round trip unless the catalog is inexact (`withExactDefaults`). */
export async function readCatalog(exec: ExecSql, traits: Traits, tables?: readonly string[]): Promise<CatalogTable[]> {
  if (tables?.length === 0) return [];
  const [found = [], columns, indexes, keys, rules = [], checks] = await rowsOfAll(
    exec,
    catalogQueries(traits, tables),
  );
  const columnsOf = byTable(columns);
  const indexesOf = byTable(indexes);
  const keysOf = byTable(keys);
  const rulesOf = new Map(rules.map((row) => [ruleKey(row.t, row.n), row]));
  const checksOf = byTable(checks);
  // The catalog ignores the case of names, and MariaDB's also accents.
  const wanted = tables && new Set(tables);
  const read = found.flatMap((row): CatalogTable[] => {
    const name = String(row.t);
    if (wanted && !wanted.has(name)) return [];
    const columns = (columnsOf.get(name) ?? []).map((column) => columnOf(traits, column));
    const names = columns.map((column) => column.name);
    return [
      {
        name,
        engine: String(row.engine),
        comment: String(row.comment ?? ''),
        collation: String(row.collation),
        options: String(row.options ?? '')
          .replace(/\bpartitioned\b/, '')
          .trim(),
        versioned: row.type === 'SYSTEM VERSIONED',
        columns,
        indexes: [...groupRows(indexesOf.get(name) ?? [])].map((index) => indexOf(traits, index, names)),
        foreignKeys: [...groupRows(keysOf.get(name) ?? [])].map(([key, rows]) =>
          foreignKeyOf(name, key, rows, rulesOf.get(ruleKey(name, key))),
        ),
        checks: (checksOf.get(name) ?? []).map((check) => ({
          name: String(check.n),
          expression: traits.catalog.decodeExpression(String(check.e)),
          ofColumn: Number(check.of_column) === 1,
          native: check.native === null ? null : String(check.native),
        })),
      },
    ];
  });
  const exact: CatalogTable[] = [];
  for (const table of read) exact.push(await withExactDefaults(exec, traits, table));
  return exact;
}

type Row = Result['rows'][number];

async function rowsOfAll(exec: ExecSql, texts: readonly string[]): Promise<Result['rows'][]> {
  return (await exec(texts.join(';\n'))).map(({ rows }) => rows);
}

function columnOf({ catalog }: Traits, row: Row): CatalogColumn {
  const extra = String(row.x);
  const generated = row.g === null ? '' : String(row.g);
  const value = row.d === null ? null : String(row.d);
  // With the name of its database, a sequence would be another one elsewhere.
  const own = value === null || !row.db ? value : withoutDatabase(value, String(row.db));
  return {
    name: String(row.n),
    type: String(row.type),
    required: row.nullable === 'NO',
    default: generated === '' ? catalog.parseDefault(own, extra) : undefined,
    extra,
    charset: row.charset === null ? null : String(row.charset),
    collation: row.collation === null ? null : String(row.collation),
    comment: String(row.comment),
    spatial: String(row.geo ?? ''),
    generated: catalog.decodeExpression(generated),
  };
}

/** `rows` has one row for each column or expression. */
export function indexOf(
  { catalog }: Traits,
  [name, rows]: readonly [string, readonly Row[]],
  columns: readonly string[],
): CatalogIndex {
  const [first] = rows;
  const unique = rows.some((row) => Number(row.nu) === 0);
  const hidden = Number(first?.hidden) === 1 ? catalog.hiddenIndex : '';
  const comment = String(first?.comment ?? '');
  const kind = /^(FULLTEXT|SPATIAL)$/.test(String(first?.kind)) ? `${first?.kind} ` : '';
  const parts = rows.map((row) => {
    if (row.e !== null) return `(${catalog.decodeExpression(String(row.e))})${row.o === 'D' ? ' DESC' : ''}`;
    const length = row.part === null || kind !== '' ? '' : `(${row.part})`;
    return `${quoteIdentifier(String(row.c))}${length}${row.o === 'D' ? ' DESC' : ''}`;
  });
  const isPlain =
    first?.kind === 'BTREE' &&
    hidden === '' &&
    comment === '' &&
    rows.every((row) => row.e === null && row.part === null);
  const suffix = [...(comment === '' ? [] : [`COMMENT ${quoteLiteral(comment)}`]), ...(hidden === '' ? [] : [hidden])];
  const native = [`${kind}(${parts.join(',')})`, ...suffix].join(' ');
  const read = rows.flatMap((row) =>
    row.e === null
      ? [{ name: String(row.c), descending: row.o === 'D' }]
      : columnsIn(String(row.e), columns).map((column) => ({ name: column, descending: false })),
  );
  return { name, unique, native: isPlain ? null : native, columns: read };
}

const ruleKey = (table: unknown, key: unknown): string => JSON.stringify([String(table), String(key)]);

function foreignKeyOf(table: string, name: string, rows: readonly Row[], rule: Row | undefined): CatalogForeignKey {
  const [first] = rows;
  // Without this error the foreign key would look dropped.
  if (!rule) throw hiddenForeignKey(table, name);
  return {
    name,
    columns: rows.map((row) => String(row.c)),
    table: first?.in_database === 0 ? null : String(first?.target),
    target: rows.map((row) => String(row.target_column)),
    onUpdate: String(rule.on_update),
    onDelete: String(rule.on_delete),
  };
}

/** MariaDB shows the actions of foreign keys only to a user with more privileges than SELECT. */
function hiddenForeignKey(table: string, name: string): SvcError {
  return new SvcError('permission_denied', `The database user cannot see the foreign key "${name}" of "${table}".`, {
    why: 'The server shows foreign keys only to a user who has more privileges than SELECT.',
    next: ['Grant SELECT and REFERENCES on the database.'],
  });
}

function byTable(rows: readonly Row[] = []): Map<string, Row[]> {
  return new Map(groupRows(rows, 't'));
}

/** Rows by the value of a column, in order. */
function groupRows(rows: readonly Row[], by = 'n'): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of rows) {
    const name = String(row[by]);
    const group = found.get(name);
    if (group) group.push(row);
    else found.set(name, [row]);
  }
  return found;
}

function catalogQueries({ catalog }: Traits, tables: readonly string[] | undefined): string[] {
  const isWanted = (column: string) =>
    tables ? `${column} IN (${tables.map(quoteLiteral).join(', ')})` : `${column} NOT LIKE '\\_svc\\_%'`;
  const inDatabase = (alias: string) => `${alias}.table_schema = DATABASE() AND ${isWanted(`${alias}.table_name`)}`;
  return [
    `SELECT t.table_name AS t, t.engine AS engine, t.table_collation AS collation, t.create_options AS options, t.table_type AS type, t.table_comment AS comment
  FROM information_schema.tables t WHERE ${inDatabase('t')} AND ${catalog.isTable} ORDER BY t.create_time, t.table_name`,
    `SELECT c.table_name AS t, c.column_name AS n, c.column_type AS type, c.is_nullable AS nullable, c.column_default AS d, c.extra AS x,
    c.character_set_name AS charset, c.collation_name AS collation, c.column_comment AS comment, c.generation_expression AS g,
    ${catalog.spatialAttribute} AS geo, ${catalog.databaseInDefault} AS db
  FROM information_schema.columns c WHERE ${inDatabase('c')} ORDER BY c.table_name, c.ordinal_position`,
    `SELECT s.table_name AS t, s.index_name AS n, s.non_unique AS nu, s.column_name AS c, s.collation AS o,
    s.sub_part AS part, s.index_type AS kind, s.index_comment AS comment, ${catalog.indexExpression} AS e, ${catalog.isHiddenIndex} AS hidden
  FROM information_schema.statistics s WHERE ${inDatabase('s')} ORDER BY s.table_name, s.index_name, s.seq_in_index`,
    `SELECT k.table_name AS t, k.constraint_name AS n, k.column_name AS c, k.referenced_table_schema = DATABASE() AS in_database,
    k.referenced_table_name AS target, k.referenced_column_name AS target_column
  FROM information_schema.key_column_usage k
  WHERE ${inDatabase('k')} AND k.referenced_table_name IS NOT NULL ORDER BY k.table_name, k.constraint_name, k.ordinal_position`,
    // Not joined with the one above: a join of two views of the catalog reads the second again for each row of the first.
    `SELECT r.table_name AS t, r.constraint_name AS n, r.update_rule AS on_update, r.delete_rule AS on_delete
  FROM information_schema.referential_constraints r WHERE r.constraint_schema = DATABASE() AND ${isWanted('r.table_name')}`,
    `SELECT * FROM (${catalog.checksQuery}) AS found WHERE ${isWanted('found.t')} ORDER BY found.t, found.n`,
  ];
}

/** Throws the server's error if the table is missing. */
export async function readTable(exec: ExecSql, traits: Traits, name: string): Promise<CatalogTable> {
  const [table] = await readCatalog(exec, traits, [name]);
  if (table) return table;
  // The server's own error for a missing table.
  await rowsOf(exec, `SELECT 1 FROM ${quoteIdentifier(name)} LIMIT 0`);
  throw new Error(`${name} is not a table`);
}

import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';

export interface CatalogTable {
  readonly name: string;
  readonly unlogged: boolean;
  readonly partitioned: boolean;
  readonly columns: readonly CatalogColumn[];
  readonly constraints: readonly CatalogConstraint[];
  readonly indexes: readonly CatalogIndex[];
}

export interface CatalogColumn {
  readonly number: number;
  readonly name: string;
  readonly type: string;
  /** Whether every database has the type, or the type of the elements. */
  readonly builtIn: boolean;
  /** The declared number of array dimensions. */
  readonly dimensions: number;
  /** The labels of a native enum type. */
  readonly labels: readonly string[] | null;
  readonly required: boolean;
  readonly default: string | null;
  /** `a` always, `d` by default, empty for other columns. */
  readonly identity: string;
  readonly generated: string;
}

export interface CatalogConstraint {
  readonly name: string;
  /** `p` primary key, `u` unique, `f` foreign key, `c` check, `x` exclusion, `t` trigger. */
  readonly type: string;
  readonly columns: readonly number[];
  /** The referenced table and its columns; null for a table of another schema. */
  readonly table: string | null;
  readonly target: readonly string[] | null;
  readonly onUpdate: string;
  readonly onDelete: string;
  /** The property that svc cannot create; null for none. */
  readonly unsupported: string | null;
  readonly expression: string | null;
}

export interface CatalogIndex {
  readonly name: string;
  readonly unique: boolean;
  readonly valid: boolean;
  /** The property that svc cannot create; null for none. */
  readonly unsupported: string | null;
  readonly columns: readonly number[];
  /** Bit 1: descending, bit 2: nulls first. */
  readonly options: readonly number[];
}

/** Reads all tables of a schema, or those named, in one query. `schema` may be a temporary schema. */
export async function readCatalog(exec: ExecSql, schema: string, tables?: readonly string[]): Promise<CatalogTable[]> {
  if (tables?.length === 0) return [];
  const named = tables ? `AND c.relname IN (${tables.map(quoteLiteral).join(', ')})` : '';
  const rows = await rowsOf(exec, query(schema, named));
  return rows.map((row) => ({
    name: String(row.name),
    unlogged: row.persistence === 'u',
    partitioned: row.kind === 'p',
    columns: listOf<CatalogColumn>(row.columns),
    constraints: listOf<CatalogConstraint>(row.constraints),
    indexes: listOf<CatalogIndex>(row.indexes),
  }));
}

function listOf<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? (value as T[]) : [];
}

const query = (schema: string, named: string) => `
WITH rel AS MATERIALIZED (
  SELECT c.oid, c.relname, c.relkind, c.relpersistence FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = ${quoteLiteral(schema)} AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname !~ '^_svc_' ${named}
    AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e'))
SELECT r.relname AS name, r.relkind AS kind, r.relpersistence AS persistence, a.j AS columns, k.j AS constraints, x.j AS indexes FROM rel r
LEFT JOIN LATERAL (SELECT json_agg(json_build_object('number', a.attnum, 'name', a.attname,
    'type', format_type(a.atttypid, a.atttypmod), 'builtIn', t.typnamespace = 'pg_catalog'::regnamespace, 'dimensions', a.attndims, 'labels', CASE WHEN t.typtype = 'e' THEN
      (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid) END, 'required', a.attnotnull, 'default', pg_get_expr(d.adbin, d.adrelid),
    'identity', a.attidentity, 'generated', a.attgenerated) ORDER BY a.attnum) j
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped) a ON true
LEFT JOIN LATERAL (SELECT json_agg(json_build_object('name', c.conname, 'type', c.contype, 'columns', COALESCE(c.conkey, '{}'),
    'table', CASE WHEN f.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = r.oid) THEN f.relname END,
    'target', CASE WHEN c.contype = 'f' THEN (SELECT json_agg(t.attname ORDER BY u.n) FROM unnest(c.confkey) WITH ORDINALITY u(num, n)
      JOIN pg_attribute t ON t.attrelid = c.confrelid AND t.attnum = u.num) END,
    'onUpdate', c.confupdtype, 'onDelete', c.confdeltype,
    'unsupported', CASE WHEN NOT c.convalidated THEN 'is not validated' WHEN c.condeferrable THEN 'is deferrable'
      WHEN c.confmatchtype NOT IN (' ', 's') THEN 'is MATCH FULL' WHEN c.contype = 'c' AND c.connoinherit THEN 'is NO INHERIT'
      WHEN c.contype = 'f' AND to_jsonb(c) ->> 'confdelsetcols' IS NOT NULL THEN 'sets only some of its fields' END,
    'expression', CASE WHEN c.contype = 'c' THEN pg_get_expr(c.conbin, c.conrelid) END) ORDER BY c.conname) j
  FROM pg_constraint c LEFT JOIN pg_class f ON f.oid = c.confrelid WHERE c.conrelid = r.oid AND c.contype <> 'n') k ON true
LEFT JOIN LATERAL (SELECT json_agg(json_build_object('name', ic.relname, 'unique', i.indisunique, 'valid', i.indisvalid,
    'unsupported', CASE WHEN am.amname <> 'btree' THEN 'has the method ' || am.amname WHEN i.indexprs IS NOT NULL THEN 'is on an expression'
      WHEN i.indpred IS NOT NULL THEN 'is partial' WHEN i.indnatts > i.indnkeyatts THEN 'includes further columns'
      WHEN COALESCE((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) THEN 'treats nulls as equal'
      WHEN EXISTS (SELECT 1 FROM pg_opclass oc WHERE oc.oid = ANY (i.indclass::oid[]) AND NOT oc.opcdefault) THEN 'has an operator class'
      WHEN EXISTS (SELECT 1 FROM unnest(i.indkey::int2[], i.indcollation::oid[]) u(num, coll) JOIN pg_attribute a
        ON a.attrelid = i.indrelid AND a.attnum = u.num WHERE u.coll <> a.attcollation) THEN 'has its own collation' END,
    'columns', i.indkey::int2[], 'options', i.indoption::int2[]) ORDER BY ic.relname) j
  FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
  WHERE i.indrelid = r.oid AND NOT EXISTS (SELECT 1 FROM pg_constraint con WHERE con.conindid = i.indexrelid AND con.conrelid = i.indrelid
    AND con.contype IN ('p', 'u', 'x'))) x ON true
ORDER BY r.oid`;

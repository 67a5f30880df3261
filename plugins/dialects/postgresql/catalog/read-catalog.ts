import { isKeptName, KEPT_PREFIX } from '../../../../core/schema/names.ts';
import type { ExecSql } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { catalogRows, ofExtension } from './catalog-rows.ts';
import { modelName, NAMESPACES, relationName, type Schemas, type Scope } from './namespaces.ts';
import { collationName } from './operators-and-collations.ts';
import { IS_SERIAL } from './table-statements.ts';
import { isInherited, isUsableIn, USES, usedBy } from './uses.ts';

export interface CatalogTable {
  readonly name: string;
  readonly unlogged: boolean;
  /** `RANGE (at)` and others; null for a table that is not partitioned. */
  readonly partition: string | null;
  readonly comment: string | null;
  /** `fillfactor=80` and others. */
  readonly parameters: readonly string[];
  readonly columns: readonly CatalogColumn[];
  readonly constraints: readonly CatalogConstraint[];
  readonly indexes: readonly CatalogIndex[];
}

export interface CatalogColumn {
  readonly number: number;
  readonly name: string;
  readonly type: string;
  /** Whether every database has the type, or it is of an extension or an object that migrations create before the table. */
  readonly known: boolean;
  /** The declared number of array dimensions. */
  readonly dimensions: number;
  /** The labels of a native enum type. */
  readonly labels: readonly string[] | null;
  readonly required: boolean;
  readonly comment: string | null;
  readonly default: string | null;
  /** `a` always, `d` by default, empty for other columns. */
  readonly identity: string;
  /** `s` stored, `v` virtual, empty for other columns. */
  readonly generated: string;
  /** What the default or the expression uses that migrations do not create before it; null for none. */
  readonly uses: string | null;
  /** Another collation than that of the type, quoted; null for none. */
  readonly collation: string | null;
  /** The sequence that belongs to the column; null for none. */
  readonly sequence: CatalogSequence | null;
}

/** Numbers as text: a maximum has more digits than a double. */
export interface CatalogSequence {
  readonly type: string;
  readonly start: string;
  readonly increment: string;
  readonly min: string;
  readonly max: string;
  readonly cache: string;
  readonly cycle: boolean;
  /** Whether it is the one that the type `serial` makes. */
  readonly serial: boolean;
}

export interface CatalogConstraint {
  readonly name: string;
  /** `p` primary key, `u` unique, `f` foreign key, `c` check. */
  readonly type: string;
  /** 0 is the whole row. */
  readonly columns: readonly number[];
  /** The referenced table and its columns; null for a table of a schema that is not read. */
  readonly table: string | null;
  readonly target: readonly string[] | null;
  readonly onUpdate: string;
  readonly onDelete: string;
  /** The property that svc cannot create; null for none. */
  readonly unsupported: string | null;
  /** What a check uses that migrations do not create before it; null for none. */
  readonly uses: string | null;
  /** Its options in the language of the server; empty for none. */
  readonly options: string;
  readonly expression: string | null;
}

export interface CatalogIndex {
  readonly name: string;
  readonly unique: boolean;
  readonly valid: boolean;
  /** What it uses that migrations do not create before it; null for none. */
  readonly uses: string | null;
  /** Whether svc has words for it: a B-tree over columns. */
  readonly plain: boolean;
  /** The statement that creates it. */
  readonly definition: string;
  /** The columns of its key; of an index that is not plain, all that it reads, 0 for the whole row. */
  readonly columns: readonly number[];
  /** Bit 1: descending, bit 2: nulls first. */
  readonly options: readonly number[];
}

/** Reads all tables of the schemas, or those named, in one query. */
export async function readCatalog(exec: ExecSql, scope: Scope, tables?: readonly string[]): Promise<CatalogTable[]> {
  if (tables?.length === 0) return [];
  const named = tables ? `AND ${modelName('c.relname')} IN (${tables.map(quoteLiteral).join(', ')})` : '';
  const rows = await catalogRows(exec, query(scope, named));
  return rows.map((row) => {
    const columns = listOf<CatalogColumn>(row.columns);
    const kept = new Set(columns.filter(({ name }) => isKeptName(name)).map(({ number }) => number));
    const isVisible = (one: { readonly columns: readonly number[] }) => !one.columns.some((number) => kept.has(number));
    return {
      name: String(row.name),
      unlogged: row.persistence === 'u',
      partition: typeof row.partition === 'string' ? row.partition : null,
      comment: typeof row.comment === 'string' ? row.comment : null,
      parameters: listOf<string>(row.parameters),
      columns: columns.filter(({ number }) => !kept.has(number)),
      constraints: listOf<CatalogConstraint>(row.constraints).filter(isVisible),
      indexes: listOf<CatalogIndex>(row.indexes).filter(isVisible),
    };
  });
}

/** The tables and columns that are kept: by the name of each, the table of a column. */
export async function readKeptNames(exec: ExecSql, schemas: Schemas): Promise<ReadonlyMap<string, string | undefined>> {
  const rows = await catalogRows(
    exec,
    `WITH ${NAMESPACES(schemas)},
  tables AS (SELECT c.oid, ${modelName('c.relname')} AS name FROM pg_class c JOIN ns ON ns.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition)
  SELECT name, NULL AS "table" FROM tables WHERE name ~ '^${KEPT_PREFIX}'
  UNION ALL SELECT a.attname, t.name FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname ~ '^${KEPT_PREFIX}' AND NOT a.attisdropped`,
  );
  return new Map(rows.map(({ name, table }) => [String(name), typeof table === 'string' ? table : undefined]));
}

function listOf<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? (value as T[]) : [];
}

const query = (scope: Scope, named: string) => `
WITH RECURSIVE ${USES(scope)},
rel AS MATERIALIZED (
  SELECT c.oid, ${modelName('c.relname')} AS name, c.relkind, c.relpersistence, array_to_json(c.reloptions || (SELECT array_agg('toast.' || o) FROM pg_class t, unnest(t.reloptions) o WHERE t.oid = c.reltoastrelid)) AS parameters FROM pg_class c JOIN ns ON ns.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT ${isInherited('c')} AND c.relname !~ '^_svc_' ${named}
    AND NOT ${ofExtension('pg_class', 'c.oid')})
SELECT r.name, CASE r.relkind WHEN 'p' THEN pg_get_partkeydef(r.oid) END AS partition, r.relpersistence AS persistence, obj_description(r.oid, 'pg_class') AS comment, r.parameters, a.j AS columns, k.j AS constraints, x.j AS indexes FROM rel r
LEFT JOIN LATERAL (SELECT json_agg(json_build_object('number', a.attnum, 'name', a.attname,
    'type', format_type(a.atttypid, a.atttypmod), 'known', t.typnamespace = 'pg_catalog'::regnamespace OR ${isUsableIn('pg_type', 't.oid', 'a.attrelid')}, 'dimensions', a.attndims, 'labels', CASE WHEN t.typtype = 'e' THEN
      (SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid) END, 'required', a.attnotnull, 'comment', col_description(r.oid, a.attnum), 'default', pg_get_expr(d.adbin, d.adrelid),
    'identity', a.attidentity, 'generated', a.attgenerated,
    'uses', ${usedBy("'pg_attrdef'::regclass", 'd.oid', 'a.attrelid')},
    'collation', CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation AND ${isUsableIn('pg_collation', 'a.attcollation')} THEN ${collationName('a.attcollation')} END,
    'sequence', CASE WHEN a.attidentity <> '' OR d.oid IS NOT NULL THEN (SELECT json_build_object('type', format_type(s.seqtypid, -1), 'start', s.seqstart::text,
      'increment', s.seqincrement::text, 'min', s.seqmin::text, 'max', s.seqmax::text, 'cache', s.seqcache::text, 'cycle', s.seqcycle, 'serial', ${IS_SERIAL('s.seqrelid')})
      FROM pg_depend p JOIN pg_sequence s ON s.seqrelid = p.objid WHERE p.classid = 'pg_class'::regclass AND p.refclassid = 'pg_class'::regclass
      AND p.refobjid = r.oid AND p.refobjsubid = a.attnum AND p.deptype IN ('i', 'a') ORDER BY p.deptype DESC, EXISTS (SELECT 1 FROM pg_depend u
        WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass AND u.refobjid = s.seqrelid) DESC LIMIT 1) END) ORDER BY a.attnum) j
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped) a ON true
LEFT JOIN LATERAL (SELECT json_agg(json_build_object('name', c.conname, 'type', c.contype, 'columns', COALESCE(c.conkey, '{}'),
    'table', ${relationName('f')},
    'target', CASE WHEN c.contype = 'f' THEN (SELECT json_agg(t.attname ORDER BY u.n) FROM unnest(c.confkey) WITH ORDINALITY u(num, n)
      JOIN pg_attribute t ON t.attrelid = c.confrelid AND t.attnum = u.num) END,
    'onUpdate', c.confupdtype, 'onDelete', c.confdeltype,
    'unsupported', CASE WHEN c.contype = 'f' AND to_jsonb(c) ->> 'confdelsetcols' IS NOT NULL THEN 'sets only some of its fields' END,
    'uses', CASE WHEN c.contype = 'c' THEN ${usedBy("'pg_constraint'::regclass", 'c.oid')} END,
    'options', concat_ws(' ', CASE WHEN COALESCE((to_jsonb(ki) ->> 'indnullsnotdistinct')::boolean, false) THEN 'NULLS NOT DISTINCT' END,
      CASE WHEN ki.indnatts > ki.indnkeyatts THEN 'INCLUDE (' || (SELECT string_agg(quote_ident(t.attname), ', ' ORDER BY u.n)
        FROM unnest(ki.indkey::int2[]) WITH ORDINALITY u(num, n) JOIN pg_attribute t ON t.attrelid = r.oid AND t.attnum = u.num WHERE u.n > ki.indnkeyatts) || ')' END,
      CASE WHEN kc.reloptions IS NOT NULL THEN 'WITH (' || array_to_string(kc.reloptions, ', ') || ')' END,
      CASE WHEN c.confmatchtype = 'f' THEN 'MATCH FULL' END, CASE WHEN c.contype = 'c' AND c.connoinherit THEN 'NO INHERIT' END,
      CASE WHEN c.condeferrable THEN 'DEFERRABLE' END, CASE WHEN c.condeferred THEN 'INITIALLY DEFERRED' END,
      CASE WHEN to_jsonb(c) ->> 'conenforced' = 'false' THEN 'NOT ENFORCED' WHEN NOT c.convalidated THEN 'NOT VALID' END),
    'expression', CASE WHEN c.contype = 'c' THEN pg_get_expr(c.conbin, c.conrelid) END) ORDER BY c.conname) j
  FROM pg_constraint c LEFT JOIN pg_class f ON f.oid = c.confrelid LEFT JOIN pg_index ki ON c.contype IN ('p', 'u') AND ki.indexrelid = c.conindid
  LEFT JOIN pg_class kc ON kc.oid = ki.indexrelid WHERE c.conrelid = r.oid AND c.contype NOT IN ('n', 't', 'x') AND NOT (c.contype = 'f' AND c.conparentid <> 0)
    AND NOT (c.contype = 'f' AND f.relnamespace IN (SELECT oid FROM ns) AND (f.relispartition OR ${isInherited('f')}))) k ON true
LEFT JOIN LATERAL (SELECT json_agg(json_build_object('name', ic.relname, 'unique', i.indisunique, 'valid', i.indisvalid,
    'uses', ${usedBy("'pg_class'::regclass", 'i.indexrelid')},
    'plain', p.plain, 'definition', CASE WHEN NOT p.plain THEN pg_get_indexdef(i.indexrelid) ELSE '' END,
    'columns', CASE WHEN p.plain THEN to_json(i.indkey::int2[]) ELSE (SELECT COALESCE(json_agg(DISTINCT e.refobjsubid), '[0]') FROM pg_depend e
      WHERE e.classid = 'pg_class'::regclass AND e.objid = i.indexrelid AND e.refclassid = 'pg_class'::regclass AND e.refobjid = i.indrelid AND e.refobjsubid > 0) END,
    'options', i.indoption::int2[]) ORDER BY ic.relname) j
  FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
  CROSS JOIN LATERAL (SELECT am.amname = 'btree' AND i.indexprs IS NULL AND i.indpred IS NULL AND i.indnatts = i.indnkeyatts AND ic.reloptions IS NULL
    AND NOT COALESCE((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
    AND NOT EXISTS (SELECT 1 FROM unnest(i.indoption::int2[]) o WHERE o NOT IN (0, 3))
    AND NOT EXISTS (SELECT 1 FROM pg_opclass oc WHERE oc.oid = ANY (i.indclass::oid[]) AND NOT oc.opcdefault)
    AND NOT EXISTS (SELECT 1 FROM unnest(i.indkey::int2[], i.indcollation::oid[]) u(num, coll) JOIN pg_attribute a
      ON a.attrelid = i.indrelid AND a.attnum = u.num WHERE u.coll <> a.attcollation) AS plain) p
  WHERE i.indrelid = r.oid AND NOT EXISTS (SELECT 1 FROM pg_constraint con WHERE con.conindid = i.indexrelid AND con.conrelid = i.indrelid
    AND con.contype IN ('p', 'u', 'x'))) x ON true
ORDER BY r.oid`;

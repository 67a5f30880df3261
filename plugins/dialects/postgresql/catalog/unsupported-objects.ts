import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';

/** Objects that a model does not describe: views, triggers, sequences and others. */
export async function readUnsupportedObjects(exec: ExecSql, schema: string): Promise<UnsupportedObject[]> {
  const rows = await rowsOf(exec, query(schema));
  return rows.map(({ collection, field, what }) => ({
    collection: String(collection),
    ...(typeof field === 'string' && { field }),
    what: String(what),
  }));
}

/** Whether svc reads a column with a sequence as an identity. */
const IS_IDENTITY = "a.attnotnull AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)";

const query = (schema: string) => `
WITH own AS MATERIALIZED (
  SELECT c.oid, c.relname, c.relkind, c.relrowsecurity, c.relreplident FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = ${quoteLiteral(schema)} AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relname !~ '^_svc_'
    AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')),
rel AS (SELECT * FROM own WHERE relkind IN ('r', 'p')),
sequences AS (SELECT rel, num, seq, count(*) OVER (PARTITION BY seq) AS users FROM (
  SELECT ad.adrelid AS rel, ad.adnum AS num, d.refobjid AS seq FROM pg_depend d JOIN pg_attrdef ad ON ad.oid = d.objid
  WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass
  UNION SELECT d.refobjid, d.refobjsubid, d.objid FROM pg_depend d
  WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'i') n)
SELECT collection, field, what FROM (
  SELECT o.relname::text AS collection, NULL::text AS field,
    'is a ' || CASE o.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END || ', which svc cannot create' AS what
  FROM own o WHERE o.relkind IN ('v', 'm', 'f')
  UNION ALL SELECT c.relname, NULL, 'belongs to the extension ' || x.extname || ', which svc cannot create'
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_depend e ON e.classid = 'pg_class'::regclass AND e.objid = c.oid
    AND e.deptype = 'e' JOIN pg_extension x ON x.oid = e.refobjid
  WHERE n.nspname = ${quoteLiteral(schema)} AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  UNION ALL SELECT r.relname, NULL, 'has the trigger ' || quote_ident(t.tgname) || ', which svc cannot create'
  FROM rel r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal AND t.tgconstraint = 0
  UNION ALL SELECT r.relname, NULL, 'has the rule ' || quote_ident(w.rulename) || ', which svc cannot create'
  FROM rel r JOIN pg_rewrite w ON w.ev_class = r.oid
  UNION ALL SELECT r.relname, NULL, 'has the policy ' || quote_ident(p.polname) || ', which svc cannot create'
  FROM rel r JOIN pg_policy p ON p.polrelid = r.oid
  UNION ALL SELECT r.relname, NULL, 'has row level security, which svc does not set' FROM rel r WHERE r.relrowsecurity
  UNION ALL SELECT r.relname, NULL, 'inherits from ' || i.inhparent::regclass || '; svc creates tables without inheritance'
  FROM rel r JOIN pg_inherits i ON i.inhrelid = r.oid
  UNION ALL SELECT r.relname, NULL, 'has a comment on ' || CASE WHEN k.oid IS NULL THEN 'the index ' || quote_ident(c.relname)
    ELSE 'the constraint ' || quote_ident(k.conname) END || ', which svc does not write'
  FROM rel r JOIN pg_description d ON d.classoid IN ('pg_class'::regclass, 'pg_constraint'::regclass)
  LEFT JOIN pg_constraint k ON d.classoid = 'pg_constraint'::regclass AND k.oid = d.objoid AND k.conrelid = r.oid
  LEFT JOIN pg_index i ON d.classoid = 'pg_class'::regclass AND i.indexrelid = d.objoid AND i.indrelid = r.oid LEFT JOIN pg_class c ON c.oid = i.indexrelid
  WHERE k.oid IS NOT NULL OR c.oid IS NOT NULL
  UNION ALL SELECT r.relname, NULL, 'is clustered on the index ' || quote_ident(c.relname) || ', which svc does not set'
  FROM rel r JOIN pg_index i ON i.indrelid = r.oid AND i.indisclustered JOIN pg_class c ON c.oid = i.indexrelid
  UNION ALL SELECT r.relname, NULL, 'has another replica identity than its key, which svc does not set' FROM rel r WHERE r.relreplident <> 'd'
  UNION ALL SELECT r.relname, NULL, 'has the partition ' || i.inhrelid::regclass || ', which svc does not create'
  FROM rel r JOIN pg_inherits i ON i.inhparent = r.oid JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relispartition
  UNION ALL SELECT r.relname, NULL, 'has the statistics ' || quote_ident(s.stxname) || ', which svc does not create'
  FROM rel r JOIN pg_statistic_ext s ON s.stxrelid = r.oid
  UNION ALL SELECT r.relname, a.attname, 'has storage settings of its own, which svc does not set'
  FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
  WHERE a.attstorage <> t.typstorage OR COALESCE(a.attstattarget, -1) <> -1 OR COALESCE(to_jsonb(a) ->> 'attcompression', '') <> '' OR EXISTS (SELECT 1 FROM unnest(a.attoptions) o WHERE o LIKE 'n_distinct%')
  UNION ALL SELECT r.relname, a.attname, 'has its own collation, which svc does not set'
  FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
  WHERE a.attcollation >= 16384 AND a.attcollation <> t.typcollation
  UNION ALL SELECT r.relname, a.attname, 'takes its values from the sequence ' || s.seqrelid::regclass || ', which svc replaces by an identity that starts at 1'
  FROM rel r JOIN sequences n ON n.rel = r.oid JOIN pg_sequence s ON s.seqrelid = n.seq
  JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = n.num WHERE ${IS_IDENTITY} AND a.attidentity = '' AND n.users = 1 AND (s.seqtypid <> a.atttypid
    OR s.seqstart <> 1 OR s.seqincrement <> 1 OR s.seqmin <> 1 OR s.seqcache <> 1 OR s.seqcycle OR s.seqmax <> CASE s.seqtypid WHEN 'int2'::regtype
    THEN 32767 WHEN 'int4'::regtype THEN 2147483647 ELSE 9223372036854775807 END OR NOT EXISTS (SELECT 1 FROM pg_depend o WHERE o.classid = 'pg_class'::regclass
    AND o.objid = s.seqrelid AND o.deptype = 'a' AND o.refobjid = r.oid AND o.refobjsubid = a.attnum))
  UNION ALL SELECT r.relname, a.attname, 'takes its values from the sequence ' || s.seqrelid::regclass
    || ', which other fields use too; svc creates one for each'
  FROM rel r JOIN sequences n ON n.rel = r.oid JOIN pg_sequence s ON s.seqrelid = n.seq
  JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = n.num WHERE ${IS_IDENTITY} AND n.users > 1
  UNION ALL SELECT r.relname, a.attname, 'takes its values from the sequence ' || n.seq::regclass || ', which svc does not create'
  FROM rel r JOIN sequences n ON n.rel = r.oid JOIN pg_class c ON c.oid = n.seq AND c.relkind = 'S'
  JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = n.num AND a.atthasdef WHERE NOT (${IS_IDENTITY})
) found ORDER BY collection, field NULLS FIRST, what`;

import { isInherited, isUsableIn, usedBy } from './uses.ts';

/*
 * SQL for statements about tables that the definition of a table does not have. `ns` has the schemas and `rel` their relations, each with its path.
 */

/**
 * Whether the sequence of the column `a` is the one that the type `serial` makes: owned by the column, which takes its values from
 * it, with the options of the type, and used by no other table that migrations create at the same time. The types are numbers: a
 * temporary table may be named regtype. Without OFFSET, a server without statistics reads the defaults of all tables for each one.
 */
export const IS_SERIAL = (sequence: string): string =>
  `(a.attnotnull AND a.attislocal AND a.atttypid IN (20, 21, 23) AND EXISTS (SELECT FROM pg_attrdef f JOIN pg_sequence q ON q.seqrelid = ${sequence}
    JOIN pg_depend u ON u.classid = 'pg_class'::regclass AND u.objid = q.seqrelid AND u.deptype = 'a' AND u.refclassid = 'pg_class'::regclass AND u.refobjid = a.attrelid AND u.refobjsubid = a.attnum
    WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum AND pg_get_expr(f.adbin, f.adrelid) ~ '^nextval\\(''.*''::regclass\\)$'
      AND EXISTS (SELECT FROM pg_depend v WHERE v.classid = 'pg_attrdef'::regclass AND v.objid = f.oid AND v.refclassid = 'pg_class'::regclass AND v.refobjid = q.seqrelid OFFSET 0)
      AND q.seqtypid = a.atttypid AND q.seqstart = 1 AND q.seqincrement = 1 AND q.seqmin = 1 AND q.seqcache = 1 AND NOT q.seqcycle
      AND q.seqmax = CASE q.seqtypid WHEN 21 THEN 32767 WHEN 23 THEN 2147483647 ELSE 9223372036854775807 END)
    AND NOT EXISTS (SELECT FROM pg_class t WHERE t.oid = a.attrelid AND t.relispartition)
    AND NOT EXISTS (SELECT FROM (SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_class'::regclass AND refobjid = ${sequence} OFFSET 0) v JOIN pg_attrdef w ON w.oid = v.objid WHERE v.classid = 'pg_attrdef'::regclass
      AND w.adrelid <> a.attrelid AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = w.adrelid)))`;

/** Whether a table is created by an object: a partition, or one that inherits. */
const IS_OWN = `(c.relispartition OR ${isInherited('c')})`;

const ALTER = "CASE c.relkind WHEN 'm' THEN 'ALTER MATERIALIZED VIEW ' ELSE 'ALTER TABLE ' END || c.path";
// The tables that inherit from it have statistics of their own, and take over how a column is stored.
const COLUMN_ONLY =
  "CASE a.relkind WHEN 'm' THEN 'ALTER MATERIALIZED VIEW ' ELSE 'ALTER TABLE ONLY ' END || a.path || ' ALTER COLUMN ' || quote_ident(a.attname)";
const COLUMN = COLUMN_ONLY.replace('ONLY ', '');
/** The names and values of parameters, as they are written in parentheses. */
const parameters = (options: string): string => `(SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(${options}) o)`;

const LOCAL = 'NOT EXISTS (SELECT FROM pg_inherits n WHERE n.inhrelid = x.indexrelid)';

/**
 * Common table expressions: `own` has the tables and materialized views, and `line` a row for each statement. A foreign key to a
 * table that is an object is a setting, because two of them may refer to each other.
 */
export const TABLE_STATEMENTS = `
own AS MATERIALIZED (SELECT c.*, ${IS_OWN} AS is_own FROM rel c WHERE c.relkind IN ('r', 'p', 'm')),
col AS MATERIALIZED (SELECT c.oid AS rel, c.path, c.relkind, c.is_own, a.attnum, a.attname, a.attnotnull, a.attgenerated, a.attislocal, a.attinhcount, a.attstorage, t.typstorage, a.attoptions,
    COALESCE(a.attstattarget, -1) AS target, COALESCE(to_jsonb(a) ->> 'attcompression', '') AS compression, p.attstorage AS parent_storage, COALESCE(to_jsonb(p) ->> 'attcompression', '') AS parent_compression,
    p.attnotnull AS parent_required, p.attrelid AS parent, p.attnum AS parent_num
  FROM own c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN LATERAL (SELECT p.* FROM pg_inherits i JOIN pg_attribute p ON p.attrelid = i.inhparent AND p.attname = a.attname AND NOT p.attisdropped WHERE i.inhrelid = c.oid ORDER BY i.inhseqno LIMIT 1) p ON a.attinhcount > 0),
def AS MATERIALIZED (SELECT d.oid, c.rel, c.attname, c.path, c.relkind, pg_get_expr(d.adbin, d.adrelid) AS value, pg_get_expr(e.adbin, e.adrelid) AS parent_value
  FROM col c LEFT JOIN pg_attrdef d ON d.adrelid = c.rel AND d.adnum = c.attnum LEFT JOIN pg_attrdef e ON e.adrelid = c.parent AND e.adnum = c.parent_num
  WHERE c.is_own AND c.attinhcount > 0 AND c.attgenerated = ''),
sequenced AS MATERIALIZED (SELECT c.oid AS rel, c.relname, c.path, q.* FROM own c CROSS JOIN LATERAL (SELECT a.attname, s.oid AS seq, s.relname AS seqname, NOT (o.deptype = 'i' OR ${IS_SERIAL('s.oid')}) AS is_object
  FROM pg_depend o JOIN pg_class s ON s.oid = o.objid AND s.relkind = 'S' JOIN pg_attribute a ON a.attrelid = o.refobjid AND a.attnum = o.refobjsubid AND a.attnum > 0
  WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass AND o.refobjid = c.oid AND o.deptype IN ('a', 'i') OFFSET 0) q),
idx AS MATERIALIZED (SELECT x.*, c.is_own AS of_own FROM own c JOIN pg_index x ON x.indrelid = c.oid WHERE x.indisvalid AND ${usedBy("'pg_class'::regclass", 'x.indexrelid')} IS NULL),
con AS MATERIALIZED (SELECT k.*, k.contype = 'f' AND k.confrelid <> k.conrelid AND k.conparentid = 0 AND EXISTS (SELECT FROM own f WHERE f.oid = k.confrelid AND f.is_own) AS is_late FROM own c JOIN pg_constraint k ON k.conrelid = c.oid WHERE ${usedBy("'pg_constraint'::regclass", 'k.oid')} IS NULL),
line AS (
  SELECT a.rel, 1 AS part, ${COLUMN_ONLY} || COALESCE(' SET DEFAULT ' || a.value, ' DROP DEFAULT') AS text
  FROM def a WHERE a.value IS DISTINCT FROM a.parent_value AND ${usedBy("'pg_attrdef'::regclass", 'a.oid')} IS NULL
  UNION ALL SELECT c.rel, 1, 'ALTER TABLE ' || c.path || ' ALTER COLUMN ' || quote_ident(c.attname) || ' SET NOT NULL' FROM col c WHERE c.is_own AND c.attnotnull AND NOT c.parent_required
  UNION ALL SELECT c.oid, 2, ${ALTER} || ' SET (' || ${parameters("c.reloptions || (SELECT array_agg('toast.' || o) FROM pg_class t, unnest(t.reloptions) o WHERE t.oid = c.reltoastrelid)")} || ')'
  FROM own c WHERE c.is_own AND (c.reloptions IS NOT NULL OR EXISTS (SELECT FROM pg_class t WHERE t.oid = c.reltoastrelid AND t.reloptions IS NOT NULL))
  UNION ALL SELECT c.oid, CASE WHEN k.is_late THEN 10 WHEN k.contype = 'f' THEN 4 ELSE 3 END, ${ALTER} || ' ADD CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid)
  FROM own c JOIN con k ON k.conrelid = c.oid WHERE (c.is_own OR k.is_late) AND k.contype IN ('p', 'u', 'c', 'f') AND k.conislocal AND (k.coninhcount = 0 OR k.contype = 'c' AND NOT c.relispartition) AND k.conparentid = 0
  UNION ALL SELECT c.oid, 5, pg_get_indexdef(x.indexrelid, 0, true)
  FROM own c JOIN idx x ON x.indrelid = c.oid WHERE x.of_own AND x.indisvalid AND ${LOCAL} AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = x.indrelid AND k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x'))
  UNION ALL SELECT a.rel, 6, ${COLUMN} || ' SET STORAGE ' || CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END
  FROM col a WHERE a.attstorage <> COALESCE(a.parent_storage, a.typstorage)
  UNION ALL SELECT a.rel, 6, ${COLUMN} || ' SET COMPRESSION ' || CASE a.compression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' ELSE 'default' END
  FROM col a WHERE a.compression <> a.parent_compression
  UNION ALL SELECT a.rel, 6, ${COLUMN_ONLY} || ' SET STATISTICS ' || a.target FROM col a WHERE a.target <> -1
  UNION ALL SELECT a.rel, 6, ${COLUMN_ONLY} || ' SET (' || o.text || ')'
  FROM col a CROSS JOIN LATERAL (SELECT string_agg(o, ', ' ORDER BY o) AS text FROM unnest(a.attoptions) o WHERE o LIKE 'n\\_distinct%') o WHERE o.text IS NOT NULL
  UNION ALL SELECT c.oid, 7, 'ALTER INDEX ' || c.schema_path || quote_ident(i.relname) || ' ALTER COLUMN ' || a.attnum || ' SET STATISTICS ' || a.attstattarget
  FROM own c JOIN idx x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_attribute a ON a.attrelid = i.oid AND COALESCE(a.attstattarget, -1) <> -1
  UNION ALL SELECT c.oid, 7, ${ALTER} || ' CLUSTER ON ' || quote_ident(i.relname) FROM own c JOIN idx x ON x.indrelid = c.oid AND x.indisclustered JOIN pg_class i ON i.oid = x.indexrelid
  UNION ALL SELECT c.oid, 7, ${ALTER} || ' REPLICA IDENTITY ' || CASE c.relreplident WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE 'USING INDEX ' || (SELECT quote_ident(i.relname)
      FROM idx x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid AND x.indisreplident) END
  FROM own c WHERE c.relreplident IN ('f', 'n') OR c.relreplident = 'i' AND EXISTS (SELECT FROM idx x WHERE x.indrelid = c.oid AND x.indisreplident)
  UNION ALL SELECT c.oid, 7, ${ALTER} || ' OF ' || format_type(c.reloftype, NULL) FROM own c WHERE c.reloftype <> 0 AND ${isUsableIn('pg_type', 'c.reloftype')}
  UNION ALL SELECT c.oid, 8, 'COMMENT ON TABLE ' || c.path || ' IS ' || quote_literal(d.description)
  FROM own c JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = c.oid AND d.objsubid = 0 WHERE c.is_own
  UNION ALL SELECT c.rel, 8, 'COMMENT ON COLUMN ' || c.path || '.' || quote_ident(c.attname) || ' IS ' || quote_literal(d.description)
  FROM col c JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = c.rel AND d.objsubid = c.attnum WHERE c.is_own
  UNION ALL SELECT c.oid, 9, 'COMMENT ON INDEX ' || c.schema_path || quote_ident(i.relname) || ' IS ' || quote_literal(d.description)
  FROM own c JOIN idx x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = i.oid AND d.objsubid = 0
  UNION ALL SELECT c.oid, CASE WHEN k.is_late THEN 11 ELSE 9 END, 'COMMENT ON CONSTRAINT ' || quote_ident(k.conname) || ' ON ' || c.path || ' IS ' || quote_literal(d.description)
  FROM own c JOIN con k ON k.conrelid = c.oid AND k.contype NOT IN ('x', 't') JOIN pg_description d ON d.classoid = 'pg_constraint'::regclass AND d.objoid = k.oid
  UNION ALL SELECT q.rel, 7, 'ALTER SEQUENCE ' || q.seq::regclass || ' OWNED BY ' || q.path || '.' || quote_ident(q.attname) FROM sequenced q WHERE q.is_object
  UNION ALL SELECT q.rel, 9, 'COMMENT ON SEQUENCE ' || q.seq::regclass || ' IS ' || quote_literal(d.description)
  FROM sequenced q JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = q.seq AND d.objsubid = 0 WHERE NOT q.is_object AND q.seqname = q.relname || '_' || q.attname || '_seq'),
list AS (SELECT rel, string_agg(text, E';\\n\\n' ORDER BY part, text COLLATE "C") FILTER (WHERE part < 10) AS text, string_agg(text, E';\\n\\n' ORDER BY part, text COLLATE "C") AS every,
  string_agg(text, E';\\n\\n' ORDER BY part, text COLLATE "C") FILTER (WHERE part >= 10) AS late FROM line GROUP BY rel)`;

const CREATE = "'CREATE ' || CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END || 'TABLE ' || c.path";

const SEQUENCE =
  "' START WITH ' || q.seqstart || ' INCREMENT BY ' || q.seqincrement || ' MINVALUE ' || q.seqmin || ' MAXVALUE ' || q.seqmax || ' CACHE ' || q.seqcache";

/** SQL for the options of the identity `q` of the column `a`; empty for those of its type. */
const IDENTITY_OPTIONS = `CASE WHEN q.seqstart = 1 AND q.seqincrement = 1 AND q.seqmin = 1 AND q.seqcache = 1 AND NOT q.seqcycle
          AND q.seqmax = CASE a.atttypid WHEN 'int2'::regtype THEN 32767 WHEN 'int4'::regtype THEN 2147483647 ELSE 9223372036854775807 END THEN ''
          ELSE ' (' || ltrim(${SEQUENCE}) || CASE WHEN q.seqcycle THEN ' CYCLE' ELSE '' END || ')' END`;

/** Rows of objects: kind, name, definition, no comment, and the row of the catalog. */
export const TABLE_OBJECTS = `
SELECT 'settings', c.name, s.text, NULL, NULL, 'pg_namespace'::regclass, NULL FROM own c JOIN list l ON l.rel = c.oid
  CROSS JOIN LATERAL (SELECT CASE WHEN c.is_own THEN l.late ELSE l.every END AS text) s WHERE s.text IS NOT NULL AND c.relkind <> 'm'
UNION ALL SELECT 'partition', c.name, ${CREATE} || ' PARTITION OF ' || p.oid::regclass || ' ' || pg_get_expr(c.relpartbound, c.oid)
  || COALESCE(' PARTITION BY ' || CASE c.relkind WHEN 'p' THEN pg_get_partkeydef(c.oid) END, '') || COALESCE(E';\\n\\n' || l.text, ''), NULL, NULL, 'pg_class'::regclass, c.oid
FROM own c JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent LEFT JOIN list l ON l.rel = c.oid WHERE c.relispartition
UNION ALL SELECT 'inherited_table', c.name, ${CREATE} || COALESCE((SELECT E' (\\n  ' || string_agg(quote_ident(a.attname) || ' ' || CASE WHEN s.is_serial THEN replace(replace(format_type(a.atttypid, NULL), 'integer', 'int'), 'int', 'serial')
    ELSE format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END
      || CASE WHEN a.attidentity <> '' THEN CASE a.attidentity WHEN 'a' THEN ' GENERATED ALWAYS' ELSE ' GENERATED BY DEFAULT' END || ' AS IDENTITY' || ${IDENTITY_OPTIONS}
        WHEN ${usedBy("'pg_attrdef'::regclass", 'd.oid')} IS NOT NULL THEN '' WHEN a.attgenerated <> '' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ')' || CASE a.attgenerated WHEN 's' THEN ' STORED' ELSE ' VIRTUAL' END
        ELSE COALESCE(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') END END || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END, E',\\n  ' ORDER BY a.attnum) || E'\\n)'
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    LEFT JOIN pg_depend o ON o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass AND o.refobjid = a.attrelid AND o.refobjsubid = a.attnum AND o.deptype = 'i' LEFT JOIN pg_sequence q ON q.seqrelid = o.objid
    CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pg_depend z WHERE z.classid = 'pg_class'::regclass AND z.refclassid = 'pg_class'::regclass AND z.refobjid = a.attrelid AND z.refobjsubid = a.attnum AND z.deptype = 'a' AND ${IS_SERIAL('z.objid')}) AS is_serial) s
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attislocal), ' ()')
  || ' INHERITS (' || (SELECT string_agg(p.oid::regclass::text, ', ' ORDER BY i.inhseqno) FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid = c.oid) || ')' || COALESCE(E';\\n\\n' || l.text, ''), NULL, NULL, 'pg_class'::regclass, c.oid
FROM own c LEFT JOIN list l ON l.rel = c.oid WHERE c.is_own AND NOT c.relispartition`;

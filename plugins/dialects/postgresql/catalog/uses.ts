import { NAMESPACES, type Scope } from './namespaces.ts';

/*
 * SQL for what the parts of the schemas use that the files do not create: something in another schema, or a kind that is no
 * object of svc, and whatever uses that. `node` has the objects of the schema, by the rows of the catalog that they consist of,
 * and `edge` what these refer to.
 */

/** Whether a table inherits from others of the schemas only: then it is an object. */
export const isInherited = (
  table: string,
): string => `(${table}.relkind = 'r' AND EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = ${table}.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid = ${table}.oid AND p.relnamespace NOT IN (SELECT oid FROM spaces)))`;

/** The class and the object that a row of pg_depend refers to: the elements of an array, the table of a row type. */
const REFERRED = `SELECT CASE WHEN t.typrelid <> 0 AND b.relkind <> 'c' THEN 'pg_class'::regclass ELSE e.refclassid END AS class, CASE WHEN t.oid IS NULL THEN e.refobjid WHEN t.typrelid <> 0 AND b.relkind <> 'c' THEN t.typrelid ELSE t.oid END AS oid
    FROM (SELECT) one LEFT JOIN pg_type f ON e.refclassid = 'pg_type'::regclass AND f.oid = e.refobjid
    LEFT JOIN pg_type t ON t.oid = CASE WHEN f.typelem <> 0 AND f.typlen = -1 THEN f.typelem ELSE f.oid END LEFT JOIN pg_class b ON b.oid = t.typrelid`;

/** Whether the files create what `r` is, or every database has it. */
const IS_CREATED = `(r.oid < 16384 OR CASE r.class
    WHEN 'pg_class'::regclass THEN EXISTS (SELECT FROM pg_class c WHERE c.oid = r.oid AND (c.relkind IN ('i', 'I') OR c.relkind <> 'f' AND c.relnamespace IN (SELECT oid FROM spaces)))
    WHEN 'pg_proc'::regclass THEN EXISTS (SELECT FROM pg_proc p JOIN spaces s ON s.oid = p.pronamespace WHERE p.oid = r.oid)
    WHEN 'pg_type'::regclass THEN EXISTS (SELECT FROM pg_type t JOIN spaces s ON s.oid = t.typnamespace WHERE t.oid = r.oid AND t.typtype <> 'b' AND t.typisdefined)
    WHEN 'pg_operator'::regclass THEN EXISTS (SELECT FROM pg_operator o JOIN spaces s ON s.oid = o.oprnamespace WHERE o.oid = r.oid AND o.oprcode <> 0)
    WHEN 'pg_collation'::regclass THEN EXISTS (SELECT FROM pg_collation l JOIN spaces s ON s.oid = l.collnamespace WHERE l.oid = r.oid)
    WHEN 'pg_ts_dict'::regclass THEN EXISTS (SELECT FROM pg_ts_dict d JOIN spaces s ON s.oid = d.dictnamespace WHERE d.oid = r.oid)
    WHEN 'pg_ts_config'::regclass THEN EXISTS (SELECT FROM pg_ts_config g JOIN spaces s ON s.oid = g.cfgnamespace WHERE g.oid = r.oid)
    ELSE r.class NOT IN ('pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_am'::regclass, 'pg_language'::regclass, 'pg_foreign_server'::regclass,
      'pg_ts_parser'::regclass, 'pg_ts_template'::regclass) END
    OR EXISTS (SELECT FROM pg_depend x WHERE x.classid = r.class AND x.objid = r.oid AND x.deptype = 'e'))`;

/** The list is read once: by EXISTS, a server may find the rows of the first table only, and a count reads it for each row. */
const IS_LISTED = (list: string): string => `(r.class, r.oid) IN (SELECT l.class, l.oid FROM ${list} l)`;

/**
 * Common table expressions of a recursive query. The server computes them when a row needs them. No text names an
 * operator by a word, so that types and functions that use one are `unordered`. Of the tables that are `tied` to something late, `above` has what needs them.
 */
export const USES = (scope: Scope): string => `${NAMESPACES(scope)},
node AS MATERIALIZED (
  SELECT 'pg_class'::regclass AS class, c.oid, CASE c.relkind WHEN 'c' THEN 'pg_type'::regclass ELSE 'pg_class'::regclass END AS owner_class, CASE c.relkind WHEN 'c' THEN c.reltype ELSE c.oid END AS owner
  FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace WHERE c.relkind IN ('v', 'm', 'c', 'S') OR c.relkind IN ('r', 'p') AND c.relispartition OR ${isInherited('c')}
  UNION ALL SELECT 'pg_class'::regclass, i.indexrelid, 'pg_class'::regclass, c.oid FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid AND c.relkind = 'm' JOIN spaces s ON s.oid = c.relnamespace
  UNION ALL SELECT 'pg_rewrite'::regclass, w.oid, 'pg_class'::regclass, c.oid FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class AND w.rulename = '_RETURN' JOIN spaces s ON s.oid = c.relnamespace
  UNION ALL SELECT 'pg_attrdef'::regclass, d.oid, 'pg_class'::regclass, c.oid FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid AND c.relkind = 'v' JOIN spaces s ON s.oid = c.relnamespace
  UNION ALL SELECT 'pg_constraint'::regclass, k.oid, 'pg_type'::regclass, t.oid FROM pg_constraint k JOIN pg_type t ON t.oid = k.contypid JOIN spaces s ON s.oid = t.typnamespace
  UNION ALL SELECT 'pg_proc'::regclass, p.oid, 'pg_proc'::regclass, p.oid FROM pg_proc p JOIN spaces s ON s.oid = p.pronamespace
  UNION ALL SELECT 'pg_operator'::regclass, o.oid, 'pg_operator'::regclass, o.oid FROM pg_operator o JOIN spaces s ON s.oid = o.oprnamespace
  UNION ALL SELECT 'pg_cast'::regclass, k.oid, 'pg_cast'::regclass, k.oid FROM pg_cast k WHERE k.oid >= 16384
  UNION ALL SELECT 'pg_ts_dict'::regclass, d.oid, 'pg_ts_dict'::regclass, d.oid FROM pg_ts_dict d JOIN spaces s ON s.oid = d.dictnamespace
  UNION ALL SELECT 'pg_ts_config'::regclass, g.oid, 'pg_ts_config'::regclass, g.oid FROM pg_ts_config g JOIN spaces s ON s.oid = g.cfgnamespace
  UNION ALL SELECT 'pg_type'::regclass, t.oid, 'pg_type'::regclass, t.oid FROM pg_type t JOIN spaces s ON s.oid = t.typnamespace WHERE t.typtype IN ('d', 'r', 'm')),
edge AS MATERIALIZED (SELECT DISTINCT n.owner_class, n.owner, r.class, r.oid, ${IS_CREATED} AS created
  FROM node n JOIN pg_depend e ON e.classid = n.class AND e.objid = n.oid AND e.refobjid >= 16384 AND e.deptype <> 'e' CROSS JOIN LATERAL (${REFERRED}) r WHERE (r.class, r.oid) <> (n.owner_class, n.owner)),
late AS (SELECT 'pg_class'::regclass AS class, c.oid FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace WHERE c.relkind IN ('v', 'm') OR c.relkind IN ('r', 'p') AND c.relispartition OR ${isInherited('c')}
  UNION SELECT e.owner_class, e.owner FROM edge e JOIN pg_class c ON e.class = 'pg_class'::regclass AND c.oid = e.oid AND c.relkind <> 'S' WHERE e.owner_class <> 'pg_class'::regclass
  UNION SELECT e.owner_class, e.owner FROM edge e JOIN late l ON l.class = e.class AND l.oid = e.oid WHERE e.owner_class <> 'pg_class'::regclass),
unordered AS (SELECT e.* FROM edge e LEFT JOIN pg_proc p ON e.owner_class = 'pg_proc'::regclass AND p.oid = e.owner
  WHERE e.class = 'pg_operator'::regclass AND (e.owner_class = 'pg_type'::regclass OR p.prokind <> 'a' OR EXISTS (SELECT FROM late l WHERE l.class = e.class AND l.oid = e.oid))),
missing AS (SELECT e.owner_class AS class, e.owner AS oid FROM edge e WHERE NOT e.created UNION SELECT u.owner_class, u.owner FROM unordered u
  UNION SELECT e.owner_class, e.owner FROM edge e JOIN missing m ON m.class = e.class AND m.oid = e.oid),
tied AS MATERIALIZED (SELECT DISTINCT c.oid AS rel, r.class, r.oid FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace CROSS JOIN LATERAL (
    SELECT e.* FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.objsubid > 0
    UNION ALL SELECT e.* FROM pg_attrdef d CROSS JOIN LATERAL (SELECT * FROM pg_depend e WHERE e.classid = 'pg_attrdef'::regclass AND e.objid = d.oid OFFSET 0) e WHERE d.adrelid = c.oid) e CROSS JOIN LATERAL (${REFERRED}) r
  WHERE c.relkind IN ('r', 'p') AND e.refobjid >= 16384 AND (${IS_LISTED('late')} OR e.refclassid = 'pg_type'::regclass AND r.class = 'pg_class'::regclass)),
above AS (SELECT t.rel, 'pg_class'::regclass AS class, t.rel AS oid FROM tied t
  UNION SELECT a.rel, e.owner_class, e.owner FROM above a JOIN (SELECT owner_class, owner, class, oid FROM edge WHERE owner_class <> 'pg_class'::regclass OR owner NOT IN (SELECT seqrelid FROM pg_sequence) UNION ALL SELECT 'pg_class'::regclass, rel, class, oid FROM tied) e ON e.class = a.class AND e.oid = a.oid)`;

/**
 * Whether what `r` is can be used by what migrations create, or by the columns of the table `rel`: what needs the table itself cannot.
 */
const isUsable = (rel?: string): string =>
  `(r.oid < 16384 OR ${IS_CREATED} AND NOT ${IS_LISTED('missing')} AND NOT (r.class = 'pg_operator'::regclass AND ${IS_LISTED('late')})${rel === undefined ? '' : ` AND (e.refclassid = 'pg_class'::regclass OR (${rel}, r.class, r.oid) NOT IN (SELECT u.rel, u.class, u.oid FROM above u))`})`;

/** SQL for what a row of the catalog uses that migrations do not create, or not before the table `rel`; null for nothing. */
export const usedBy = (catalog: string, oid: string, rel?: string): string =>
  `(SELECT min(pg_describe_object(r.class, r.oid, 0)) FROM pg_depend e CROSS JOIN LATERAL (${REFERRED}) r
      WHERE e.classid = ${catalog} AND e.objid = ${oid} AND e.refobjid >= 16384 AND e.deptype <> 'e' AND NOT ${isUsable(rel)})`;

/** SQL for whether a table can have something: the type or the collation of a column. */
export const isUsableIn = (catalog: string, oid: string, rel?: string): string =>
  `EXISTS (SELECT FROM (SELECT '${catalog}'::regclass AS refclassid, ${oid} AS refobjid) e CROSS JOIN LATERAL (${REFERRED}) r WHERE ${isUsable(rel)})`;

/** SQL for what an object of `node` uses that migrations do not create; null for nothing. */
export const usedByNode = (catalog: string, oid: string): string =>
  `(SELECT min(pg_describe_object(e.class, e.oid, 0)) FROM edge e WHERE e.owner_class = ${catalog} AND e.owner = ${oid} AND (NOT e.created OR EXISTS (SELECT FROM missing m WHERE m.class = e.class AND m.oid = e.oid)
    OR EXISTS (SELECT FROM unordered u WHERE u.owner_class = e.owner_class AND u.owner = e.owner AND u.class = e.class AND u.oid = e.oid)))`;

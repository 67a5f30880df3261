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
    WHEN 'pg_ts_dict'::regclass THEN EXISTS (SELECT FROM pg_ts_dict d JOIN spaces s ON s.oid = d.dictnamespace WHERE d.oid = r.oid)
    WHEN 'pg_ts_config'::regclass THEN EXISTS (SELECT FROM pg_ts_config g JOIN spaces s ON s.oid = g.cfgnamespace WHERE g.oid = r.oid)
    ELSE r.class NOT IN ('pg_operator'::regclass, 'pg_collation'::regclass, 'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_am'::regclass, 'pg_language'::regclass, 'pg_foreign_server'::regclass,
      'pg_ts_parser'::regclass, 'pg_ts_template'::regclass) END
    OR EXISTS (SELECT FROM pg_depend x WHERE x.classid = r.class AND x.objid = r.oid AND x.deptype = 'e'))`;

/**
 * Common table expressions of a recursive query. The server computes them when a row needs them.
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
  UNION ALL SELECT 'pg_cast'::regclass, k.oid, 'pg_cast'::regclass, k.oid FROM pg_cast k WHERE k.oid >= 16384
  UNION ALL SELECT 'pg_ts_dict'::regclass, d.oid, 'pg_ts_dict'::regclass, d.oid FROM pg_ts_dict d JOIN spaces s ON s.oid = d.dictnamespace
  UNION ALL SELECT 'pg_ts_config'::regclass, g.oid, 'pg_ts_config'::regclass, g.oid FROM pg_ts_config g JOIN spaces s ON s.oid = g.cfgnamespace
  UNION ALL SELECT 'pg_type'::regclass, t.oid, 'pg_type'::regclass, t.oid FROM pg_type t JOIN spaces s ON s.oid = t.typnamespace WHERE t.typtype IN ('d', 'r', 'm')),
edge AS MATERIALIZED (SELECT DISTINCT n.owner_class, n.owner, r.class, r.oid, ${IS_CREATED} AS created
  FROM node n JOIN pg_depend e ON e.classid = n.class AND e.objid = n.oid AND e.refobjid >= 16384 AND e.deptype <> 'e' CROSS JOIN LATERAL (${REFERRED}) r WHERE (r.class, r.oid) <> (n.owner_class, n.owner)),
missing AS (SELECT e.owner_class AS class, e.owner AS oid FROM edge e WHERE NOT e.created UNION SELECT e.owner_class, e.owner FROM edge e JOIN missing m ON m.class = e.class AND m.oid = e.oid),
late AS (SELECT 'pg_class'::regclass AS class, c.oid FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace WHERE c.relkind IN ('v', 'm') OR c.relkind IN ('r', 'p') AND c.relispartition OR ${isInherited('c')}
  UNION SELECT e.owner_class, e.owner FROM edge e JOIN pg_class c ON e.class = 'pg_class'::regclass AND c.oid = e.oid AND c.relkind <> 'S' WHERE e.owner_class <> 'pg_class'::regclass
  UNION SELECT e.owner_class, e.owner FROM edge e JOIN late l ON l.class = e.class AND l.oid = e.oid WHERE e.owner_class <> 'pg_class'::regclass)`;

const IS_LISTED = (list: string): string => `EXISTS (SELECT FROM ${list} l WHERE l.class = r.class AND l.oid = r.oid)`;

/** Whether what `r` is can be used by what migrations create: of tables, before views and other tables that are objects. */
const isUsable = (when: 'of a table' | 'after tables'): string =>
  `(r.oid < 16384 OR ${IS_CREATED} AND NOT ${IS_LISTED('missing')}${when === 'of a table' ? ` AND NOT ${IS_LISTED('late')}` : ''})`;

/** SQL for what a row of the catalog uses that migrations do not create before it; null for nothing. */
export const usedBy = (catalog: string, oid: string, when: 'of a table' | 'after tables'): string =>
  `(SELECT min(pg_describe_object(r.class, r.oid, 0)) FROM pg_depend e CROSS JOIN LATERAL (${REFERRED}) r
      WHERE e.classid = ${catalog} AND e.objid = ${oid} AND e.refobjid >= 16384 AND e.deptype <> 'e' AND NOT ${isUsable(when)})`;

/** SQL for whether a table can have a column of a type. */
export const isUsableType = (oid: string): string =>
  `EXISTS (SELECT FROM (SELECT 'pg_type'::regclass AS refclassid, ${oid} AS refobjid) e CROSS JOIN LATERAL (${REFERRED}) r WHERE ${isUsable('of a table')})`;

/** SQL for what an object of `node` uses that migrations do not create; null for nothing. */
export const usedByNode = (catalog: string, oid: string): string =>
  `(SELECT min(pg_describe_object(e.class, e.oid, 0)) FROM edge e WHERE e.owner_class = ${catalog} AND e.owner = ${oid} AND (NOT e.created OR EXISTS (SELECT FROM missing m WHERE m.class = e.class AND m.oid = e.oid)))`;

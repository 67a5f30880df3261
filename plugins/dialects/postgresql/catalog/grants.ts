import { ofExtension } from './catalog-rows.ts';
import { modelName, printedName } from './namespaces.ts';
import { isInherited } from './uses.ts';

/** Whether the sequence of a column, if it is one, has the name that it gets in a new database. */
const HAS_OWN_NAME = `NOT EXISTS (SELECT FROM pg_depend d JOIN pg_class t ON t.oid = d.refobjid JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
  WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i') AND c.relkind = 'S' AND c.relname <> t.relname || '_' || a.attname || '_seq')`;

/**
 * Common table expressions: `given` has what privileges are on in the schemas `ns`, with its row of the catalog if an object may be
 * left out, and `privilege` each one that others than the owner have. What was there from the beginning is the base.
 */
export const GRANTS = `
given AS MATERIALIZED (
  SELECT ${modelName('c.relname')} AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || ${printedName('c.relname')} AS target, CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char" AS type, c.relacl AS acl, c.relowner AS owner,
    c.relkind <> 'f' AND c.relname !~ '^(function|type|schema) ' AND ${HAS_OWN_NAME} AS is_named, 'pg_class'::regclass AS class, c.oid, CASE WHEN c.relkind NOT IN ('r', 'p') OR c.relispartition OR ${isInherited('c')} THEN c.oid END AS object
  FROM pg_class c JOIN ns ON ns.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND c.relname !~ '^_svc_' AND NOT ${ofExtension('pg_class', 'c.oid')}
  UNION ALL SELECT 'function ' || ${modelName('p.proname')} || '(' || oidvectortypes(p.proargtypes) || ')', 'ROUTINE ' || ${printedName('p.proname')} || '(' || oidvectortypes(p.proargtypes) || ')', 'f', p.proacl, p.proowner, true, 'pg_proc'::regclass, p.oid, p.oid
  FROM pg_proc p JOIN ns ON ns.oid = p.pronamespace WHERE p.proname !~ '^_svc_' AND NOT ${ofExtension('pg_proc', 'p.oid')}
  UNION ALL SELECT 'type ' || ${modelName('t.typname')}, 'TYPE ' || ${printedName('t.typname')}, 'T', t.typacl, t.typowner, t.typtype IN ('e', 'd', 'r') OR EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c'), 'pg_type'::regclass, t.oid, t.oid
  FROM pg_type t JOIN ns ON ns.oid = t.typnamespace WHERE t.typacl IS NOT NULL AND NOT ${ofExtension('pg_type', 't.oid')}
  UNION ALL SELECT 'schema ' || n.nspname, 'SCHEMA ' || quote_ident(n.nspname), 'n', n.nspacl, n.nspowner, true, 'pg_namespace'::regclass, n.oid, NULL FROM pg_namespace n WHERE n.oid IN (SELECT oid FROM ns)),
privilege AS MATERIALIZED (
  SELECT g.*, a.field, a.grantee, a.privilege_type, a.is_grantable, a.is_revoked FROM given g CROSS JOIN LATERAL (SELECT COALESCE((SELECT i.initprivs FROM pg_init_privs i WHERE i.classoid = g.class AND i.objoid = g.oid AND i.objsubid = 0), acldefault(g.type, g.owner)) AS acl) base
  CROSS JOIN LATERAL (
    SELECT NULL AS field, x.grantee, x.privilege_type, x.is_grantable, false AS is_revoked FROM aclexplode(g.acl) x
      WHERE x.grantee <> g.owner AND x.grantor = g.owner AND NOT EXISTS (SELECT FROM aclexplode(base.acl) y WHERE y.grantee = x.grantee AND y.privilege_type = x.privilege_type AND y.is_grantable = x.is_grantable)
    UNION ALL SELECT NULL, y.grantee, y.privilege_type, false, true FROM aclexplode(base.acl) y
      WHERE g.acl IS NOT NULL AND y.grantee = 0 AND NOT EXISTS (SELECT FROM aclexplode(g.acl) x WHERE x.grantee = y.grantee AND x.privilege_type = y.privilege_type)
    UNION ALL SELECT f.attname, x.grantee, x.privilege_type, x.is_grantable, false FROM pg_attribute f CROSS JOIN LATERAL aclexplode(f.attacl) x
      WHERE g.class = 'pg_class'::regclass AND f.attrelid = g.oid AND NOT f.attisdropped AND f.attacl IS NOT NULL AND x.grantee <> g.owner AND x.grantor = g.owner) a)`;

/** Rows of `made`: one for each thing that has privileges, in the order of the text. */
export const GRANTS_OF = `SELECT 'grants', l.name, string_agg(l.text, E';\\n\\n' ORDER BY l.text COLLATE "C" DESC), NULL, NULL, CASE WHEN l.object IS NULL THEN 'pg_namespace'::regclass ELSE l.class END, l.object
FROM (SELECT p.name, p.class, p.object, CASE WHEN p.is_revoked THEN 'REVOKE ' ELSE 'GRANT ' END || string_agg(p.privilege_type || p.fields, ', ' ORDER BY p.privilege_type) || ' ON ' || p.target || CASE WHEN p.is_revoked THEN ' FROM ' ELSE ' TO ' END
    || CASE p.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(p.grantee)) END || CASE WHEN p.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS text
  FROM (SELECT name, target, class, object, grantee, privilege_type, is_grantable, is_revoked, COALESCE(' (' || string_agg(quote_ident(field), ', ' ORDER BY field) || ')', '') AS fields
    FROM privilege WHERE is_named GROUP BY name, target, class, object, grantee, privilege_type, is_grantable, is_revoked, field IS NULL) p
  GROUP BY p.name, p.target, p.class, p.object, p.grantee, p.is_grantable, p.is_revoked, p.fields = '') l
GROUP BY l.name, l.class, l.object`;

/** The names of what has privileges that `GRANTS_OF` does not have: its owner gave some up, another user granted some, or it has another name. */
export const OTHER_GRANTS = `SELECT DISTINCT g.name FROM given g WHERE NOT g.is_named AND EXISTS (SELECT FROM privilege p WHERE p.class = g.class AND p.oid = g.oid) OR g.type <> 'n' AND g.acl IS NOT NULL AND (
  EXISTS (SELECT FROM aclexplode(g.acl) a WHERE a.grantor <> g.owner)
  OR EXISTS (SELECT FROM aclexplode(acldefault(g.type, g.owner)) d WHERE d.grantee = g.owner AND NOT EXISTS (SELECT FROM aclexplode(g.acl) a WHERE a.grantee = g.owner AND a.privilege_type = d.privilege_type)))`;

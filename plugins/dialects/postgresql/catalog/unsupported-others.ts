import { IS_CAST_OF } from './casts-and-text-search.ts';
import { ofExtension } from './catalog-rows.ts';
import { OTHER_GRANTS } from './grants.ts';
import { printedName, relationName, type Schemas } from './namespaces.ts';
import { isUsableIn, usedBy } from './uses.ts';

/** Whether something is neither of an extension nor part of the server or of another object. */
const isMade = (catalog: string, oid: string): string =>
  `${oid} >= 16384 AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = '${catalog}'::regclass AND e.objid = ${oid} AND e.deptype IN ('e', 'i'))`;

/** SQL for the name of something with its schema; null for what is in none of `ns`. */
export const inSchema = (name: string, namespace: string): string =>
  `(SELECT ${printedName(name)} FROM ns WHERE ns.oid = ${namespace})`;

/** Whether others than the owner have a privilege. */
const isGranted = (acl: string, owner: string): string =>
  `EXISTS (SELECT 1 FROM aclexplode(${acl}) a WHERE a.grantee <> ${owner})`;

/** Functions and types belong to PUBLIC until that is revoked. */
const isGrantedOrRevoked = (acl: string, owner: string): string =>
  `${acl} IS NOT NULL AND (EXISTS (SELECT 1 FROM aclexplode(${acl}) a WHERE a.grantee NOT IN (0, ${owner})) OR NOT EXISTS (SELECT 1 FROM aclexplode(${acl}) a WHERE a.grantee = 0))`;

const PRIVILEGES = `SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.relnamespace IN (SELECT oid FROM ns) AND c.relname !~ '^_svc_' AND NOT ${ofExtension('pg_class', 'c.oid')}
        AND (${isGranted('c.relacl', 'c.relowner')} OR EXISTS (SELECT 1 FROM pg_attribute f WHERE f.attrelid = c.oid AND NOT f.attisdropped AND ${isGranted('f.attacl', 'c.relowner')}))
      UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace IN (SELECT oid FROM ns) AND ${isMade('pg_proc', 'p.oid')} AND ${isGrantedOrRevoked('p.proacl', 'p.proowner')}
      UNION ALL SELECT format_type(t.oid, NULL) FROM pg_type t WHERE t.typnamespace IN (SELECT oid FROM ns) AND ${isMade('pg_type', 't.oid')} AND ${isGrantedOrRevoked('t.typacl', 't.typowner')}
      UNION ALL SELECT 'the schema ' || quote_ident(n.nspname) FROM pg_namespace n WHERE n.oid IN (SELECT oid FROM ns) AND n.nspacl IS NOT NULL
        AND n.nspacl IS DISTINCT FROM (SELECT i.initprivs FROM pg_init_privs i WHERE i.classoid = 'pg_namespace'::regclass AND i.objoid = n.oid)`;

/** Rows of what no object of the schemas `ns` describes: collection, field, what. */
export const otherObjects = ({ grants }: Schemas): string => `
  SELECT NULL, NULL, 'has the ' || what || ', which svc cannot create' FROM (
    SELECT 'cast from ' || format_type(k.castsource, NULL) || ' to ' || format_type(k.casttarget, NULL) AS what FROM pg_cast k WHERE ${isMade('pg_cast', 'k.oid')} AND NOT ${IS_CAST_OF}
    UNION ALL SELECT 'publication ' || quote_ident(p.pubname) FROM pg_publication p
    UNION ALL SELECT 'subscription ' || quote_ident(s.subname) FROM pg_subscription s WHERE s.subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION ALL SELECT 'foreign data wrapper ' || quote_ident(w.fdwname) FROM pg_foreign_data_wrapper w WHERE ${isMade('pg_foreign_data_wrapper', 'w.oid')}
    UNION ALL SELECT 'server ' || quote_ident(v.srvname) FROM pg_foreign_server v WHERE ${isMade('pg_foreign_server', 'v.oid')}
    UNION ALL SELECT 'language ' || quote_ident(l.lanname) FROM pg_language l WHERE ${isMade('pg_language', 'l.oid')}
    UNION ALL SELECT 'access method ' || quote_ident(m.amname) FROM pg_am m WHERE ${isMade('pg_am', 'm.oid')}
    UNION ALL SELECT 'conversion ' || ${inSchema('k.conname', 'k.connamespace')} FROM pg_conversion k WHERE k.connamespace IN (SELECT oid FROM ns) AND ${isMade('pg_conversion', 'k.oid')}
    UNION ALL SELECT 'operator class ' || ${inSchema('o.opcname', 'o.opcnamespace')} FROM pg_opclass o WHERE o.opcnamespace IN (SELECT oid FROM ns) AND ${isMade('pg_opclass', 'o.oid')}
    UNION ALL SELECT 'text search parser ' || ${inSchema('x.prsname', 'x.prsnamespace')} FROM pg_ts_parser x WHERE x.prsnamespace IN (SELECT oid FROM ns) AND ${isMade('pg_ts_parser', 'x.oid')}
    UNION ALL SELECT 'text search template ' || ${inSchema('y.tmplname', 'y.tmplnamespace')} FROM pg_ts_template y WHERE y.tmplnamespace IN (SELECT oid FROM ns) AND ${isMade('pg_ts_template', 'y.oid')}
    UNION ALL SELECT 'type ' || ${inSchema('t.typname', 't.typnamespace')} || ' without a definition' FROM pg_type t WHERE t.typnamespace IN (SELECT oid FROM ns) AND NOT t.typisdefined AND ${isMade('pg_type', 't.oid')}) made
  UNION ALL SELECT NULL, NULL, 'has the schema ' || quote_ident(n.nspname) || ', of which svc reads nothing: schemas in the configuration does not list it' FROM pg_namespace n
  WHERE n.oid NOT IN (SELECT oid FROM ns) AND n.nspname NOT IN ('public', 'information_schema') AND n.nspname !~ '^pg_' AND NOT EXISTS (SELECT 1 FROM pg_extension x WHERE x.extnamespace = n.oid)
    AND ${isMade('pg_namespace', 'n.oid')}
  UNION ALL SELECT NULL, NULL, 'has a comment on the schema ' || quote_ident(n.nspname) || ', which svc does not create' FROM pg_namespace n
  WHERE n.oid IN (SELECT oid FROM ns WHERE is_home) AND obj_description(n.oid, 'pg_namespace') IS DISTINCT FROM CASE n.nspname WHEN 'public' THEN 'standard public schema' END
  UNION ALL SELECT NULL, NULL, 'has default privileges, which svc does not create' WHERE EXISTS (SELECT 1 FROM pg_default_acl)
  UNION ALL SELECT NULL, NULL, 'has privileges of other users on ' || string_agg(name, ', ' ORDER BY name) FILTER (WHERE number <= 5) || CASE WHEN count(*) > 5
    THEN ' and ' || count(*) - 5 || ' others' ELSE '' END || ', which svc does not create' FROM (
    SELECT name, row_number() OVER (ORDER BY name) AS number FROM (
      ${grants ? OTHER_GRANTS : PRIVILEGES}) granted) listed
  HAVING count(*) > 0
  UNION ALL SELECT ${relationName('c')}, NULL, 'is a table of the type ' || format_type(c.reloftype, NULL) || ', which svc creates with columns of its own'
  FROM pg_class c WHERE c.relnamespace IN (SELECT oid FROM ns) AND c.reloftype <> 0 AND NOT ${isUsableIn('pg_type', 'c.reloftype')}
  UNION ALL SELECT ${relationName('c')}, NULL, 'has objects that are left out, because of a dot in its name: ' || string_agg(o.name, ', ' ORDER BY o.name)
  FROM pg_class c JOIN (SELECT tgrelid AS rel, tgname AS name FROM pg_trigger WHERE NOT tgisinternal UNION ALL SELECT ev_class, rulename FROM pg_rewrite WHERE rulename <> '_RETURN'
    UNION ALL SELECT conrelid, conname FROM pg_constraint WHERE contype = 'x' UNION ALL SELECT polrelid, polname FROM pg_policy) o ON o.rel = c.oid
  WHERE c.relnamespace IN (SELECT oid FROM ns) AND position('.' in c.relname) > 0 GROUP BY c.relname, c.relnamespace
  UNION ALL SELECT ${relationName('c')}, NULL, 'is stored by the access method ' || quote_ident(m.amname) || ', which svc does not set'
  FROM pg_class c JOIN pg_am m ON m.oid = c.relam WHERE c.relnamespace IN (SELECT oid FROM ns) AND c.relkind IN ('r', 'p', 'm') AND m.amname <> 'heap'
  UNION ALL SELECT COALESCE(${relationName('t')}, ${relationName('c')}), NULL, CASE WHEN t.oid IS NULL THEN 'is' ELSE 'has the index ' || quote_ident(c.relname) END || ' in the tablespace ' || quote_ident(s.spcname) || ', which svc does not set'
  FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid WHERE c.relnamespace IN (SELECT oid FROM ns)
  UNION ALL SELECT ${relationName('c')}, NULL, 'has the trigger ' || quote_ident(t.tgname) || ' in another state than its parent, which svc does not set'
  FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid JOIN pg_trigger p ON p.oid = (to_jsonb(t) ->> 'tgparentid')::oid WHERE c.relnamespace IN (SELECT oid FROM ns) AND NOT t.tgisinternal AND t.tgenabled <> p.tgenabled
  UNION ALL SELECT ${relationName('c')}, NULL, 'has the index ' || quote_ident(x.relname) || ', which svc creates with the name and the options that the server gives it'
  FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_inherits h ON h.inhrelid = x.oid JOIN pg_class p ON p.oid = h.inhparent
  LEFT JOIN pg_constraint k ON k.conindid = x.oid AND k.conrelid = c.oid CROSS JOIN LATERAL (SELECT c.relname || '_' || CASE WHEN i.indisprimary THEN 'pkey' ELSE (SELECT string_agg(a.attname, '_' ORDER BY a.attnum)
    FROM pg_attribute a WHERE a.attrelid = x.oid) || CASE k.contype WHEN 'u' THEN '_key' WHEN 'x' THEN '_excl' ELSE '_idx' END END AS name) usual
  WHERE c.relnamespace IN (SELECT oid FROM ns) AND octet_length(usual.name) < 63 AND (left(x.relname, length(usual.name)) <> usual.name OR substr(x.relname, length(usual.name) + 1) !~ '^\\d*$'
    OR x.reloptions IS DISTINCT FROM p.reloptions)
  UNION ALL SELECT ${relationName('c')}, NULL, 'has its fields in another order than ' || i.inhparent::regclass || ', in which svc creates them'
  FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid CROSS JOIN LATERAL (SELECT array_agg(a.attname ORDER BY a.attnum) AS names FROM pg_attribute a WHERE a.attrelid = i.inhparent AND a.attnum > 0 AND NOT a.attisdropped) parent
  WHERE c.relnamespace IN (SELECT oid FROM ns) AND c.relkind IN ('r', 'p') AND i.inhseqno = 1 AND parent.names IS DISTINCT FROM (SELECT array_agg(f.attname ORDER BY f.number) FROM (SELECT a.attname, row_number() OVER (ORDER BY a.attnum) AS number
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) f WHERE f.number <= cardinality(parent.names))
  UNION ALL SELECT name, NULL, 'has the ' || what || ', which uses ' || uses || ', which migrations do not create' FROM (
    SELECT ${relationName('c')} AS name, 'default of ' || quote_ident(a.attname) AS what, ${usedBy("'pg_attrdef'::regclass", 'd.oid')} AS uses
    FROM part c JOIN pg_attrdef d ON d.adrelid = c.oid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum
    UNION ALL SELECT ${relationName('c')}, 'constraint ' || quote_ident(k.conname), ${usedBy("'pg_constraint'::regclass", 'k.oid')} FROM part c JOIN pg_constraint k ON k.conrelid = c.oid WHERE k.contype <> 'x' AND k.coninhcount = 0
    UNION ALL SELECT ${relationName('c')}, 'constraint ' || quote_ident(k.conname), ${usedBy("'pg_constraint'::regclass", 'k.oid')} FROM part f JOIN pg_constraint k ON k.confrelid = f.oid AND k.contype = 'f' AND k.coninhcount = 0
      JOIN pg_class c ON c.oid = k.conrelid WHERE c.relnamespace IN (SELECT oid FROM ns) AND c.oid NOT IN (SELECT oid FROM part)
    UNION ALL SELECT ${relationName('c')}, 'index ' || quote_ident(x.relname), ${usedBy("'pg_class'::regclass", 'x.oid')} FROM part c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid
      WHERE NOT x.relispartition AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = x.oid AND k.contype = 'x')) left_out WHERE uses IS NOT NULL
  UNION ALL SELECT ${relationName('c')}, NULL, 'has the statistics ' || s.stxnamespace::regnamespace || '.' || quote_ident(s.stxname) || ' in another schema'
  FROM pg_class c JOIN pg_statistic_ext s ON s.stxrelid = c.oid WHERE c.relnamespace IN (SELECT oid FROM ns) AND s.stxnamespace NOT IN (SELECT oid FROM ns)`;

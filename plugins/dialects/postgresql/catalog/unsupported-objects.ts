import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { isKeptName } from '../../../../core/schema/names.ts';
import type { ExecSql } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { catalogRows, ofExtension } from './catalog-rows.ts';
import { GRANTS } from './grants.ts';
import { modelName, relationName, type Schemas } from './namespaces.ts';
import { IS_SERIAL } from './table-statements.ts';
import { inSchema, otherObjects } from './unsupported-others.ts';
import { isInherited, isUsableIn, USES } from './uses.ts';

/** What neither a model nor an object describes: foreign tables, inheritance, storage and others. */
export async function readUnsupportedObjects(exec: ExecSql, schemas: Schemas): Promise<UnsupportedObject[]> {
  const rows = await catalogRows(exec, query(schemas));
  const visible = rows.filter(({ field }) => typeof field !== 'string' || !isKeptName(field));
  return visible.map(({ collection, field, what }) => ({
    ...(typeof collection === 'string' && { collection }),
    ...(typeof field === 'string' && { field }),
    what: String(what),
  }));
}

/** Rows of listed schemas that do not exist. */
const missing = ({ others }: Schemas): string =>
  `SELECT NULL, NULL, 'has no schema ' || quote_ident(name) || ', which schemas in the configuration lists'
  FROM unnest(ARRAY[${others.map(quoteLiteral).join(', ')}]::text[]) AS listed(name) WHERE to_regnamespace(quote_ident(name)) IS NULL`;

const query = (schemas: Schemas) => `
WITH RECURSIVE ${USES(schemas)},${schemas.grants ? `${GRANTS},` : ''}
part AS (SELECT c.* FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND c.relispartition OR ${isInherited('c')}),
own AS MATERIALIZED (
  SELECT c.oid, ${modelName('c.relname')} AS name, c.relname, c.relkind, c.relnamespace FROM pg_class c JOIN ns ON ns.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition AND NOT ${isInherited('c')} AND c.relname !~ '^_svc_'
    AND NOT ${ofExtension('pg_class', 'c.oid')}),
rel AS (SELECT * FROM own WHERE relkind IN ('r', 'p'))
SELECT collection, field, what FROM (
  SELECT o.name AS collection, NULL::text AS field,
    'is a foreign table, which svc cannot create' AS what
  FROM own o WHERE o.relkind = 'f'
  UNION ALL SELECT ${modelName('c.relname')}, NULL, 'belongs to the extension ' || x.extname || ', which svc cannot create'
  FROM pg_class c JOIN ns ON ns.oid = c.relnamespace JOIN pg_depend e ON e.classid = 'pg_class'::regclass AND e.objid = c.oid
    AND e.deptype = 'e' JOIN pg_extension x ON x.oid = e.refobjid
  WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  UNION ALL SELECT r.name, NULL, 'inherits from ' || i.inhparent::regclass || '; svc creates tables without inheritance'
  FROM rel r JOIN pg_inherits i ON i.inhrelid = r.oid
  UNION ALL SELECT ${modelName('c.relname')}, NULL, 'is a partition of ' || i.inhparent::regclass || ', which is in another schema'
  FROM pg_class c JOIN ns ON ns.oid = c.relnamespace JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent AND p.relnamespace NOT IN (SELECT oid FROM ns)
  WHERE c.relispartition AND c.relkind IN ('r', 'p', 'f')
  UNION ALL SELECT ${relationName('r')}, NULL, 'has the partition ' || i.inhrelid::regclass || ', which svc does not create'
  FROM pg_class r JOIN pg_inherits i ON i.inhparent = r.oid JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition
  WHERE r.relnamespace IN (SELECT oid FROM ns) AND (c.relnamespace NOT IN (SELECT oid FROM ns) OR c.relkind = 'f') AND r.relkind = 'p'
  UNION ALL SELECT r.name, a.attname, 'has its own collation, which svc does not set'
  FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
  WHERE a.attcollation >= 16384 AND a.attcollation <> t.typcollation AND NOT ${isUsableIn('pg_collation', 'a.attcollation')}
  UNION ALL SELECT r.name, a.attname, 'takes its values from the sequence ' || c.oid::regclass || ', which has another name in a new database'
  FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = r.oid AND d.refobjsubid = a.attnum
    AND d.deptype IN ('a', 'i') JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
  WHERE (d.deptype = 'i' OR ${IS_SERIAL('c.oid')}) AND octet_length(r.relname || a.attname) <= 58 AND regexp_replace(c.relname, '_seq\\d*$', '_seq') <> r.relname || '_' || a.attname || '_seq'
  UNION ALL SELECT r.name, a.attname, 'takes its values from the sequence ' || c.oid::regclass || ' of another schema, which svc replaces by an identity that starts at 1'
  FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnotnull AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) JOIN pg_attrdef f ON f.adrelid = r.oid AND f.adnum = a.attnum
    JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass JOIN pg_class c ON c.oid = d.refobjid AND c.relkind = 'S' AND c.relnamespace NOT IN (SELECT oid FROM ns)
  WHERE pg_get_expr(f.adbin, f.adrelid) ~ '^nextval\\(''.*''::regclass\\)$'
  UNION ALL SELECT NULL, NULL, 'has the ' || what || ', which svc cannot create' FROM (
    SELECT o.oprnamespace AS ns, 'operator ' || (SELECT ns.path || o.oprname FROM ns WHERE ns.oid = o.oprnamespace) AS what, 'pg_operator'::regclass AS class, o.oid FROM pg_operator o WHERE o.oprcode = 0
    UNION ALL SELECT t.typnamespace, 'type ' || ${inSchema('t.typname', 't.typnamespace')}, 'pg_type'::regclass, t.oid FROM pg_type t WHERE t.typtype = 'b' AND t.typelem = 0) made
  WHERE made.ns IN (SELECT oid FROM ns)
    AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = made.class AND e.objid = made.oid AND e.deptype = 'e')
  UNION ALL SELECT NULL, NULL, 'has the event trigger ' || quote_ident(t.evtname) || ', which svc cannot create' FROM pg_event_trigger t
  WHERE NOT ${ofExtension('pg_event_trigger', 't.oid')}
  UNION ALL ${missing(schemas)}
  UNION ALL ${otherObjects(schemas)}
) found ORDER BY collection NULLS LAST, field NULLS FIRST, what`;

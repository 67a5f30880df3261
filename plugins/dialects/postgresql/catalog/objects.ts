import {
  type DatabaseObject,
  type ObjectModel,
  objectKey,
  objectModel,
} from '../../../../core/schema/database-object.ts';
import { type ExecSql, rowsOf, type Session } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified, quoteIdentifier, relationOf } from '../compile/names.ts';
import { bareName, tableOf } from '../compile/objects.ts';
import { isTableObject, parentPaths, sameStatements, temporaryParents } from '../compile/table-objects.ts';
import {
  type PrintedPath,
  temporaryName,
  withoutTemporaryNames,
  withTemporaryNames,
} from '../compile/temporary-names.ts';
import { isInvalidStatement } from '../connection/errors.ts';
import { AGGREGATE_STATEMENT, functionName, ROUTINE_ARGUMENTS } from './aggregate-statement.ts';
import { CASTS_AND_TEXT_SEARCH } from './casts-and-text-search.ts';
import { catalogRows, ofExtension } from './catalog-rows.ts';
import { GRANTS, GRANTS_OF } from './grants.ts';
import { memberName, modelName, printedName, type Schemas, type Scope } from './namespaces.ts';
import { OPERATORS_AND_COLLATIONS } from './operators-and-collations.ts';
import { IS_SERIAL, TABLE_OBJECTS, TABLE_STATEMENTS } from './table-statements.ts';
import { USES, usedBy, usedByNode } from './uses.ts';

/** Names of the home schema are not qualified in the texts, so that they can be created in any. */
export async function readObjects(session: Session, schemas: Schemas): Promise<DatabaseObject[]> {
  return session.exclusive((exec) =>
    inTransaction(exec, [quoteIdentifier(schemas.home)], () => objectsIn(exec, schemas)),
  );
}

/**
 * The objects with the texts that the server makes of them: each is created as a temporary one, read and rolled back.
 * Nothing is locked: what belongs to a table is created on a temporary copy of its columns.
 */
export async function normalizeObjects(
  session: Session,
  schemas: Schemas,
  objects: readonly DatabaseObject[],
): Promise<DatabaseObject[]> {
  return session.exclusive((exec) =>
    inTransaction(exec, ['pg_temp', quoteIdentifier(schemas.home)], async () => {
      const isAsStatements = ({ kind }: DatabaseObject): boolean => COMPARED_AS_STATEMENTS.has(kind);
      const found = objects.some(isAsStatements) ? objectModel(await objectsIn(exec, schemas)) : new Map();
      const normal: DatabaseObject[] = [];
      for (const object of objects)
        normal.push(isAsStatements(object) ? likeFound(object, found) : await normalizeObject(exec, schemas, object));
      return normal;
    }),
  );
}

async function inTransaction<T>(exec: ExecSql, path: readonly string[], work: () => Promise<T>): Promise<T> {
  await exec(
    `BEGIN; SELECT set_config('search_path', ${quoteLiteral(path.join(', '))} || ', ' || current_setting('search_path'), true)`,
  );
  try {
    return await work();
  } finally {
    await exec('ROLLBACK');
  }
}

/** Kinds of which there cannot be temporary ones: their statements are compared, in any order. */
const COMPARED_AS_STATEMENTS: ReadonlySet<string> = new Set([
  'schema',
  'extension',
  'row_security',
  'settings',
  'operator',
  'cast',
  'grants',
]);

async function normalizeObject(exec: ExecSql, schemas: Schemas, object: DatabaseObject): Promise<DatabaseObject> {
  const { home } = schemas;
  const isMaterialized = object.kind === 'materialized_view';
  const table = tableOf(object);
  const own = table ?? bareName(object.name);
  const parents = isTableObject(object.kind) ? parentPaths(object, object.definition) : [];
  const paths = [own, ...parents];
  const definition = withTemporaryNames(object.definition, paths);
  const [query = '', rest = ''] = isMaterialized ? splitAtIndexes(definition) : [definition];
  const copied = isTableObject(object.kind)
    ? `${temporaryParents(object, object.definition, home)}; `
    : table === undefined
      ? ''
      : `${copyOf(home, table)}; `;
  const text = isMaterialized ? asView(query) : query;
  try {
    await exec(`SAVEPOINT before_object; ${copied}${text}`);
    const found = await objectsIn(exec, { ...schemas, isTemporary: true });
    const kind = isMaterialized ? 'view' : object.kind;
    const temporary = temporaryName(own) + object.name.slice(own.length);
    // Only one of several functions of a name is created, so its name is without arguments.
    const names = [temporary, temporaryName(own)];
    const read = found.find((one) => one.kind === kind && names.includes(one.name));
    if (!read) return object;
    const normalRest = rest === '' ? '' : await normalizeIndexes(exec, temporary, rest);
    const normal = isMaterialized ? asMaterialized(read.definition) + normalRest : read.definition;
    return { ...object, definition: withoutTemporaryNames(normal, await printedPaths(exec, paths)) };
  } catch (error) {
    if (!isInvalidStatement(error)) throw error;
    return object;
  } finally {
    await exec('ROLLBACK TO before_object');
  }
}

async function printedPaths(exec: ExecSql, paths: readonly string[]): Promise<readonly PrintedPath[]> {
  const printed: PrintedPath[] = [];
  for (const path of paths) {
    const { schema, name } = relationOf(path);
    if (schema === undefined) continue;
    const [row] = await rowsOf(
      exec,
      `SELECT quote_ident(${quoteLiteral(schema)}) AS schema, quote_ident(${quoteLiteral(name)}) AS name`,
    );
    printed.push({ path, printed: `${row?.schema}.${row?.name}`, printedName: String(row?.name) });
  }
  return printed;
}

function likeFound(object: DatabaseObject, all: ObjectModel): DatabaseObject {
  const found = all.get(objectKey(object));
  return found && sameStatements(object.kind, object.definition, found.definition) ? found : object;
}

/** A view may have triggers and rules too, which `LIKE` copies the columns for. */
const copyOf = (home: string, table: string): string =>
  `CREATE TEMPORARY TABLE ${quoteIdentifier(temporaryName(table))} (LIKE ${qualified(table, `${quoteIdentifier(home)}.`)})`;

const asView = (text: string): string =>
  text.replace(/^(\s*create\s+)materialized\s+/i, '$1').replace(/\s+with\s+(?:no\s+)?data\s*$/i, '');
const asMaterialized = (text: string): string => text.replace(/^CREATE VIEW/, 'CREATE MATERIALIZED VIEW');

function splitAtIndexes(definition: string): readonly [string, string] {
  const at = definition.search(/;\s*(?:create\s+(?:unique\s+)?index|comment\s+on|alter\s+(?:materialized|index))\b/i);
  return at < 0 ? [definition, ''] : [definition.slice(0, at), definition.slice(at)];
}

/** The statements after a materialized view, with its indexes as the server writes them. They are created on a table. */
async function normalizeIndexes(exec: ExecSql, view: string, rest: string): Promise<string> {
  const statements = rest
    .split(/;\s*(?=(?:create\s+(?:unique\s+)?index|comment\s+on|alter\s+(?:materialized|index))\b)/i)
    .map((text) => text.trim().replace(/;$/, ''))
    .filter((text) => text !== '');
  const isIndex = (text: string) => /^create\b/i.test(text);
  const name = quoteIdentifier(view);
  await exec(
    `ALTER VIEW pg_temp.${name} RENAME TO _svc_indexed; CREATE TEMPORARY TABLE ${name} (LIKE pg_temp._svc_indexed); ${statements.filter(isIndex).join('; ')}`,
  );
  const rows = await rowsOf(
    exec,
    `SELECT pg_get_indexdef(i.indexrelid, 0, true) AS definition FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
  JOIN pg_class c ON c.oid = i.indrelid AND c.relname = ${quoteLiteral(view)} AND c.relnamespace = pg_my_temp_schema() ORDER BY x.relname`,
  );
  const others = statements.filter((text) => !isIndex(text));
  return [...rows.map(({ definition }) => String(definition)), ...others].map((text) => `;\n\n${text}`).join('');
}

/** Without what they use, of temporary ones. */
async function objectsIn(exec: ExecSql, scope: Scope): Promise<DatabaseObject[]> {
  const rows = await catalogRows(exec, query(scope));
  return rows.map(({ kind, name, definition, uses }) => ({
    kind: String(kind),
    name: String(name),
    definition: String(definition).trim(),
    ...(typeof uses === 'string' && { uses }),
  }));
}

/** The name of an object of a table is `table.name`. */
const IS_NAMEABLE = "position('.' in c.relname) = 0";

/** SQL for the comments on the columns of a relation, as statements; null for none. `name` is an expression for its path. */
const columnComments = (oid: string, name: string): string =>
  `(SELECT string_agg(E';\\n\\nCOMMENT ON COLUMN ' || ${name} || '.' || quote_ident(a.attname) || ' IS ' || quote_literal(d.description), '' ORDER BY a.attnum)
    FROM pg_description d JOIN pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid WHERE d.classoid = 'pg_class'::regclass AND d.objoid = ${oid} AND d.objsubid > 0)`;

/** SQL for a text of the server without the schema that it writes before a name of the home schema. */
const withoutSchema = (text: string, head: string, name: string): string =>
  `CASE WHEN ns.is_home AND (ns.prefix_of_dotted = '' OR position('.' in ${name}) = 0) THEN
    regexp_replace(${text}, '^(${head} )(?:pg_temp|' || regexp_replace(quote_ident(ns.nspname), '([^[:alnum:]])', '\\\\\\1', 'g') || ')\\.', '\\1') ELSE ${text} END`;

const query = (scope: Scope): string => `
WITH RECURSIVE ${USES(scope)},
rel AS MATERIALIZED (SELECT c.*, ${modelName('c.relname')} AS name, ${printedName('c.relname')} AS path, ns.path AS schema_path FROM pg_class c JOIN ns ON ns.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S') AND c.relname !~ '^_svc_' AND NOT ${ofExtension('pg_class', 'c.oid')}
    AND NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid = c.oid AND p.relnamespace NOT IN (SELECT oid FROM ns) AND c.relispartition)),
${TABLE_STATEMENTS},
${scope.grants && !scope.isTemporary ? `${GRANTS},` : ''}
made AS (
SELECT 'schema' AS kind, n.nspname::text AS name, 'CREATE SCHEMA IF NOT EXISTS ' || quote_ident(n.nspname) AS definition, 'SCHEMA ' || quote_ident(n.nspname) AS comment_on, obj_description(n.oid, 'pg_namespace') AS comment, 'pg_namespace'::regclass AS class, n.oid AS oid
FROM pg_namespace n WHERE n.oid NOT IN (SELECT oid FROM ns WHERE is_home) AND n.nspname <> 'public' AND n.nspname !~ '^pg_' AND (n.oid IN (SELECT oid FROM ns) OR n.oid IN (SELECT extnamespace FROM pg_extension))
UNION ALL SELECT 'extension', x.extname, 'CREATE EXTENSION IF NOT EXISTS ' || quote_ident(x.extname)
  || CASE WHEN x.extnamespace NOT IN (SELECT oid FROM ns WHERE is_home) THEN ' WITH SCHEMA ' || quote_ident(n.nspname) ELSE '' END, 'EXTENSION ' || quote_ident(x.extname),
  NULLIF(obj_description(x.oid, 'pg_extension'), (SELECT a.comment FROM pg_available_extensions a WHERE a.name = x.extname)), 'pg_extension'::regclass, x.oid
FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace WHERE x.extname <> 'plpgsql'
UNION ALL SELECT 'type', ${modelName('t.typname')}, 'CREATE TYPE ' || ${printedName('t.typname')} || CASE t.typtype
  WHEN 'e' THEN COALESCE((SELECT E' AS ENUM (\\n  ' || string_agg(quote_literal(e.enumlabel), E',\\n  ' ORDER BY e.enumsortorder) || E'\\n)' FROM pg_enum e WHERE e.enumtypid = t.oid), ' AS ENUM ()')
  WHEN 'r' THEN (SELECT ' AS RANGE (SUBTYPE = ' || format_type(r.rngsubtype, NULL) || CASE WHEN oc.opcdefault THEN '' ELSE ', SUBTYPE_OPCLASS = ' || quote_ident(oc.opcname) END
    || CASE WHEN r.rngcollation <> 0 AND r.rngcollation <> b.typcollation THEN ', COLLATION = ' || r.rngcollation::regcollation ELSE '' END
    || CASE WHEN r.rngsubdiff <> 0 THEN ', SUBTYPE_DIFF = ' || ${functionName('r.rngsubdiff')} ELSE '' END
    || COALESCE((SELECT ', MULTIRANGE_TYPE_NAME = ' || quote_ident(m.typname) FROM pg_type m WHERE m.oid = (to_jsonb(r) ->> 'rngmultitypid')::oid
      AND m.typname <> CASE WHEN t.typname ~ 'range' THEN regexp_replace(t.typname, 'range', 'multirange') ELSE t.typname || '_multirange' END), '') || ')'
    FROM pg_range r JOIN pg_type b ON b.oid = r.rngsubtype JOIN pg_opclass oc ON oc.oid = r.rngsubopc WHERE r.rngtypid = t.oid)
  ELSE COALESCE((SELECT E' AS (\\n  ' || string_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attcollation <> 0 AND a.attcollation <> b.typcollation
    THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END, E',\\n  ' ORDER BY a.attnum) || E'\\n)' FROM pg_attribute a JOIN pg_type b ON b.oid = a.atttypid
    WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped), ' AS ()') END || COALESCE(${columnComments('t.typrelid', printedName('t.typname'))}, ''), 'TYPE ' || ${printedName('t.typname')}, obj_description(t.oid, 'pg_type'), 'pg_type'::regclass, t.oid
FROM pg_type t JOIN ns ON ns.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid
WHERE (t.typtype IN ('e', 'r') OR t.typtype = 'c' AND c.relkind = 'c') AND NOT ${ofExtension('pg_type', 't.oid')}
UNION ALL SELECT 'domain', ${modelName('t.typname')}, 'CREATE DOMAIN ' || ${printedName('t.typname')} || ' AS ' || format_type(t.typbasetype, t.typtypmod)
  || CASE WHEN t.typcollation <> 0 AND t.typcollation <> b.typcollation THEN ' COLLATE ' || t.typcollation::regcollation ELSE '' END
  || COALESCE(' DEFAULT ' || t.typdefault, '') || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END
  || COALESCE((SELECT string_agg(E'\\n  CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid), '' ORDER BY k.conname) FROM pg_constraint k
    WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated), '')
  || COALESCE((SELECT string_agg(E';\\n\\nALTER DOMAIN ' || ${printedName('t.typname')} || ' ADD CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid), '' ORDER BY k.conname)
    FROM pg_constraint k WHERE k.contypid = t.oid AND NOT k.convalidated), '')
  || COALESCE((SELECT string_agg(E';\\n\\nCOMMENT ON CONSTRAINT ' || quote_ident(k.conname) || ' ON DOMAIN ' || ${printedName('t.typname')} || ' IS ' || quote_literal(d.description), '' ORDER BY k.conname)
    FROM pg_constraint k JOIN pg_description d ON d.classoid = 'pg_constraint'::regclass AND d.objoid = k.oid WHERE k.contypid = t.oid), ''), 'DOMAIN ' || ${printedName('t.typname')}, obj_description(t.oid, 'pg_type'), 'pg_type'::regclass, t.oid
FROM pg_type t JOIN ns ON ns.oid = t.typnamespace JOIN pg_type b ON b.oid = t.typbasetype WHERE t.typtype = 'd' AND NOT ${ofExtension('pg_type', 't.oid')}
UNION ALL SELECT 'sequence', c.name, CASE c.relpersistence WHEN 'u' THEN 'CREATE UNLOGGED SEQUENCE ' ELSE 'CREATE SEQUENCE ' END || c.path || ' AS ' || format_type(s.seqtypid, NULL) || ' START WITH ' || s.seqstart || ' INCREMENT BY ' || s.seqincrement
  || ' MINVALUE ' || s.seqmin || ' MAXVALUE ' || s.seqmax || ' CACHE ' || s.seqcache || CASE WHEN s.seqcycle THEN ' CYCLE' ELSE ' NO CYCLE' END, 'SEQUENCE ' || c.path, obj_description(c.oid, 'pg_class'), 'pg_class'::regclass, c.oid
FROM rel c JOIN pg_sequence s ON s.seqrelid = c.oid
WHERE NOT EXISTS (SELECT 1 FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass AND (d.deptype = 'i' OR d.deptype = 'a' AND ${IS_SERIAL('c.oid')}))
UNION ALL SELECT CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END, ${modelName('p.proname')} || CASE WHEN count(*) OVER (PARTITION BY p.pronamespace, p.proname) > 1
    THEN '(' || oidvectortypes(p.proargtypes) || ')' ELSE '' END,
  CASE p.prokind WHEN 'a' THEN ${AGGREGATE_STATEMENT} ELSE ${withoutSchema('pg_get_functiondef(p.oid)', 'CREATE OR REPLACE (?:FUNCTION|PROCEDURE)', 'p.proname')} END,
  CASE p.prokind WHEN 'p' THEN 'PROCEDURE ' WHEN 'a' THEN 'AGGREGATE ' ELSE 'FUNCTION ' END || ${printedName('p.proname')} || '(' || ${ROUTINE_ARGUMENTS} || ')', obj_description(p.oid, 'pg_proc'), 'pg_proc'::regclass, p.oid
FROM pg_proc p JOIN ns ON ns.oid = p.pronamespace WHERE p.proname !~ '^_svc_' AND NOT ${ofExtension('pg_proc', 'p.oid')}
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'i')
UNION ALL ${CASTS_AND_TEXT_SEARCH}
UNION ALL ${OPERATORS_AND_COLLATIONS}
UNION ALL ${TABLE_OBJECTS}
UNION ALL SELECT 'row_security', c.name, 'ALTER TABLE ' || c.path || ' ENABLE ROW LEVEL SECURITY'
  || CASE WHEN c.relforcerowsecurity THEN E';\\n\\nALTER TABLE ' || c.path || ' FORCE ROW LEVEL SECURITY' ELSE '' END, NULL, NULL, 'pg_class'::regclass, c.oid
FROM rel c WHERE c.relrowsecurity
UNION ALL SELECT CASE c.relkind WHEN 'v' THEN 'view' ELSE 'materialized_view' END, c.name,
  CASE c.relkind WHEN 'v' THEN 'CREATE VIEW ' ELSE 'CREATE MATERIALIZED VIEW ' END || c.path || COALESCE(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') || E' AS\\n'
  || rtrim(ltrim(pg_get_viewdef(c.oid)), ';') || CASE WHEN c.relkind = 'm' AND NOT c.relispopulated THEN E'\\nWITH NO DATA' ELSE '' END
  || COALESCE((SELECT string_agg(E';\\n\\n' || pg_get_indexdef(i.indexrelid, 0, true), '' ORDER BY x.relname) FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid), '')
  || COALESCE((SELECT string_agg(E';\\n\\nALTER VIEW ' || c.path || ' ALTER COLUMN ' || quote_ident(a.attname) || ' SET DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '' ORDER BY a.attnum)
    FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = c.oid), '')
  || CASE c.relkind WHEN 'm' THEN COALESCE((SELECT E';\\n\\n' || l.text FROM list l WHERE l.rel = c.oid), '') ELSE '' END || COALESCE(${columnComments('c.oid', 'c.path')}, ''),
  CASE c.relkind WHEN 'v' THEN 'VIEW ' ELSE 'MATERIALIZED VIEW ' END || c.path, obj_description(c.oid, 'pg_class'), 'pg_class'::regclass, c.oid
FROM rel c WHERE c.relkind IN ('v', 'm')
UNION ALL SELECT 'trigger', c.name || '.' || ${memberName('t.tgname')}, pg_get_triggerdef(t.oid, true) || CASE t.tgenabled WHEN 'O' THEN '' ELSE E';\\n\\nALTER TABLE ' || c.path
  || CASE t.tgenabled WHEN 'D' THEN ' DISABLE' WHEN 'R' THEN ' ENABLE REPLICA' ELSE ' ENABLE ALWAYS' END || ' TRIGGER ' || quote_ident(t.tgname) END,
  'TRIGGER ' || quote_ident(t.tgname) || ' ON ' || c.path, obj_description(t.oid, 'pg_trigger'), 'pg_trigger'::regclass, t.oid
FROM rel c JOIN pg_trigger t ON t.tgrelid = c.oid WHERE ${IS_NAMEABLE} AND NOT t.tgisinternal AND t.tgname !~ '^~svc_' AND COALESCE(to_jsonb(t) ->> 'tgparentid', '0') = '0'
UNION ALL SELECT 'rule', c.name || '.' || ${memberName('w.rulename')}, rtrim(pg_get_ruledef(w.oid, true), ';') || CASE w.ev_enabled WHEN 'O' THEN '' ELSE E';\\n\\nALTER TABLE ' || c.path
  || CASE w.ev_enabled WHEN 'D' THEN ' DISABLE' WHEN 'R' THEN ' ENABLE REPLICA' ELSE ' ENABLE ALWAYS' END || ' RULE ' || quote_ident(w.rulename) END,
  'RULE ' || quote_ident(w.rulename) || ' ON ' || c.path, obj_description(w.oid, 'pg_rewrite'), 'pg_rewrite'::regclass, w.oid
FROM rel c JOIN pg_rewrite w ON w.ev_class = c.oid WHERE ${IS_NAMEABLE} AND w.rulename <> '_RETURN'
UNION ALL SELECT 'statistics', ${modelName('s.stxname')}, ${withoutSchema('pg_get_statisticsobjdef(s.oid)', 'CREATE STATISTICS', 's.stxname')}
    || COALESCE(E';\\n\\nALTER STATISTICS ' || ${printedName('s.stxname')} || ' SET STATISTICS ' || NULLIF(to_jsonb(s) ->> 'stxstattarget', '-1'), ''),
  'STATISTICS ' || ${printedName('s.stxname')}, obj_description(s.oid, 'pg_statistic_ext'), 'pg_statistic_ext'::regclass, s.oid
FROM pg_statistic_ext s JOIN ns ON ns.oid = s.stxnamespace JOIN rel c ON c.oid = s.stxrelid
UNION ALL SELECT 'exclusion', c.name || '.' || ${memberName('k.conname')}, 'ALTER TABLE ' || c.path || ' ADD CONSTRAINT ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid),
  'CONSTRAINT ' || quote_ident(k.conname) || ' ON ' || c.path, obj_description(k.oid, 'pg_constraint'), 'pg_class'::regclass, k.conindid
FROM rel c JOIN pg_constraint k ON k.conrelid = c.oid WHERE ${IS_NAMEABLE} AND k.contype = 'x' AND k.conparentid = 0
UNION ALL SELECT 'policy', c.name || '.' || ${memberName('p.polname')}, 'CREATE POLICY ' || quote_ident(p.polname) || ' ON ' || c.path || CASE WHEN p.polpermissive THEN '' ELSE ' AS RESTRICTIVE' END
  || CASE p.polcmd WHEN 'r' THEN ' FOR SELECT' WHEN 'a' THEN ' FOR INSERT' WHEN 'w' THEN ' FOR UPDATE' WHEN 'd' THEN ' FOR DELETE' ELSE '' END
  || CASE WHEN p.polroles = '{0}' THEN '' ELSE ' TO ' || (SELECT string_agg(quote_ident(r.rolname), ', ' ORDER BY r.rolname) FROM pg_roles r WHERE r.oid = ANY (p.polroles)) END
  || COALESCE(E'\\n  USING (' || pg_get_expr(p.polqual, c.oid) || ')', '') || COALESCE(E'\\n  WITH CHECK (' || pg_get_expr(p.polwithcheck, c.oid) || ')', ''),
  'POLICY ' || quote_ident(p.polname) || ' ON ' || c.path, obj_description(p.oid, 'pg_policy'), 'pg_policy'::regclass, p.oid
FROM rel c JOIN pg_policy p ON p.polrelid = c.oid WHERE ${IS_NAMEABLE}
${scope.grants && !scope.isTemporary ? `UNION ALL ${GRANTS_OF}` : ''})
SELECT kind, name, definition || COALESCE(E';\\n\\nCOMMENT ON ' || comment_on || ' IS ' || quote_literal(comment), '') AS definition,
  ${scope.isTemporary ? 'NULL' : `COALESCE(${usedByNode('made.class', 'made.oid')}, ${usedBy('made.class', 'made.oid')})`} AS uses FROM made ORDER BY kind, name`;

import type { PreflightFailure } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { escapeRegExp, lowerCaseContainsWord } from '../../../../core/match-text.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import { isKeptName, nameInSchema } from '../../../../core/schema/names.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import { PathWords } from '../../../../core/schema/path-words.ts';
import { PresentNames } from '../../sql/present-names.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { ofExtension } from '../catalog/catalog-rows.ts';
import { memberName, modelName, NAMESPACES, relationName, type Schemas } from '../catalog/namespaces.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { relationOf } from '../compile/names.ts';
import { withoutParameters } from '../compile/routine-signature.ts';

/** A table or a column that a statement drops or renames, under its name before the run. */
interface Removal {
  readonly statement: number;
  readonly table: string;
  readonly column: string | undefined;
  readonly isRename: boolean;
}

/** An object of the catalog that reads a table or a column. */
interface Reader {
  readonly what: string;
  /** As `kind/name`, or `kind/table.name`. */
  readonly key: string;
  readonly drop: string;
  /** The server does not notice that it can no longer run. */
  readonly isText: boolean;
}

/**
 * Dropped and renamed tables and columns that an object of the catalog reads. The server rejects the statement for most of
 * them, but only after earlier migrations of the run are committed; it keeps a function of text, which then fails.
 */
export async function preflight(
  exec: ExecSql,
  schemas: Schemas,
  operations: readonly MigrationOperation[],
): Promise<readonly PreflightFailure[]> {
  const { removals, changedAt } = removalsIn(operations);
  if (removals.length === 0) return [];
  const isChangedBefore = ({ key, isText }: Reader, statement: number): boolean =>
    (changedAt.get(key) ?? Infinity) < (isText ? Infinity : statement);
  const dependents = await readDependents(exec, schemas, removals);
  const routines = await readRoutines(exec, schemas);
  return removals.flatMap((removal, index): PreflightFailure[] => {
    const { statement } = removal;
    const candidates = [
      ...(dependents.get(index) ?? []),
      ...routines.filter((routine) => routineReads(routine, removal)),
    ];
    const reader = candidates.find((one) => !isChangedBefore(one, statement));
    return reader ? [{ statement, error: readError(removal, reader) }] : [];
  });
}

/** Up to the first raw statement, which may change any object; and the first statement about each object and field. */
function removalsIn(operations: readonly MigrationOperation[]): {
  readonly removals: readonly Removal[];
  readonly changedAt: ReadonlyMap<string, number>;
} {
  const removals: Removal[] = [];
  const changedAt = new Map<string, number>();
  const names = new PresentNames();
  const change = (key: string, statement: number): void => {
    if (!changedAt.has(key)) changedAt.set(key, statement);
  };
  for (const [statement, operation] of operations.entries()) {
    // An operation may have several statements.
    if (operation === operations[statement - 1]) continue;
    if (operation.type === 'raw') break;
    if (isObjectOperation(operation)) {
      const { kind, name } = operation;
      if (operation.type !== 'createObject') change(`${kind}/${withoutParameters(name)}`, statement);
      continue;
    }
    if (operation.type !== 'createCollection') {
      const table = names.table(operation.collection);
      const remove = (name?: string, isRename = false): void => {
        const column = name === undefined ? undefined : table?.column(name);
        if (table && (name === undefined || column !== undefined))
          removals.push({ statement, table: table.name, column, isRename });
        if (table && column !== undefined) change(`field/${table.name}.${column}`, statement);
      };
      if (operation.type === 'dropCollection') remove();
      else if (operation.type === 'renameCollection') remove(undefined, !isKeptName(operation.to));
      else if (operation.type === 'dropField') remove(operation.field);
      else if (operation.type === 'renameField') remove(operation.from, !isKeptName(operation.to));
    }
    names.follow(operation);
  }
  return { removals, changedAt };
}

/** By the index of the removal. A rename is followed by all of these. */
async function readDependents(
  exec: ExecSql,
  schemas: Schemas,
  removals: readonly Removal[],
): Promise<ReadonlyMap<number, readonly Reader[]>> {
  const wanted = removals.flatMap(({ table, column, isRename }, index) =>
    isRename
      ? []
      : [
          `(${[String(index), ...namesOf(schemas, table), column === undefined ? 'NULL' : quoteLiteral(column)].join(', ')})`,
        ],
  );
  if (wanted.length === 0) return new Map();
  const rows = await rowsOf(
    exec,
    `WITH ${NAMESPACES(schemas)},
wanted AS (SELECT w.i, c.oid AS rel, a.attnum AS num FROM (VALUES ${wanted.join(', ')}) w(i, s, t, c)
  JOIN pg_class c ON c.relname = w.t AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = w.s) AND c.relkind IN ('r', 'p')
  LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = w.c AND NOT a.attisdropped WHERE w.c IS NULL OR a.attnum IS NOT NULL),
found AS (SELECT DISTINCT w.i, w.rel, d.classid, d.objid, d.objsubid FROM wanted w JOIN pg_depend d
  ON d.refclassid = 'pg_class'::regclass AND d.refobjid = w.rel AND (w.num IS NULL OR d.refobjsubid = w.num) AND d.deptype IN ('n', 'a'))
SELECT i, kind, name, what, drop FROM (
SELECT f.i, CASE v.relkind WHEN 'm' THEN 'materialized_view' ELSE 'view' END AS kind, ${nameIn('v')} AS name, '' AS what,
  CASE v.relkind WHEN 'm' THEN 'DROP MATERIALIZED VIEW ' ELSE 'DROP VIEW ' END || v.oid::regclass AS drop
  FROM found f JOIN pg_rewrite r ON f.classid = 'pg_rewrite'::regclass AND r.oid = f.objid
  JOIN pg_class v ON v.oid = r.ev_class AND v.relkind IN ('v', 'm')
UNION SELECT f.i, 'trigger', ${nameIn('c')} || '.' || ${memberName('t.tgname')}, '', format('DROP TRIGGER %I ON %s', t.tgname, c.oid::regclass)
  FROM found f JOIN pg_trigger t ON f.classid = 'pg_trigger'::regclass AND t.oid = f.objid AND NOT t.tgisinternal AND t.tgname !~ '^~svc_'
  JOIN pg_class c ON c.oid = t.tgrelid JOIN wanted w ON w.i = f.i WHERE w.num IS NOT NULL OR t.tgrelid <> f.rel
UNION SELECT f.i, 'policy', ${nameIn('c')} || '.' || ${memberName('p.polname')}, '', format('DROP POLICY %I ON %s', p.polname, c.oid::regclass)
  FROM found f JOIN pg_policy p ON f.classid = 'pg_policy'::regclass AND p.oid = f.objid
  JOIN pg_class c ON c.oid = p.polrelid JOIN wanted w ON w.i = f.i WHERE w.num IS NOT NULL OR p.polrelid <> f.rel
UNION SELECT f.i, CASE p.prokind WHEN 'p' THEN 'procedure' WHEN 'a' THEN 'aggregate' ELSE 'function' END, COALESCE((SELECT ${modelName('p.proname')} FROM ns WHERE ns.oid = p.pronamespace), p.proname), '', 'DROP ROUTINE ' || p.oid::regprocedure
  FROM found f JOIN pg_proc p ON f.classid = 'pg_proc'::regclass AND p.oid = f.objid
UNION SELECT f.i, 'field', ${nameIn('c')} || '.' || a.attname, 'generated field ' || quote_ident(a.attname),
  format('ALTER TABLE %s DROP COLUMN %I', c.oid::regclass, a.attname)
  FROM found f LEFT JOIN pg_attrdef ad ON f.classid = 'pg_attrdef'::regclass AND ad.oid = f.objid
  JOIN pg_attribute a ON a.attrelid = f.rel AND a.attgenerated <> '' AND a.attnum = CASE WHEN f.classid = 'pg_class'::regclass AND f.objid = f.rel
    THEN f.objsubid ELSE ad.adnum END
  JOIN pg_class c ON c.oid = f.rel JOIN wanted w ON w.i = f.i WHERE w.num IS NOT NULL AND w.num <> a.attnum
) AS readers ORDER BY i, kind, name`,
  );
  const readers = new Map<number, Reader[]>();
  for (const { i, kind, name, what, drop } of rows) {
    const title = String(what) || `${String(kind).replace('_', ' ')} "${String(name)}"`;
    const reader = { what: title, key: `${String(kind)}/${String(name)}`, drop: String(drop), isText: false };
    readers.set(Number(i), [...(readers.get(Number(i)) ?? []), reader]);
  }
  return readers;
}

/** The schema of a table and its name in it, as literals. */
function namesOf({ home }: Schemas, table: string): readonly string[] {
  const { schema = home, name } = relationOf(table);
  return [quoteLiteral(schema), quoteLiteral(name)];
}

/** A reader may be in a schema that is not read. */
const nameIn = (alias: string): string => `COALESCE(${relationName(alias)}, ${alias}.relname)`;

interface Routine extends Reader {
  /** In lower case, without string literals, comments and names of other schemas. */
  readonly text: string;
  /** The names of other schemas in it, in lower case. */
  readonly paths: readonly string[];
  /** The tables whose triggers call it. */
  readonly tables: readonly string[];
}

/** Functions and procedures whose bodies are texts that the server reads when they run. */
async function readRoutines(exec: ExecSql, schemas: Schemas): Promise<readonly Routine[]> {
  const rows = await rowsOf(
    exec,
    `WITH ${NAMESPACES(schemas)}
SELECT CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END AS kind, ${modelName('p.proname')} AS name, p.prosrc AS text, p.oid::regprocedure::text AS signature,
  ARRAY(SELECT DISTINCT ${relationName('c')}::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgfoid = p.oid AND NOT t.tgisinternal AND c.relnamespace IN (SELECT oid FROM ns)) AS tables
FROM pg_proc p JOIN ns ON ns.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang WHERE l.lanname NOT IN ('c', 'internal') AND p.prosrc <> '' AND p.prokind IN ('f', 'p') AND p.proname !~ '^_svc_'
  AND NOT ${ofExtension('pg_proc', 'p.oid')}
ORDER BY p.proname, p.oid`,
  );
  const words = new PathWords(schemas.others);
  return rows.map(({ kind, name, text, signature, tables }) => ({
    what: `${String(kind)} "${String(name)}"`,
    key: `${String(kind)}/${String(name)}`,
    drop: `DROP ${String(kind).toUpperCase()} ${String(signature)}`,
    isText: true,
    ...textIn(words, String(text)),
    tables: (tables as readonly unknown[]).map(String),
  }));
}

function textIn(words: PathWords, body: string): Pick<Routine, 'text' | 'paths'> {
  const { rest, paths } = words.split(body.replace(/'(?:[^']|'')*'|\/\*.*?\*\/|--[^\n]*/gs, "''"));
  return { text: rest, paths };
}

/** A text that names the table and the column is taken for a reader; one that a trigger of the table calls, by NEW and OLD. */
function routineReads({ text, paths, tables }: Routine, { table, column }: Removal): boolean {
  if (paths.includes(table.toLowerCase()) || lowerCaseContainsWord(text, nameInSchema(table)))
    return column === undefined || lowerCaseContainsWord(text, column);
  if (column === undefined || !tables.includes(table)) return false;
  return new RegExp(`\\b(?:new|old)\\s*\\.\\s*"?${escapeRegExp(column)}"?(?![\\w$])`, 'i').test(text);
}

function readError({ table, column, isRename }: Removal, { what, drop, isText }: Reader): SvcError {
  const removed = column === undefined ? `The table "${table}"` : `"${table}.${column}"`;
  return new SvcError(
    'collection_referenced',
    `${removed} cannot be ${isRename ? 'renamed' : 'dropped'}: the ${what} reads it.`,
    {
      why: isText
        ? 'The server would keep it as it is, and it would fail when it runs.'
        : 'The server drops nothing that another object reads.',
      next: [
        'If it is a file: change or remove it, and generate again.',
        `Otherwise drop it before, in a raw statement of the same migration or, for a rollback, by hand; create it again after: ${drop}`,
      ],
      details: { reader: what },
    },
  );
}

import type { Statement } from '../../../../core/dialect.ts';
import type { Collection, Field } from '../../../../core/schema/model.ts';
import { defaultExpression } from '../../sql/column.ts';
import { alterTable } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { derivedConstraints, enumCheckName, primaryKeyName } from '../../sql/names.ts';
import { SCHEMA_PLACEHOLDER, type SqlText } from '../../sql/statement.ts';
import { FIELD_SHARED_ERROR, NATIVE_ENUM_ERROR } from '../connection/errors.ts';
import { qualified } from './names.ts';

/** A DO statement with a body in PL/pgSQL. A column may have the name of a variable, such as `found`, which every block has. */
export const doBlock = (body: string): string => `DO ${dollarQuoted(`#variable_conflict use_column\n${body}`)}`;

/** The statement, preceded by a block that raises an error to prevent it. */
export const withGuard = (guard: string, guarded: Statement<SqlText>): Statement<SqlText> => ({
  ...guarded,
  run: {
    ...guarded.run,
    parts: `${guard};\n${guarded.run.parts.join(SCHEMA_PLACEHOLDER)}`.split(SCHEMA_PLACEHOLDER),
  },
});

/** The OID of a relation inside a block, or NULL if it does not exist. Unlike `::regclass`, `to_regclass` takes no lock. */
export const oidOf = (quoted: string): string => `to_regclass(${dollarQuoted(quoted)})`;
export const tableOid = (table: string): string => oidOf(qualified(table));

/** The beginning of each dollar-quoting tag. Schemas whose name contains it are rejected. */
export const DOLLAR_TAG = '$svc';

/** A dollar-quoted literal: the schema that replaces the placeholder may contain any quote. */
export function dollarQuoted(text: string): string {
  let tag = `${DOLLAR_TAG}$`;
  for (let count = 1; text.includes(tag); count += 1) tag = `${DOLLAR_TAG}${count}$`;
  return `${tag}${text}${tag}`;
}

/**
 * Prevents the statement if one of these fields has a native enum type. The model has such a field as text with a
 * check, and the check that the statement drops or renames does not exist or is another one.
 */
export function withNativeEnumGuard(
  grammar: Grammar,
  { name: table }: Collection,
  fields: Iterable<Field>,
  guarded: Statement<SqlText>,
): Statement<SqlText> {
  const { quoteLiteral } = grammar;
  const enums = [...fields].filter(({ type }) => type === 'enum');
  const rows = enums.map(
    (field) => `(${quoteLiteral(field.name)}, ${quoteLiteral(convertToTextSql(grammar, table, field))})`,
  );
  const guard = doBlock(
    `DECLARE native_enum record; BEGIN SELECT v.name, v.remedy, t.typname INTO native_enum FROM (VALUES ${rows.join(', ')}) v(name, remedy) JOIN pg_attribute a ON a.attname = v.name JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'e' WHERE a.attrelid = ${tableOid(table)} LIMIT 1; IF FOUND THEN RAISE EXCEPTION USING ERRCODE = ${quoteLiteral(NATIVE_ENUM_ERROR)}, MESSAGE = format('%I of %I has the type %I.', native_enum.name, ${quoteLiteral(table)}::text, native_enum.typname), HINT = native_enum.remedy; END IF; END`,
  );
  return withGuard(guard, guarded);
}

/** The statement that converts such a column to text with a check; safe to repeat. */
function convertToTextSql(grammar: Grammar, table: string, field: Field): string {
  const { quoteIdentifier } = grammar;
  const column = quoteIdentifier(field.name);
  const check = quoteIdentifier(enumCheckName(table, field.name));
  const value = defaultExpression(grammar, field, table);
  const clauses = [
    `DROP CONSTRAINT IF EXISTS ${check}`,
    ...(value === undefined ? [] : [`ALTER COLUMN ${column} DROP DEFAULT`]),
    `ALTER COLUMN ${column} TYPE text USING ${column}::text`,
    ...(value === undefined ? [] : [`ALTER COLUMN ${column} SET DEFAULT ${value}`]),
    `ADD CONSTRAINT ${check} CHECK (${grammar.enumCheck(field)})`,
  ];
  return alterTable(grammar, table, clauses).text;
}

/**
 * Prevents dropping a field if an index or a constraint also uses other fields: the server would drop it without a
 * warning. The model has no such object, but the catalog may have one that a model cannot describe: a partial index, or
 * a check on more fields than its "columns" name.
 */
export function withDropFieldGuard(
  grammar: Grammar,
  { name: table }: Collection,
  field: Field,
  drop: Statement<SqlText>,
): Statement<SqlText> {
  const { quoteLiteral } = grammar;
  const own = [
    ...derivedConstraints(grammar, field).map(({ name }) => name(table, field.name)),
    ...(field.primaryKey ? [primaryKeyName(table)] : []),
  ];
  const others = own.length === 0 ? '' : `WHERE v.name NOT IN (${own.map(quoteLiteral).join(', ')})`;
  const guard = doBlock(
    `DECLARE shared record; BEGIN SELECT string_agg(v.kind || ' ' || quote_ident(v.name), ', ' ORDER BY v.kind, v.name) AS what, string_agg(v.remedy, '; ' ORDER BY v.kind, v.name) AS remedy INTO shared FROM (
      SELECT DISTINCT CASE WHEN k.oid IS NULL THEN 'the index' ELSE 'the constraint' END AS kind, COALESCE(k.conname, i.relname) AS name,
        CASE WHEN k.oid IS NULL THEN 'DROP INDEX ' || i.oid::regclass ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', d.refobjid::regclass, k.conname) END AS remedy
      FROM pg_attribute a JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'a'
      JOIN pg_depend o ON o.classid = d.classid AND o.objid = d.objid AND o.refclassid = d.refclassid AND o.refobjid = d.refobjid AND o.refobjsubid NOT IN (0, a.attnum)
      LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
      LEFT JOIN pg_class i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid AND i.relkind IN ('i', 'I')
      WHERE a.attrelid = ${tableOid(table)} AND a.attname = ${quoteLiteral(field.name)} AND COALESCE(k.oid, i.oid) IS NOT NULL) v ${others};
    IF shared.what IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = ${quoteLiteral(FIELD_SHARED_ERROR)}, MESSAGE = format('%I of %I is used, together with other fields, by %s: no migration declares this.', ${quoteLiteral(field.name)}::text, ${quoteLiteral(table)}::text, shared.what), HINT = shared.remedy; END IF; END`,
  );
  return withGuard(guard, drop);
}

import type { Statement } from '../../../../core/dialect.ts';
import type { Collection } from '../../../../core/schema/model.ts';
import { KEPT_PREFIX } from '../../../../core/schema/names.ts';
import { type SqlText, sqlStatement } from '../../sql/statement.ts';
import { hasSequence } from './follow-sequence.ts';
import { quoteLiteral } from './literal.ts';
import { qualified, quoteIdentifier, type Relation } from './names.ts';
import { doBlock, tableOid } from './plpgsql-guards.ts';

/**
 * Moves a table, with its sequences, to a schema: to that of the connection if `schema` is undefined, whose name is known only
 * when the statement runs. A sequence whose name is taken there, or is that of a kept table, is named after the table again.
 */
export function setSchema(
  table: string,
  { schema, name }: Relation,
  { fields }: Pick<Collection, 'fields'>,
): Statement<SqlText> {
  const alterSchema = `ALTER TABLE ${qualified(table)} SET SCHEMA`;
  const hasSequences = [...fields.values()].some(hasSequence);
  if (schema !== undefined && !hasSequences) return sqlStatement(`${alterSchema} ${quoteIdentifier(schema)}`);
  if (!hasSequences)
    return sqlStatement(
      doBlock(`BEGIN EXECUTE ${quoteLiteral(`${alterSchema} `)} || quote_ident(current_schema()); END`),
    );
  const target = schema === undefined ? 'current_schema()' : quoteLiteral(schema);
  const there = `(SELECT oid FROM pg_namespace WHERE nspname = ${target})`;
  const natural = `left(${quoteLiteral(name)} || '_' || a.attname, 59) || '_seq'`;
  const isTaken = (sequence: string) =>
    `EXISTS (SELECT FROM pg_class o WHERE o.relname = ${sequence} AND o.relnamespace = ${there})`;
  const rename = (free: string, condition: string) =>
    `FOR used IN SELECT s.oid::regclass AS seq, ${free} AS free FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = moved AND d.deptype IN ('a', 'i') AND ${condition} LOOP EXECUTE format('ALTER SEQUENCE %s RENAME TO %I', used.seq, used.free); END LOOP;`;
  const isMakeshift = `(s.relname ~ '^${KEPT_PREFIX}' OR s.relname ~ ('_' || s.oid || '$')) AND NOT ${isTaken(natural)}`;
  return sqlStatement(
    doBlock(
      `DECLARE used record; moved oid := ${tableOid(table)}; BEGIN ${rename("left(s.relname, 50) || '_' || s.oid", isTaken('s.relname'))} EXECUTE format('ALTER TABLE %s SET SCHEMA %I', moved::regclass, ${target}); ${rename(natural, isMakeshift)} END`,
    ),
  );
}

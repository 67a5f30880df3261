import type { Statement } from '../../../../core/dialect.ts';
import type { Collection } from '../../../../core/schema/model.ts';
import { type SqlText, sqlStatement } from '../../sql/statement.ts';
import { quoteLiteral } from './literal.ts';
import { isIdentity } from './modify-field.ts';
import { qualified, quoteIdentifier, relationOf } from './names.ts';
import { doBlock, tableOid } from './plpgsql-guards.ts';
import { isSerial } from './types.ts';

/**
 * Moves a table, with its sequences, to a schema: to that of the connection if `schema` is undefined, whose name is known only
 * when the statement runs. A sequence whose name is taken there is renamed before.
 */
export function setSchema(
  table: string,
  schema: string | undefined,
  { fields }: Pick<Collection, 'fields'>,
): Statement<SqlText> {
  const alterSchema = `ALTER TABLE ${qualified(table)} SET SCHEMA`;
  const hasSequence = [...fields.values()].some((field) => isIdentity(field) || isSerial(field));
  if (schema !== undefined && !hasSequence) return sqlStatement(`${alterSchema} ${quoteIdentifier(schema)}`);
  const target = schema === undefined ? 'current_schema()' : quoteLiteral(schema);
  const { name } = relationOf(table);
  const isTaken = (sequence: string, namespace: string) =>
    `EXISTS (SELECT FROM pg_class o WHERE o.relname = ${sequence} AND o.relnamespace = ${namespace})`;
  const there = `(SELECT oid FROM pg_namespace WHERE nspname = ${target})`;
  const renamed = `left(${quoteLiteral(name)} || '_' || a.attname, 59) || '_seq'`;
  return sqlStatement(
    doBlock(
      `DECLARE used record; BEGIN FOR used IN SELECT s.oid::regclass AS seq, CASE WHEN ${isTaken(renamed, 's.relnamespace')} OR ${isTaken(renamed, there)} THEN left(s.relname, 50) || '_' || s.oid ELSE ${renamed} END AS free FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ${tableOid(table)} AND d.deptype IN ('a', 'i') AND ${isTaken('s.relname', there)} LOOP EXECUTE format('ALTER SEQUENCE %s RENAME TO %I', used.seq, used.free); END LOOP; EXECUTE format('ALTER TABLE %s SET SCHEMA %I', ${tableOid(table)}, ${target}); END`,
    ),
  );
}

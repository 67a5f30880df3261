import type { PermissionProbe } from '../../../../core/dialect.ts';
import { auditTable, historyTable, metaTable } from '../../../../core/migration/history-table.ts';
import type { ForeignKey } from '../../../../core/schema/model.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified, quoteIdentifier } from '../compile/names.ts';
import { epochTable } from './lock.ts';

/** `schema` is that of svc's tables, quoted and with its dot; `all` are the schemas that exist, without quotes. */
export function permissionProbes(schema: string, all: readonly string[]): readonly PermissionProbe[] {
  const others = all.filter((one) => `${quoteIdentifier(one)}.` !== schema);
  const records = [historyTable, metaTable, auditTable].map(({ collection, key }) => ({
    table: `${schema}${collection}`,
    key,
  }));
  return [
    // The permission to create is checked before the table to copy is looked up.
    { needed: 'create tables', text: `CREATE TABLE ${schema}_svc_doctor (LIKE ${schema}_svc_doctor_missing)` },
    ...others.map((other) => ({
      needed: `create tables in the schema "${other}"`,
      text: `CREATE TABLE ${quoteIdentifier(other)}._svc_doctor (LIKE ${schema}_svc_doctor_missing)`,
    })),
    {
      needed: 'change the tables',
      text: `SELECT CASE WHEN n.nspname = ${quoteLiteral(all.find((one) => !others.includes(one)) ?? '')} THEN '' ELSE n.nspname || '.' END || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN (${all.map(quoteLiteral).join(', ')}) AND c.relkind IN ('r', 'p') AND NOT pg_has_role(c.relowner, 'USAGE')`,
      denies: true,
    },
    { needed: 'take the migration lock', text: `UPDATE ${epochTable(schema)} SET epoch = epoch WHERE false` },
    ...records.flatMap(({ table, key }) =>
      [
        `INSERT INTO ${table} SELECT * FROM ${table} WHERE false`,
        `UPDATE ${table} SET ${key} = ${key} WHERE false`,
      ].map((text) => ({ needed: 'write the history', text })),
    ),
  ];
}

/** `schema` is quoted, with its dot. */
export function referenceProbe(schema: string, { table, columns }: ForeignKey['references']): PermissionProbe {
  const relation = quoteLiteral(qualified(table, schema));
  const lacks = columns.map((column) => `NOT has_column_privilege(${relation}, ${quoteLiteral(column)}, 'REFERENCES')`);
  return {
    needed: `reference the table "${table}"`,
    text: `SELECT ${quoteLiteral(table)} AS name WHERE ${lacks.join(' OR ')}`,
    denies: true,
  };
}

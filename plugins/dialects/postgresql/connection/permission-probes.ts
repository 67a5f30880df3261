import type { PermissionProbe } from '../../../../core/dialect.ts';
import { auditTable, historyTable, metaTable } from '../../../../core/migration/history-table.ts';
import type { ForeignKey } from '../../../../core/schema/model.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified } from '../compile/names.ts';
import { epochTable } from './lock.ts';

/** `schema` is quoted, with its dot; `name` is the same schema without quotes. */
export function permissionProbes(schema: string, name: string): readonly PermissionProbe[] {
  const records = [historyTable, metaTable, auditTable].map(({ collection, key }) => ({
    table: `${schema}${collection}`,
    key,
  }));
  return [
    // The permission to create is checked before the table to copy is looked up.
    { needed: 'create tables', text: `CREATE TABLE ${schema}_svc_doctor (LIKE ${schema}_svc_doctor_missing)` },
    {
      needed: 'change the tables',
      text: `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ${quoteLiteral(name)} AND c.relkind IN ('r', 'p') AND NOT pg_has_role(c.relowner, 'USAGE')`,
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

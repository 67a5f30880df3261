import type { PermissionProbe } from '../../../../core/dialect.ts';
import { auditTable, historyTable, metaTable } from '../../../../core/migration/history-table.ts';
import type { ForeignKey } from '../../../../core/schema/model.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import { EPOCH_TABLE } from './lock.ts';

const MISSING = '`_svc_doctor_missing`';

/** The server checks permissions before it looks a table up. */
export const PERMISSION_PROBES: readonly PermissionProbe[] = [
  { needed: 'create tables', text: `CREATE TABLE \`_svc_doctor\` LIKE ${MISSING}` },
  { needed: 'change tables', text: `ALTER TABLE ${MISSING} ADD COLUMN x int` },
  { needed: 'create indexes', text: `CREATE INDEX x ON ${MISSING} (x)` },
  { needed: 'drop tables', text: `DROP TABLE ${MISSING}` },
  { needed: 'take the migration lock', text: `UPDATE ${EPOCH_TABLE} SET epoch = epoch WHERE FALSE` },
  ...[historyTable, metaTable, auditTable].flatMap(({ collection, key }) =>
    [
      `INSERT INTO \`${collection}\` SELECT * FROM \`${collection}\` WHERE FALSE`,
      `UPDATE \`${collection}\` SET \`${key}\` = \`${key}\` WHERE FALSE`,
    ].map((text) => ({ needed: 'write the history', text })),
  ),
];

/** Two primary keys are an error of every server, which checks permissions before it. */
export function referenceProbe({ table, columns }: ForeignKey['references']): PermissionProbe {
  const names = columns.map(quoteIdentifier);
  const own = columns.map((_, index) => `c${index}`);
  return {
    needed: `reference the table "${table}"`,
    text: `CREATE TABLE _svc_doctor (${own.map((name) => `${name} int`).join(', ')}, PRIMARY KEY (c0), PRIMARY KEY (c0), FOREIGN KEY (${own.join(', ')}) REFERENCES ${quoteIdentifier(table)} (${names.join(', ')}))`,
  };
}

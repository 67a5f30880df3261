import type { PermissionProbe } from '../../../../core/dialect.ts';
import { auditTable, historyTable, metaTable } from '../../../../core/migration/history-table.ts';

const MISSING = '`_svc_doctor_missing`';

/** The server checks permissions before it looks a table up. */
export const PERMISSION_PROBES: readonly PermissionProbe[] = [
  { needed: 'create tables', text: `CREATE TABLE \`_svc_doctor\` LIKE ${MISSING}` },
  { needed: 'change tables', text: `ALTER TABLE ${MISSING} ADD COLUMN x int` },
  { needed: 'create indexes', text: `CREATE INDEX x ON ${MISSING} (x)` },
  { needed: 'drop tables', text: `DROP TABLE ${MISSING}` },
  ...[historyTable, metaTable, auditTable].flatMap(({ collection, key }) =>
    [
      `INSERT INTO \`${collection}\` SELECT * FROM \`${collection}\` WHERE FALSE`,
      `UPDATE \`${collection}\` SET \`${key}\` = \`${key}\` WHERE FALSE`,
    ].map((text) => ({ needed: 'write the history', text })),
  ),
];

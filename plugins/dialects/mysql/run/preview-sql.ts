import { isSvcError } from '../../../../core/errors.ts';
import type { ExecSql } from '../../sql/session.ts';
import type { MysqlStatement } from '../compile/step.ts';
import { errorNumber } from '../connection/errors.ts';
import type { Traits } from '../variant.ts';
import { completeClauses, needsCatalog } from './complete-alter.ts';
import { existingTableChanges } from './existing-table-changes.ts';
import { completeSql } from './online-alter.ts';

/** The SQL that will be sent; the planned text if an earlier statement changes the table or its columns. */
export async function previewSql(
  exec: ExecSql,
  traits: Traits,
  statements: readonly MysqlStatement[],
): Promise<string[]> {
  const texts = statements.map(({ text }) => text);
  for (const [table, changes] of existingTableChanges(statements, '').changes) {
    for (const { statement, alter, source } of changes) {
      // A table or a column that an earlier statement renames is not in the catalog under its new name.
      if (source?.withClause !== '' || !needsCatalog(traits, alter)) continue;
      try {
        texts[statement] = completeSql(traits, table, await completeClauses(exec, traits, alter)).join('; ');
      } catch (error) {
        // The run reports it.
        if (!isSvcError(error) && errorNumber(error) === undefined) throw error;
      }
    }
  }
  return texts;
}

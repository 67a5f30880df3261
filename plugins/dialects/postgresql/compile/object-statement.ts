import type { Statement } from '../../../../core/dialect.ts';
import type { RawSql } from '../../sql/statement.ts';

/** The statement of an object, a user's text: its unqualified names are those of the schema of the tables. */
export function statement(text: string, sql = text, destructive = false): Statement<RawSql> {
  return { text, run: { kind: 'raw', sql, inSchema: true }, transactional: true, destructive };
}

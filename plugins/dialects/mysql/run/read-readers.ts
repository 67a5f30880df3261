import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';

export type ReaderKind = 'view' | 'trigger' | 'function' | 'procedure' | 'event';

/** A view, a trigger, a routine or an event with its text. */
export interface Reader {
  readonly kind: ReaderKind;
  readonly name: string;
  /** Lower case, without string literals and comments. */
  readonly text: string;
  /** The table of a trigger. */
  readonly table: string | undefined;
}

export async function readReaders(exec: ExecSql): Promise<readonly Reader[]> {
  const rows = await rowsOf(
    exec,
    `SELECT 'view' AS kind, v.table_name AS name, v.view_definition AS text, NULL AS t, DATABASE() AS db
  FROM information_schema.views v WHERE v.table_schema = DATABASE()
UNION ALL SELECT 'trigger', g.trigger_name, g.action_statement, g.event_object_table, DATABASE()
  FROM information_schema.triggers g WHERE g.trigger_schema = DATABASE()
UNION ALL SELECT LOWER(r.routine_type), r.routine_name, r.routine_definition, NULL, DATABASE()
  FROM information_schema.routines r WHERE r.routine_schema = DATABASE() AND r.routine_type IN ('FUNCTION', 'PROCEDURE')
UNION ALL SELECT 'event', e.event_name, e.event_definition, NULL, DATABASE()
  FROM information_schema.events e WHERE e.event_schema = DATABASE() ORDER BY kind DESC, name`,
  );
  return rows.map(({ kind, name, text, t, db }) => ({
    kind: String(kind) as ReaderKind,
    name: String(name),
    text: String(text ?? '')
      .toLowerCase()
      .replace(/'(?:[^'\\]|\\.|'')*'|\/\*.*?\*\/|(?:--\s|#)[^\n]*/gs, "''")
      // A view names its own database with every table.
      .replaceAll(`${quoteIdentifier(String(db)).toLowerCase()}.`, ''),
    table: t === null || t === undefined ? undefined : String(t),
  }));
}

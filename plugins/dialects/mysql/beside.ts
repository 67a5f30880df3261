import type { Unreadable } from '../../../core/dialect.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';

/** What stands beside tables and columns, of which a model says nothing: views, triggers, comments. */
export async function readBeside(exec: Exec): Promise<Unreadable[]> {
  const rows = await rowsOf(exec, QUERY);
  return rows.map(({ collection, what }) => ({ collection: String(collection), what: String(what) }));
}

const QUERY = `
SELECT t.table_name AS collection, CONCAT('is a ', LOWER(t.table_type), ', which svc does not make') AS what
FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_type <> 'BASE TABLE' AND t.table_name NOT LIKE '\\_svc\\_%'
UNION ALL SELECT t.table_name, 'has a comment, which svc does not write'
FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND t.table_comment <> '' AND t.table_name NOT LIKE '\\_svc\\_%'
UNION ALL SELECT g.event_object_table, CONCAT('has the trigger ', g.trigger_name, ', which svc does not make')
FROM information_schema.triggers g WHERE g.event_object_schema = DATABASE() AND g.event_object_table NOT LIKE '\\_svc\\_%'
ORDER BY collection, what`;

import type { Unreadable } from '../../../core/dialect.ts';
import { type Exec, rowsOf } from '../../sql/session.ts';

/** What stands beside tables and columns, of which a model says nothing: views, triggers, comments. */
export async function readBeside(exec: Exec): Promise<Unreadable[]> {
  const rows = await rowsOf(exec, QUERY);
  const found = rows.map(({ collection, what }) => ({ collection: String(collection), what: String(what) }));
  if (await seesTriggers(exec)) return found;
  const hidden = 'may have triggers, which its user cannot see without the privilege TRIGGER';
  return [...found, { what: hidden }];
}

/** The server tells no trigger to who has not that privilege, as if there were none. */
async function seesTriggers(exec: Exec): Promise<boolean> {
  const [database] = await rowsOf(exec, 'SELECT DATABASE() AS name');
  const grants = await rowsOf(exec, 'SHOW GRANTS');
  return grants.some((row) => {
    const [, privileges = '', scope] =
      /^GRANT (.*?) ON (\*|`(?:[^`]|``)*`)\.\* TO /s.exec(String(Object.values(row)[0])) ?? [];
    if (scope === undefined || !/\b(TRIGGER|ALL PRIVILEGES)\b/.test(privileges)) return false;
    return scope === '*' || patternOf(scope.slice(1, -1).replaceAll('``', '`')).test(String(database?.name));
  });
}

/** Names of databases in a grant are patterns. */
const patternOf = (name: string): RegExp =>
  new RegExp(
    `^${name.replace(/\\(.)|([%_])|([^\w])/gs, (_, escaped, wild, other) =>
      wild === '%' ? '.*' : wild === '_' ? '.' : (escaped ?? other).replace(/\W/g, '\\$&'),
    )}$`,
    's',
  );

const QUERY = `
SELECT t.table_name AS collection, CONCAT('is a ', LOWER(t.table_type), ', which svc does not make') AS what
FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_type <> 'BASE TABLE' AND t.table_name NOT LIKE '\\_svc\\_%'
UNION ALL SELECT t.table_name, 'has a comment, which svc does not write'
FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND t.table_comment <> '' AND t.table_name NOT LIKE '\\_svc\\_%'
UNION ALL SELECT g.event_object_table, CONCAT('has the trigger ', g.trigger_name, ', which svc does not make')
FROM information_schema.triggers g WHERE g.event_object_schema = DATABASE() AND g.event_object_table NOT LIKE '\\_svc\\_%'
ORDER BY collection, what`;

import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import type { Traits } from '../variant.ts';

/** What is neither in a model nor an object: some system-versioned tables of MariaDB. */
export async function readUnsupportedObjects(exec: ExecSql, traits: Traits): Promise<UnsupportedObject[]> {
  const rows = await rowsOf(exec, unsupportedQuery(traits));
  const blocked = await readBlockedViews(exec, traits);
  const found = [
    ...rows.map(({ collection, what }) => ({
      ...(typeof collection === 'string' && { collection }),
      what: String(what),
    })),
    ...[...blocked].map(([view, read]) => ({
      what: `has the view ${view}, which svc cannot create: it reads ${read}`,
    })),
  ];
  if (await canSeeTriggers(exec)) return found;
  return [...found, { what: 'may have triggers, which its user cannot see without the privilege TRIGGER' }];
}

/** Without the privilege, the server shows no triggers, as if there were none. */
async function canSeeTriggers(exec: ExecSql): Promise<boolean> {
  const [database] = await rowsOf(exec, 'SELECT DATABASE() AS name');
  const grants = await rowsOf(exec, 'SHOW GRANTS');
  return grants.some((row) => {
    const [, privileges = '', scope] =
      /^GRANT (.*?) ON (\*|`(?:[^`]|``)*`)\.\* TO /s.exec(String(Object.values(row)[0])) ?? [];
    if (scope === undefined || !/\b(TRIGGER|ALL PRIVILEGES)\b/.test(privileges)) return false;
    return scope === '*' || grantPattern(scope.slice(1, -1).replaceAll('``', '`')).test(String(database?.name));
  });
}

/** Database names in a grant are patterns. */
const grantPattern = (name: string): RegExp =>
  new RegExp(
    `^${name.replace(/\\(.)|([%_])|([^\w])/gs, (_, escaped, wild, other) =>
      wild === '%' ? '.*' : wild === '_' ? '.' : (escaped ?? other).replace(/\W/g, '\\$&'),
    )}$`,
    's',
  );

/** A query of the tables that svc can create. */
export const tableNames = ({ isTable }: Traits['catalog']): string =>
  `SELECT t.table_name FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND ${isTable}`;

/** The views that read a table that svc cannot create, or such a view, and its name. */
export async function readBlockedViews(exec: ExecSql, { catalog }: Traits): Promise<ReadonlyMap<string, string>> {
  const missing = await rowsOf(
    exec,
    `SELECT t.table_name AS name FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_type NOT IN ('VIEW', 'SEQUENCE') AND NOT ${catalog.isTable}`,
  );
  const blocked = new Map<string, string>();
  if (missing.length === 0) return blocked;
  const views = await rowsOf(
    exec,
    'SELECT table_name AS name, view_definition AS text FROM information_schema.views WHERE table_schema = DATABASE()',
  );
  const names = missing.map(({ name }) => String(name));
  for (const name of names) {
    for (const view of views) {
      const viewName = String(view.name);
      if (blocked.has(viewName) || !String(view.text).includes(quoteIdentifier(name))) continue;
      blocked.set(viewName, name);
      names.push(viewName);
    }
  }
  return blocked;
}

const unsupportedQuery = ({ catalog }: Traits): string => `
SELECT t.table_name AS collection, CASE t.table_type WHEN 'SYSTEM VERSIONED'
  THEN 'has columns for its period, or without a history: svc cannot create it, nor its triggers and partitions'
  ELSE CONCAT('is a ', LOWER(t.table_type), ', which svc cannot create') END AS what
FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_type NOT IN ('VIEW', 'SEQUENCE') AND NOT ${catalog.isTable} AND t.table_name NOT LIKE '\\_svc\\_%'
UNION ALL SELECT NULL, CONCAT('has the ', kind, ' ', name, ', whose text its user may not see') FROM (
  SELECT 'view' AS kind, table_name AS name FROM information_schema.views WHERE table_schema = DATABASE() AND view_definition = ''
  UNION ALL SELECT LOWER(routine_type), routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_definition IS NULL
    AND routine_type IN ('FUNCTION', 'PROCEDURE')) hidden
UNION ALL SELECT NULL, CONCAT('has the ', kind, ' ', name, ', which was made with another sql_mode: ', sql_mode) FROM (
  SELECT LOWER(routine_type) AS kind, routine_name AS name, sql_mode FROM information_schema.routines WHERE routine_schema = DATABASE()
  UNION ALL SELECT 'trigger', trigger_name, sql_mode FROM information_schema.triggers WHERE trigger_schema = DATABASE()
  UNION ALL SELECT 'event', event_name, sql_mode FROM information_schema.events WHERE event_schema = DATABASE()) made
WHERE sql_mode REGEXP 'ANSI_QUOTES|PIPES_AS_CONCAT|NO_BACKSLASH_ESCAPES|HIGH_NOT_PRECEDENCE|IGNORE_SPACE' OR sql_mode NOT LIKE '%STRICT%'
UNION ALL SELECT NULL, CONCAT('has the event ', event_name, ', whose times are of the time zone ', time_zone, '; svc creates it with those of UTC')
FROM information_schema.events WHERE event_schema = DATABASE() AND time_zone NOT IN ('+00:00', 'UTC') AND (time_zone <> 'SYSTEM' OR @@system_time_zone NOT IN ('UTC', 'GMT'))
ORDER BY collection, what`;

import type { ConnectOptions } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import {
  booleanOption,
  connectTimeoutMs,
  integerOption,
  millisecondsOption,
  readSettings,
  requestTimeoutMs,
  type SettingsOf,
  stringOption,
  stringsOption,
} from '../../shared/settings.ts';

/** Restores everything a session can set to the values of its startup packet. */
export const RESET_SESSION = 'RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL';

/**
 * Turns off timeouts that a database or a role may set. Servers before 14 and 17 do not have these settings and would
 * reject them in a startup packet.
 */
export const DISABLE_TIMEOUTS =
  "(SELECT count(set_config(name, '0', false)) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout'))";

export const OPTIONS = {
  schema: stringOption('where tables live; also next to the URL of the database'),
  schemas: stringsOption(
    'further schemas with tables, and `schema`, by default the first; also next to the URL',
    "['public', 'billing']",
  ),
  createSchema: booleanOption('whether the first migration creates `schema` if it does not exist', false),
  grants: booleanOption('whether privileges of others are objects, with files in grants/', false),
  connectTimeoutMs,
  requestTimeoutMs,
  lockTimeoutMs: millisecondsOption(
    'milliseconds a statement waits for a table lock before it is cancelled and retried',
    500,
  ),
  statementTimeoutMs: millisecondsOption(
    'milliseconds after which the server cancels a statement; 0: no limit. PGlite has none',
    0,
    0,
  ),
  lockRetries: integerOption('times a step is retried after such a wait', 20, 0, 1_000_000),
  allowCopy: booleanOption(
    'allows changes of a table with many rows that write or check each one, and block the table until they finish',
    false,
  ),
  busyTimeoutMs: millisecondsOption('PGlite: milliseconds to wait for a folder that another process has open', 0, 0),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export function settingsOf(options: ConnectOptions): Settings {
  const settings = readSettings('PostgreSQL', OPTIONS, options);
  const { schemas } = settings;
  if (schemas === undefined) return settings;
  const schema = settings.schema ?? schemas[0];
  const why =
    schema === undefined || schemas.includes(schema)
      ? schemas.map(schemaProblem).find((problem) => problem !== undefined)
      : `"${schema}" is the schema, and is not one of them.`;
  if (why === undefined) return { ...settings, schema };
  throw new SvcError('config_invalid', 'The schemas of a PostgreSQL database are not valid.', {
    why,
    next: ["Write schemas: ['public', 'billing'] next to the URL: svc's own tables are in the first one."],
  });
}

function schemaProblem(name: string): string | undefined {
  if (name.includes('.')) return `"${name}" has a dot, which separates a schema from a table.`;
  if (/^pg_|^information_schema$/.test(name)) return `"${name}" is a schema of the server.`;
  return undefined;
}

import type { ConnectOptions } from '../../../../core/dialect.ts';
import {
  booleanOption,
  connectTimeoutMs,
  integerOption,
  millisecondsOption,
  readSettings,
  requestTimeoutMs,
  type SettingsOf,
  stringOption,
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
  createSchema: booleanOption('whether the first migration creates `schema` if it does not exist', false),
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
export const settingsOf = (options: ConnectOptions): Settings => readSettings('PostgreSQL', OPTIONS, options);

import type { ConnectOptions } from '../../../core/dialect.ts';
import { connectTimeoutMs, milliseconds, readSettings, type SettingsOf, text, whole } from '../../settings.ts';

/** Puts everything a session can set back to what its startup packet said. */
export const RESET = 'RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL';

/**
 * A database or a role may end a session that waits for an answer, and a transaction that takes its time. No server
 * before 14 and 17 knows these settings, and a startup packet may not ask for what is not known.
 */
export const PATIENT =
  "(SELECT count(set_config(name, '0', false)) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout'))";

export const OPTIONS = {
  schema: text('where tables live; also beside the URL of the database'),
  connectTimeoutMs,
  lockTimeoutMs: milliseconds('milliseconds a statement waits for a table lock before it lets others pass', 500),
  lockRetries: whole('times a step that waited that long is tried again', 20, 0, 1_000_000),
  busyTimeoutMs: milliseconds('PGlite: milliseconds to wait for a folder that another process has open', 0, 0),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions): Settings => readSettings('PostgreSQL', OPTIONS, options);

import type { ConnectOptions } from '../../../core/dialect.ts';
import { connectTimeoutMs, milliseconds, readSettings, type SettingsOf, whole, yesOrNo } from '../../settings.ts';

export const OPTIONS = {
  connectTimeoutMs,
  lockTimeoutMs: milliseconds(
    'milliseconds a statement waits for a table or a row before it lets others pass; both engines count whole seconds',
    500,
  ),
  lockRetries: whole('times a statement that waited that long is tried again', 20, 0, 1_000_000),
  allowCopy: yesOrNo('allows statements that copy a table, to which nobody can write meanwhile', false),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions, title: string): Settings => readSettings(title, OPTIONS, options);

/**
 * Whatever of a session changes what a statement does; sent when it begins, and again behind a text of a user, who may
 * have changed it. A lax sql_mode cuts data and succeeds; a DATETIME is the clock of the session's time zone.
 */
export function sessionText({ lockTimeoutMs }: Pick<Settings, 'lockTimeoutMs'>, autocommit: 0 | 1): string {
  const lockTimeoutS = Math.ceil(lockTimeoutMs / 1000);
  const variables = {
    sql_mode:
      "'STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    time_zone: "'+00:00'",
    // Set to 1 it commits what is open.
    autocommit: String(autocommit),
    foreign_key_checks: '1',
    unique_checks: '1',
    sql_safe_updates: '0',
    sql_auto_is_null: '0',
    sql_select_limit: 'DEFAULT',
    default_storage_engine: 'InnoDB',
    lock_wait_timeout: String(lockTimeoutS),
    innodb_lock_wait_timeout: String(lockTimeoutS),
    wait_timeout: '28800',
    sql_quote_show_create: '1',
  };
  // What MariaDB alone knows, and MySQL takes for a comment: a server may end what takes its time.
  const patient = [
    'max_statement_time',
    'idle_transaction_timeout',
    'idle_readonly_transaction_timeout',
    'idle_write_transaction_timeout',
  ].map((name) => `, ${name} = 0`);
  const set = Object.entries(variables).map(([name, value]) => `${name} = ${value}`);
  return `SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci; SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET SESSION ${set.join(', ')} /*M!${patient.join('')} */`;
}

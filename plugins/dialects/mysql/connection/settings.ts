import type { ConnectOptions } from '../../../../core/dialect.ts';
import {
  booleanOption,
  connectTimeoutMs,
  integerOption,
  millisecondsOption,
  readSettings,
  requestTimeoutMs,
  type SettingsOf,
} from '../../shared/settings.ts';

export const OPTIONS = {
  connectTimeoutMs,
  requestTimeoutMs,
  lockTimeoutMs: millisecondsOption(
    'milliseconds a statement waits for a lock on a table or a row before it is cancelled and retried, rounded up to seconds',
    500,
  ),
  lockRetries: integerOption('times a statement is retried after such a wait', 20, 0, 1_000_000),
  allowCopy: booleanOption('allows statements that copy a table and block writes to it until they finish', false),
  copyRows: integerOption('rows up to which a table of at most 64 MB is copied without that', 1000, 0, 1_000_000_000),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const parseSettings = (options: ConnectOptions, title: string): Settings =>
  readSettings(title, OPTIONS, options);

/**
 * All settings that affect statements. Sent at the start of a session and after each raw statement, which may change
 * them. Without a strict sql_mode, data is truncated without an error.
 */
export function sessionSetupSql({ lockTimeoutMs }: Pick<Settings, 'lockTimeoutMs'>, autocommit: 0 | 1): string {
  const lockTimeoutS = Math.ceil(lockTimeoutMs / 1000);
  const variables = {
    sql_mode:
      "'STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    time_zone: "'+00:00'",
    // 1 commits the open transaction.
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
  // Only MariaDB has these settings; MySQL reads them as a comment.
  const disableTimeouts = [
    'max_statement_time',
    'idle_transaction_timeout',
    'idle_readonly_transaction_timeout',
    'idle_write_transaction_timeout',
  ].map((name) => `, ${name} = 0`);
  // Otherwise no statement may change a table whose rows have a history.
  const keepHistory = ', system_versioning_alter_history = KEEP';
  const set = Object.entries(variables).map(([name, value]) => `${name} = ${value}`);
  return `SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci; SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET SESSION ${set.join(', ')} /*M!${disableTimeouts.join('')}${keepHistory} */`;
}

import type { ConnectOptions } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';

/** What a user may say of a connection, with its defaults. */
export interface Settings {
  readonly connectTimeoutMs: number;
  /** Both engines count whole seconds, from 1. */
  readonly lockTimeoutS: number;
  /** Times a statement that met `lockTimeoutS` is tried again. */
  readonly lockRetries: number;
  /** Statements may rewrite a table while nobody can write to it. */
  readonly allowCopy: boolean;
}

export function settingsOf(options: ConnectOptions, title: string): Settings {
  if (options.schema !== undefined) {
    throw new SvcError('config_invalid', `A ${title} database has no schemas.`, {
      why: `The option schema is ${JSON.stringify(options.schema)}.`,
      next: ['Name the database in the URL and remove the option.'],
    });
  }
  const count = (name: string, otherwise: number): number => {
    const value = options[name];
    if (value === undefined) return otherwise;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
    throw new SvcError('config_invalid', `The option ${name} of a ${title} database cannot be used.`, {
      why: `It is ${JSON.stringify(value)} and not a whole number from 0 on.`,
    });
  };
  return {
    connectTimeoutMs: count('connectTimeoutMs', 10_000),
    lockTimeoutS: Math.max(1, Math.ceil(count('lockTimeoutMs', 500) / 1000)),
    lockRetries: count('lockRetries', 20),
    allowCopy: options.allowCopy === true,
  };
}

/**
 * Whatever of a session changes what a statement does; sent when it begins, and again behind a text of a user, who may
 * have changed it. A lax sql_mode cuts data and succeeds; a DATETIME is the clock of the session's time zone.
 */
export function sessionText({ lockTimeoutS }: Pick<Settings, 'lockTimeoutS'>, autocommit: 0 | 1): string {
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
  };
  const set = Object.entries(variables).map(([name, value]) => `${name} = ${value}`);
  return `SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci; SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET SESSION ${set.join(', ')}`;
}

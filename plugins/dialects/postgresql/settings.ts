import type { ConnectOptions } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';

/** Puts everything a session can set back to what its startup packet said. */
export const RESET = 'RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL';

/** What a user may say of a connection, beside `schema`, with its defaults. */
export interface Settings {
  readonly schema: string | undefined;
  readonly connectTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** Times a segment that met `lockTimeoutMs` is tried again. */
  readonly lockRetries: number;
  /** PGlite: milliseconds to wait for a folder that another process has open. */
  readonly busyTimeoutMs: number;
  readonly onWait: (() => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

export function settingsOf(options: ConnectOptions): Settings {
  return {
    schema: options.schema,
    connectTimeoutMs: count(options.connectTimeoutMs, 10_000, 'connectTimeoutMs'),
    lockTimeoutMs: count(options.lockTimeoutMs, 500, 'lockTimeoutMs'),
    lockRetries: count(options.lockRetries, 20, 'lockRetries'),
    busyTimeoutMs: count(options.busyTimeoutMs, 0, 'busyTimeoutMs'),
    onWait: options.onWait,
    signal: options.signal,
  };
}

function count(value: unknown, otherwise: number, name: string): number {
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new SvcError('config_invalid', `The option ${name} of a PostgreSQL database cannot be used.`, {
    why: `It is ${JSON.stringify(value)} and not a whole number from 0 on.`,
  });
}

import type { ConnectOptions } from '../../../core/dialect.ts';
import { connectTimeoutMs, milliseconds, readSettings, type SettingsOf, whole } from '../../settings.ts';

/** Two processes may differ by a second each in what they take for the server's clock. */
const LEAST_LEASE_MS = 4_000;

export const OPTIONS = {
  connectTimeoutMs,
  requestTimeoutMs: milliseconds('milliseconds to wait for an answer', 30_000),
  patienceMs: milliseconds(
    'milliseconds for which a request that is throttled or not answered is sent again',
    60_000,
    0,
  ),
  leaseMs: milliseconds('milliseconds after which the lock of a process that died is free', 20_000, LEAST_LEASE_MS),
  itemsPerSecond: whole(
    'items that data moves write in a second; without it as many as DynamoDB takes',
    undefined,
    1,
    1_000_000_000,
  ),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions): Settings => readSettings('DynamoDB', OPTIONS, options);

import type { ConnectOptions } from '../../../../core/dialect.ts';
import {
  connectTimeoutMs,
  integerOption,
  millisecondsOption,
  readSettings,
  type SettingsOf,
} from '../../shared/settings.ts';

/** Each process's estimate of the server's clock may be off by a second. */
const MIN_LEASE_MS = 4_000;

export const OPTIONS = {
  connectTimeoutMs,
  requestTimeoutMs: millisecondsOption('milliseconds to wait for a response', 30_000),
  retryTimeoutMs: millisecondsOption('milliseconds for which a throttled or unanswered request is retried', 60_000, 0),
  leaseMs: millisecondsOption("milliseconds before a dead process's lock expires", 20_000, MIN_LEASE_MS),
  itemsPerSecond: integerOption(
    'maximum number of items that data moves write per second; by default half of the capacity',
    undefined,
    1,
    1_000_000_000,
  ),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions): Settings => readSettings('DynamoDB', OPTIONS, options);

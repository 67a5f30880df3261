import type { ConnectOptions } from '../../../../core/dialect.ts';
import {
  connectTimeoutMs,
  integerOption,
  millisecondsOption,
  readSettings,
  type SettingsOf,
} from '../../shared/settings.ts';
import type { Address } from './url.ts';

export const OPTIONS = {
  connectTimeoutMs,
  readTimeoutMs: millisecondsOption(
    'milliseconds a statement may take; the next run checks the outcome of one that takes longer',
    12_000,
  ),
  agreementTimeoutMs: millisecondsOption('milliseconds to wait until every node has the same schema', 30_000, 0),
  indexTimeoutMs: millisecondsOption('milliseconds to wait until every node has built an index', 3_600_000, 0),
  leaseSeconds: integerOption("seconds before a dead process's lock expires; `lease` in the URL", 20, 3, 3600),
  concurrency: integerOption('rows that data moves write concurrently', 64, 1, 1024),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions, { lease }: Address): Settings =>
  readSettings('Cassandra', OPTIONS, { ...options, leaseSeconds: options.leaseSeconds ?? lease });

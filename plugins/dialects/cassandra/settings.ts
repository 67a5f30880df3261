import type { ConnectOptions } from '../../../core/dialect.ts';
import { connectTimeoutMs, milliseconds, readSettings, type SettingsOf, whole } from '../../settings.ts';
import type { Place } from './url.ts';

export const OPTIONS = {
  connectTimeoutMs,
  readTimeoutMs: milliseconds(
    'milliseconds a statement may take; of an answer that comes later the next run finds out',
    12_000,
  ),
  agreementTimeoutMs: milliseconds('milliseconds to wait until every node has the same schema', 30_000, 0),
  indexTimeoutMs: milliseconds('milliseconds to wait until every node has built an index', 3_600_000, 0),
  leaseSeconds: whole('seconds after which the lock of a process that died is free; `lease` in the URL', 20, 3, 3600),
  concurrency: whole('rows written at the same time where data moves', 64, 1, 1024),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions, { lease }: Place): Settings =>
  readSettings('Cassandra', OPTIONS, { ...options, leaseSeconds: options.leaseSeconds ?? lease });

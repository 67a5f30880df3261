import type { ConnectOptions } from '../../../core/dialect.ts';
import { connectTimeoutMs, milliseconds, readSettings, type SettingsOf, whole, yesOrNo } from '../../settings.ts';

export const OPTIONS = {
  connectTimeoutMs,
  leaseMs: milliseconds('milliseconds after which the lock of a process that died is free', 30_000, 1000),
  batchSize: whole('documents that are changed with one command', 1000, 1, 100_000),
  validators: yesOrNo('false for servers that know no validators: only svc itself knows the fields then', true),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions): Settings => readSettings('MongoDB', OPTIONS, options);

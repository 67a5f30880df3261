import type { ConnectOptions } from '../../../../core/dialect.ts';
import {
  booleanOption,
  connectTimeoutMs,
  integerOption,
  millisecondsOption,
  readSettings,
  type SettingsOf,
} from '../../shared/settings.ts';

export const OPTIONS = {
  connectTimeoutMs,
  leaseMs: millisecondsOption("milliseconds before a dead process's lock expires", 30_000, 1000),
  batchSize: integerOption('documents changed with one command', 1000, 1, 100_000),
  validators: booleanOption(
    'false for servers without validators: fields are then described only in `_svc_registry`',
    true,
  ),
};

export type Settings = SettingsOf<typeof OPTIONS>;

/** Throws `config_invalid`. */
export const settingsOf = (options: ConnectOptions): Settings => readSettings('MongoDB', OPTIONS, options);

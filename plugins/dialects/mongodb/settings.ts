import type { ConnectOptions, Progress } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';

/** What a user may say of a connection, with its defaults. */
export interface Settings {
  readonly connectTimeoutMs: number;
  /** Milliseconds for which the migration lock holds without a sign of life of its owner. */
  readonly leaseMs: number;
  /** Documents that are changed with one command. */
  readonly batchSize: number;
  /** False for servers that know no validators: then only svc's own registry knows the fields. */
  readonly validators: boolean;
  readonly onProgress: ((progress: Progress) => void) | undefined;
}

export function settingsOf(options: ConnectOptions): Settings {
  const { validators = true } = options;
  if (typeof validators !== 'boolean') throw unusable('validators', validators, 'neither true nor false');
  return {
    connectTimeoutMs: count(options.connectTimeoutMs, 10_000, 1, 'connectTimeoutMs'),
    leaseMs: count(options.leaseMs, 30_000, 1000, 'leaseMs'),
    batchSize: count(options.batchSize, 1000, 1, 'batchSize'),
    validators,
    onProgress: options.onProgress,
  };
}

function count(value: unknown, otherwise: number, from: number, name: string): number {
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= from) return value;
  throw unusable(name, value, `not a whole number from ${from} on`);
}

function unusable(name: string, value: unknown, why: string): SvcError {
  return new SvcError('config_invalid', `The option ${name} of a MongoDB database cannot be used.`, {
    why: `It is ${JSON.stringify(value)} and ${why}.`,
  });
}

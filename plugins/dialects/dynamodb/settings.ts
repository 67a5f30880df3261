import type { ConnectOptions } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';

/** What this dialect takes, in part beside the options that all have. Times are milliseconds. */
export interface Settings {
  readonly connectTimeoutMs: number;
  /** An answer takes milliseconds; a silent endpoint would be waited for for ever. */
  readonly requestTimeoutMs: number;
  /** How long a request that is throttled or not answered is sent again. */
  readonly patienceMs: number;
  /** After so long without a sign of life the lock is free. */
  readonly leaseMs: number;
  /** How many items data moves write in a second; undefined for as many as DynamoDB takes. */
  readonly itemsPerSecond: number | undefined;
}

/** Two processes may differ by a second each in what they take for the server's clock. */
const LEAST_LEASE_MS = 4_000;

const DEFAULTS = { connectTimeoutMs: 10_000, requestTimeoutMs: 30_000, patienceMs: 60_000, leaseMs: 20_000 } as const;
const LEAST = { connectTimeoutMs: 1, requestTimeoutMs: 1, patienceMs: 0, leaseMs: LEAST_LEASE_MS } as const;

/** Throws `config_invalid`. */
export function settingsOf(options: ConnectOptions): Settings {
  const time = (name: keyof typeof DEFAULTS): number => {
    const given = options[name] ?? DEFAULTS[name];
    if (typeof given === 'number' && given >= LEAST[name]) return given;
    throw refused(name, `It is a number of milliseconds from ${LEAST[name]} on.`);
  };
  const { itemsPerSecond } = options;
  if (itemsPerSecond !== undefined && (typeof itemsPerSecond !== 'number' || !(itemsPerSecond >= 1))) {
    throw refused('itemsPerSecond', 'It is a number from 1 on.');
  }
  return {
    connectTimeoutMs: time('connectTimeoutMs'),
    requestTimeoutMs: time('requestTimeoutMs'),
    patienceMs: time('patienceMs'),
    leaseMs: time('leaseMs'),
    itemsPerSecond,
  };
}

function refused(option: string, why: string): SvcError {
  return new SvcError('config_invalid', `The option "${option}" of a DynamoDB database cannot be used.`, { why });
}

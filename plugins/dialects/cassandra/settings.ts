import type { ConnectOptions, Progress } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Place } from './url.ts';

/** What a user may say of a connection, with its defaults. */
export interface Settings {
  readonly connectTimeoutMs: number;
  /** Milliseconds a statement may take; an answer that comes later counts as unknown. */
  readonly readTimeoutMs: number;
  /** Milliseconds to wait until every node has the same schema. */
  readonly agreementTimeoutMs: number;
  /** Milliseconds to wait until every node has built an index. */
  readonly indexTimeoutMs: number;
  /** Seconds after which the lock of a process that died is free. */
  readonly leaseSeconds: number;
  /** Rows that are written at the same time where data moves. */
  readonly concurrency: number;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

export function settingsOf(options: ConnectOptions, place: Place): Settings {
  return {
    connectTimeoutMs: count(options.connectTimeoutMs, 10_000, 'connectTimeoutMs'),
    readTimeoutMs: count(options.readTimeoutMs, 12_000, 'readTimeoutMs'),
    agreementTimeoutMs: count(options.agreementTimeoutMs, 30_000, 'agreementTimeoutMs'),
    indexTimeoutMs: count(options.indexTimeoutMs, 3_600_000, 'indexTimeoutMs'),
    leaseSeconds: count(options.leaseSeconds ?? place.lease, 20, 'leaseSeconds', 3, 3600),
    concurrency: count(options.concurrency, 64, 'concurrency', 1, 1024),
    onProgress: options.onProgress,
    signal: options.signal,
  };
}

function count(value: unknown, otherwise: number, name: string, least = 0, most = Number.MAX_SAFE_INTEGER): number {
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most) return value;
  throw new SvcError('config_invalid', `The option ${name} of a Cassandra database cannot be used.`, {
    why: `It is ${JSON.stringify(value)} and not a whole number from ${least}${most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ' on'}.`,
  });
}

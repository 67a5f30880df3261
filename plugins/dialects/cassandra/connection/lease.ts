import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { LockOptions } from '../../../../core/dialect.ts';
import { lockLostError, withNothingChanged } from '../../shared/errors.ts';
import { type ClockReading, elapsedMs, LockWait, readClocks } from '../../shared/lock-wait.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { createLockTable, EPOCH_COLUMN, LOCK_SCOPE, LOCK_TABLE, OWNER_COLUMN } from '../records/lock-partition.ts';
import { transactApplied } from '../records/record-writes.ts';
import { isTimeout } from './errors.ts';
import { isObjectUnknown } from './schema-lag.ts';
import type { Row, Session } from './session.ts';
import type { Settings } from './settings.ts';
import { ifMissing } from './system-schema.ts';

const ACQUIRE_POLL = { firstMs: 20, maxMs: 500 };
/** A time to live of n seconds lasts between n-1 and n seconds. */
const TTL_SLACK_MS = 1000;

interface HeldLease {
  readonly owner: string;
  /** Taken before the last request that acquired or renewed it. */
  readonly requestedAt: ClockReading;
}

/**
 * The migration lock: an owner with a time to live and an epoch without one, in the partition of the records written
 * under it. The holder renews it three times per time to live. Each acquisition has a new epoch, so while the epoch is
 * unchanged no other process has leased the lock, even if it expired in between.
 */
export class Lease {
  readonly #session: Session;
  readonly #settings: Settings;
  readonly #leases = new Map<number, HeldLease>();

  constructor(session: Session, settings: Settings) {
    this.#session = session;
    this.#settings = settings;
  }

  async withLock<T>(work: (epoch: number) => Promise<T>, options: LockOptions = {}): Promise<T> {
    const owner = randomUUID();
    const epoch = await this.#acquire(owner, options).catch((error) => {
      throw withNothingChanged(error);
    });
    const stop = this.#startRenewing(owner, epoch);
    try {
      return await work(epoch);
    } finally {
      await stop();
      this.#leases.delete(epoch);
      await this.#release(owner, epoch);
    }
  }

  async isLocked(): Promise<boolean> {
    return Boolean((await this.#readOrElse(async () => undefined))?.[OWNER_COLUMN]);
  }

  /** Called before each DDL statement, which cannot be conditional. Throws `lock_lost`. */
  async assertHeld(epoch: number): Promise<void> {
    const held = this.#leases.get(epoch);
    if (held && elapsedMs(held.requestedAt) < this.#settings.leaseSeconds * 1000 - TTL_SLACK_MS) return;
    if (held && (await this.#renew(held.owner, epoch))) return;
    throw lockLostError();
  }

  #acquire(owner: string, options: LockOptions): Promise<number> {
    const waiting = new LockWait(options);
    const attempt = () =>
      this.#tryAcquire(owner).catch((error) => {
        // Competing processes cause timeouts, and a node may not know a new table yet.
        if (!(isTimeout(error) || isObjectUnknown(error)) || waiting.isOver) throw error;
        return undefined;
      });
    return waiting.poll(attempt, ACQUIRE_POLL);
  }

  async #tryAcquire(owner: string): Promise<number | undefined> {
    const row = await this.#read();
    if (row?.[OWNER_COLUMN] === owner) {
      // An earlier attempt with an unknown outcome has acquired it.
      const ownEpoch = Number(row[EPOCH_COLUMN]);
      return (await this.#renew(owner, ownEpoch)) ? ownEpoch : undefined;
    }
    if (row?.[OWNER_COLUMN]) return undefined;
    const before = row?.[EPOCH_COLUMN] ?? null;
    const epoch = Number(before ?? 0) + 1;
    const requestedAt = readClocks();
    const table = quoteIdentifier(LOCK_TABLE);
    const cql = `BEGIN BATCH UPDATE ${table} USING TTL ? SET ${OWNER_COLUMN} = ? WHERE scope = ? IF ${OWNER_COLUMN} = null AND ${EPOCH_COLUMN} = ?; UPDATE ${table} SET ${EPOCH_COLUMN} = ? WHERE scope = ?; APPLY BATCH`;
    const values = [this.#settings.leaseSeconds, owner, LOCK_SCOPE, before, BigInt(epoch), LOCK_SCOPE];
    const acquired = await transactApplied(this.#session, { cql, values }, async () => {
      const found = await this.#read();
      if (found?.[OWNER_COLUMN] === owner) return true;
      return Number(found?.[EPOCH_COLUMN] ?? 0) === epoch - 1 && !found?.[OWNER_COLUMN] ? undefined : false;
    });
    if (!acquired) return undefined;
    this.#leases.set(epoch, { owner, requestedAt });
    return epoch;
  }

  #read(): Promise<Row | undefined> {
    return this.#readOrElse(async (query) => {
      await createLockTable(this.#session, this.#settings);
      return query();
    });
  }

  /** Calls `otherwise` if the lock table does not exist. */
  #readOrElse(
    otherwise: (query: () => Promise<Row | undefined>) => Promise<Row | undefined>,
  ): Promise<Row | undefined> {
    const cql = `SELECT ${OWNER_COLUMN}, ${EPOCH_COLUMN} FROM ${quoteIdentifier(LOCK_TABLE)} WHERE scope = ? LIMIT 1`;
    const query = async () => (await this.#session.readSerial(cql, [LOCK_SCOPE]))[0];
    return ifMissing(this.#session, LOCK_TABLE, [OWNER_COLUMN], query, () => otherwise(query));
  }

  /** Returns false if another process has leased it since. */
  async #renew(owner: string, epoch: number): Promise<boolean> {
    const requestedAt = readClocks();
    const cql = `UPDATE ${quoteIdentifier(LOCK_TABLE)} USING TTL ? SET ${OWNER_COLUMN} = ? WHERE scope = ? IF ${EPOCH_COLUMN} = ?`;
    const values = [this.#settings.leaseSeconds, owner, LOCK_SCOPE, BigInt(epoch)];
    const renewed = await transactApplied(this.#session, { cql, values }, async () => undefined);
    if (renewed) this.#leases.set(epoch, { owner, requestedAt });
    else this.#leases.delete(epoch);
    return renewed;
  }

  /** Renews it until the returned function is called. The outcome of a failed renewal is unknown, so the next one decides. */
  #startRenewing(owner: string, epoch: number): () => Promise<void> {
    const stopped = new AbortController();
    const renewUntilStopped = async () => {
      do {
        await wait((this.#settings.leaseSeconds * 1000) / 3, undefined, { signal: stopped.signal, ref: false });
      } while (await this.#renew(owner, epoch).catch(() => true));
    };
    const renewing = renewUntilStopped().catch(() => undefined);
    return async () => {
      stopped.abort();
      await renewing;
    };
  }

  /** If the release fails, the lease expires. */
  async #release(owner: string, epoch: number): Promise<void> {
    const cql = `DELETE ${OWNER_COLUMN} FROM ${quoteIdentifier(LOCK_TABLE)} WHERE scope = ? IF ${OWNER_COLUMN} = ? AND ${EPOCH_COLUMN} = ?`;
    await this.#session.transact(cql, [LOCK_SCOPE, owner, BigInt(epoch)]).catch(() => undefined);
  }
}

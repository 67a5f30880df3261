import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { LockOptions } from '../../../core/dialect.ts';
import { LockWait } from '../../lock-wait.ts';
import { type Moment, moment, since } from '../../moment.ts';
import { isTimeOut, unchanged } from './errors.ts';
import { createHome, EPOCH, HOME, OWNER, orMissing, SCOPE } from './home.ts';
import { isNotThere } from './known.ts';
import { quote } from './names.ts';
import { decided, writeLost } from './seat.ts';
import type { Row, Session } from './session.ts';
import type { Settings } from './settings.ts';

const PACE = { firstMs: 20, longestMs: 500 };
/** A time to live of n seconds lasts n-1 to n. */
const TTL_SLACK_MS = 1000;

/** What a holder knows of its own lock. */
interface Held {
  readonly owner: string;
  /** Before it was last asked for. */
  readonly askedAt: Moment;
}

/**
 * The lock: an owner with a time to live, and an epoch without one, in the partition of everything that is written
 * under it. A living holder renews it three times in each life; a dead one's expires. Each holder has an epoch of its
 * own: while that stands nobody else has had the lock since, even where it ran out in between.
 */
export class Lease {
  readonly #session: Session;
  readonly #settings: Settings;
  readonly #held = new Map<number, Held>();

  constructor(session: Session, settings: Settings) {
    this.#session = session;
    this.#settings = settings;
  }

  async exclusively<T>(work: (epoch: number) => Promise<T>, options: LockOptions = {}): Promise<T> {
    const owner = randomUUID();
    const epoch = await this.#acquire(owner, options).catch((error) => {
      throw unchanged(error);
    });
    const stop = this.#keep(owner, epoch);
    try {
      return await work(epoch);
    } finally {
      await stop();
      this.#held.delete(epoch);
      await this.#release(owner, epoch);
    }
  }

  async isHeld(): Promise<boolean> {
    return Boolean((await this.#readOr(async () => undefined))?.[OWNER]);
  }

  /** DDL takes no condition: before each one the holder must be sure that nobody else can have the lock. */
  async assure(epoch: number): Promise<void> {
    const held = this.#held.get(epoch);
    if (held && since(held.askedAt) < this.#settings.leaseSeconds * 1000 - TTL_SLACK_MS) return;
    if (held && (await this.#renew(held.owner, epoch))) return;
    throw writeLost();
  }

  #acquire(owner: string, options: LockOptions): Promise<number> {
    const waiting = new LockWait(options);
    const attempt = () =>
      this.#try(owner).catch((error) => {
        // Those who all want it make each other's questions time out, and a node may not know yet what another one made.
        if (!(isTimeOut(error) || isNotThere(error)) || waiting.isOver) throw error;
        return undefined;
      });
    return waiting.until(attempt, PACE);
  }

  async #try(owner: string): Promise<number | undefined> {
    const row = await this.#read();
    if (row?.[OWNER] === owner) {
      // Of a question before this one nobody could say what had become.
      const mine = Number(row[EPOCH]);
      return (await this.#renew(owner, mine)) ? mine : undefined;
    }
    if (row?.[OWNER]) return undefined;
    const before = row?.[EPOCH] ?? null;
    const epoch = Number(before ?? 0) + 1;
    const askedAt = moment();
    const table = quote(HOME);
    const cql = `BEGIN BATCH UPDATE ${table} USING TTL ? SET ${OWNER} = ? WHERE scope = ? IF ${OWNER} = null AND ${EPOCH} = ?; UPDATE ${table} SET ${EPOCH} = ? WHERE scope = ?; APPLY BATCH`;
    const values = [this.#settings.leaseSeconds, owner, SCOPE, before, BigInt(epoch), SCOPE];
    const won = await decided(this.#session, { cql, values }, async () => {
      const found = await this.#read();
      if (found?.[OWNER] === owner) return true;
      return Number(found?.[EPOCH] ?? 0) === epoch - 1 && !found?.[OWNER] ? undefined : false;
    });
    if (!won) return undefined;
    this.#held.set(epoch, { owner, askedAt });
    return epoch;
  }

  #read(): Promise<Row | undefined> {
    return this.#readOr(async (ask) => {
      await createHome(this.#session, this.#settings);
      return ask();
    });
  }

  /** Or what `otherwise` gives where there is no table for it yet. */
  #readOr(otherwise: (ask: () => Promise<Row | undefined>) => Promise<Row | undefined>): Promise<Row | undefined> {
    const cql = `SELECT ${OWNER}, ${EPOCH} FROM ${quote(HOME)} WHERE scope = ? LIMIT 1`;
    const ask = async () => (await this.#session.serially(cql, [SCOPE]))[0];
    return orMissing(this.#session, HOME, [OWNER], ask, () => otherwise(ask));
  }

  /** Whether nobody else has had it; it is held for another life then. */
  async #renew(owner: string, epoch: number): Promise<boolean> {
    const askedAt = moment();
    const cql = `UPDATE ${quote(HOME)} USING TTL ? SET ${OWNER} = ? WHERE scope = ? IF ${EPOCH} = ?`;
    const values = [this.#settings.leaseSeconds, owner, SCOPE, BigInt(epoch)];
    const renewed = await decided(this.#session, { cql, values }, async () => undefined);
    if (renewed) this.#held.set(epoch, { owner, askedAt });
    else this.#held.delete(epoch);
    return renewed;
  }

  /** Renews it until told to stop. Whether a beat that failed did so nobody knows: the next one, or who must be sure, asks. */
  #keep(owner: string, epoch: number): () => Promise<void> {
    const over = new AbortController();
    const beat = async () => {
      do {
        await wait((this.#settings.leaseSeconds * 1000) / 3, undefined, { signal: over.signal, ref: false });
      } while (await this.#renew(owner, epoch).catch(() => true));
    };
    const beating = beat().catch(() => undefined);
    return async () => {
      over.abort();
      await beating;
    };
  }

  /** One that cannot be given back expires. */
  async #release(owner: string, epoch: number): Promise<void> {
    const cql = `DELETE ${OWNER} FROM ${quote(HOME)} WHERE scope = ? IF ${OWNER} = ? AND ${EPOCH} = ?`;
    await this.#session.transact(cql, [SCOPE, owner, BigInt(epoch)]).catch(() => undefined);
  }
}

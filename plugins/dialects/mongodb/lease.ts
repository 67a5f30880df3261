import { randomUUID } from 'node:crypto';
import type { Collection } from 'mongodb';
import type { LockOptions } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { LockWait } from '../../lock-wait.ts';
import { type Moment, moment, since } from '../../moment.ts';
import { BOUNDED, BY_MAJORITY } from './bounds.ts';
import { codeOf, DUPLICATE_KEY, refusal, unchanged } from './errors.ts';
import type { Server } from './open.ts';

const PACE = { firstMs: 5, longestMs: 200 };
/** Signs of life within one lease. */
const BEATS = 4;
/** Before its end a lease is renewed rather than trusted. */
const MARGIN = 0.25;

/** The one document of `_svc_lock`. It is never deleted: `token` only grows, and is the epoch. */
export interface LeaseDocument {
  readonly _id: 'lock';
  readonly owner: string | null;
  readonly token: number;
  readonly at: Date;
  readonly ttlMs: number;
}

export function leases({ db }: Pick<Server, 'db'>): Collection<LeaseDocument> {
  return db.collection<LeaseDocument>('_svc_lock', BY_MAJORITY);
}

/** The lease of this process: its end counts on this process's clocks, from before it was asked for. */
export class Lease {
  readonly epoch: number;
  readonly #documents: Collection<LeaseDocument>;
  readonly #owner: string;
  readonly #ttlMs: number;
  #renewedAt: Moment;
  #beating: NodeJS.Timeout | undefined;

  constructor(documents: Collection<LeaseDocument>, owner: string, epoch: number, ttlMs: number, asked: Moment) {
    this.#documents = documents;
    this.#owner = owner;
    this.epoch = epoch;
    this.#ttlMs = ttlMs;
    this.#renewedAt = asked;
    // A beat that fails is followed by others; who is about to act asks `hold`.
    this.#beating = setInterval(() => void this.#renew().catch(() => undefined), ttlMs / BEATS).unref();
  }

  /** Throws `lock_lost` unless the lease holds for a good while yet: asked before every command that changes something. */
  async hold(): Promise<void> {
    if (since(this.#renewedAt) < this.#ttlMs * (1 - MARGIN)) return;
    if (!(await this.#renew())) throw lockLost('It was not renewed in time, and another process has taken it.');
  }

  /** Without letting go of it: whoever takes it once it has ended knows that a former owner is to be fenced off. */
  leave(): void {
    clearInterval(this.#beating);
  }

  async release(): Promise<void> {
    this.leave();
    // A lease that nobody can let go of ends by itself.
    await this.#documents
      .updateOne(
        { _id: 'lock', owner: this.#owner, token: this.epoch },
        { $set: { owner: null, at: new Date(0) } },
        BOUNDED,
      )
      .catch(() => undefined);
  }

  async #renew(): Promise<boolean> {
    const asked = moment();
    const { matchedCount } = await this.#documents.updateOne(
      { _id: 'lock', owner: this.#owner, token: this.epoch },
      { $currentDate: { at: true } },
      BOUNDED,
    );
    if (matchedCount > 0 && asked.steady > this.#renewedAt.steady) this.#renewedAt = asked;
    return matchedCount > 0;
  }
}

/** The lock as a bracket: a lease on the server's clock, kept alive while the work lasts, and free by itself once its owner is dead. */
export async function exclusively<T>(
  server: Server,
  leaseMs: number,
  work: (lease: Lease) => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const owner = randomUUID();
  const lease = await new LockWait(options)
    .until(() => acquire(server, owner, leaseMs), PACE)
    .catch((error) => {
      throw unchanged(refusal(error));
    });
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

export async function isLeased(server: Server): Promise<boolean> {
  const held = { $expr: { $gt: [{ $add: ['$at', '$ttlMs'] }, '$$NOW'] } };
  return (await leases(server).findOne({ _id: 'lock', owner: { $ne: null }, ...held }, BOUNDED)) !== null;
}

async function acquire(server: Server, owner: string, ttlMs: number): Promise<Lease | undefined> {
  const documents = leases(server);
  const asked = moment();
  const taken = await tryAcquire(documents, owner, ttlMs);
  if (!taken) return undefined;
  const lease = new Lease(documents, owner, taken.epoch, ttlMs, asked);
  try {
    if (taken.over) await fenceOff(server, taken.epoch);
    return lease;
  } catch (error) {
    lease.leave();
    throw error;
  }
}

/** Whose it was is asked too: an answer that was lost, and the driver's second attempt, must not lock us out. */
async function tryAcquire(
  documents: Collection<LeaseDocument>,
  owner: string,
  ttlMs: number,
): Promise<{ readonly epoch: number; readonly over: boolean } | undefined> {
  const free = { $expr: { $lte: [{ $add: ['$at', '$ttlMs'] }, '$$NOW'] } };
  const taken = await documents.findOneAndUpdate(
    { _id: 'lock', ...free },
    { $set: { owner, ttlMs }, $currentDate: { at: true }, $inc: { token: 1 } },
    { returnDocument: 'before', ...BOUNDED },
  );
  if (taken) return { epoch: taken.token + 1, over: taken.owner !== null };
  const known = await documents.findOne({ _id: 'lock' }, BOUNDED);
  if (known) return known.owner === owner ? { epoch: known.token, over: true } : undefined;
  await seed(documents);
  return tryAcquire(documents, owner, ttlMs);
}

/** Every record that an owner has written under its epoch carries it, and loses to a later one. */
export const EPOCH = '_epoch';

/** What the epoch of a record must not be, for a write of this one. */
export const notLater = (epoch: number) => ({ [EPOCH]: { $not: { $gt: epoch } } });

/**
 * The owner before did not let go: it may be alive, and wake up between two commands. What it knows of gets the new epoch,
 * so that a write that is late finds nothing to change. A record it would insert is one that the new owner would too.
 */
async function fenceOff({ db }: Server, epoch: number): Promise<void> {
  const listed = await db.listCollections({ name: /^_svc_/ }, { nameOnly: true }).toArray();
  for (const { name } of listed) {
    const records = db.collection(name, BY_MAJORITY);
    await records.updateMany({ [EPOCH]: { $lt: epoch } }, { $set: { [EPOCH]: epoch } });
  }
}

/** Throws `lock_lost` where another one holds or has held the lock since. */
export async function checkEpoch(server: Server, epoch: number): Promise<void> {
  const known = await leases(server).findOne({ _id: 'lock' }, BOUNDED);
  if (known && known.token !== epoch) throw lockLost('The epoch it was taken under is over.');
}

async function seed(documents: Collection<LeaseDocument>): Promise<void> {
  const first = { owner: null, token: 0, at: new Date(0), ttlMs: 0 };
  try {
    await documents.updateOne({ _id: 'lock' }, { $setOnInsert: first }, { upsert: true, ...BOUNDED });
  } catch (error) {
    // Another one was first.
    if (codeOf(error) !== DUPLICATE_KEY) throw error;
  }
}

export function lockLost(why: string, cause?: unknown): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost: another process has moved on.', {
    why,
    next: ['Run the command again.'],
    ...(cause !== undefined && { cause }),
  });
}

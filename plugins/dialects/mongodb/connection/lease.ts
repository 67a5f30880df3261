import { randomUUID } from 'node:crypto';
import type { Collection } from 'mongodb';
import type { LockOptions } from '../../../../core/dialect.ts';
import { lockLostError, withNothingChanged } from '../../shared/errors.ts';
import { type ClockReading, elapsedMs, LockWait, readClocks } from '../../shared/lock-wait.ts';
import { codeOf, DUPLICATE_KEY, toSvcError } from './errors.ts';
import { MAJORITY_WITH_TIME_LIMIT, type MongoServer, TIME_LIMIT } from './server.ts';

const POLL = { firstMs: 5, maxMs: 200 };
const RENEWALS_PER_LEASE = 4;
/** The last fraction of a lease, in which it is renewed before each change. */
const RENEWAL_MARGIN = 0.25;

/** The only document of `_svc_lock`. It is never deleted; `token` is the epoch and only grows. */
interface LeaseDocument {
  readonly _id: 'lock';
  readonly owner: string | null;
  readonly token: number;
  readonly at: Date;
  readonly ttlMs: number;
}

function leaseCollection({ db }: Pick<MongoServer, 'db'>): Collection<LeaseDocument> {
  return db.collection<LeaseDocument>('_svc_lock', MAJORITY_WITH_TIME_LIMIT);
}

/** A lease of this process. Its time counts on this process's clocks, from before the request was sent. */
export class Lease {
  readonly epoch: number;
  readonly #documents: Collection<LeaseDocument>;
  readonly #owner: string;
  readonly #ttlMs: number;
  #renewedAt: ClockReading;
  #renewTimer: NodeJS.Timeout | undefined;

  constructor(
    documents: Collection<LeaseDocument>,
    owner: string,
    epoch: number,
    ttlMs: number,
    requestedAt: ClockReading,
  ) {
    this.#documents = documents;
    this.#owner = owner;
    this.epoch = epoch;
    this.#ttlMs = ttlMs;
    this.#renewedAt = requestedAt;
    // A failed renewal is followed by others, and `assertHeld` checks before every change.
    this.#renewTimer = setInterval(() => void this.#renew().catch(() => undefined), ttlMs / RENEWALS_PER_LEASE).unref();
  }

  /** Throws `lock_lost` if the lease has ended; renews one that is about to end. Called before every change. */
  async assertHeld(): Promise<void> {
    if (elapsedMs(this.#renewedAt) < this.#ttlMs * (1 - RENEWAL_MARGIN)) return;
    if (!(await this.#renew()))
      throw lockLostError(undefined, 'It was not renewed in time, and another process acquired it.');
  }

  /** Keeps the lease until it ends, so that the next owner knows that it must fence this one. */
  stopRenewing(): void {
    clearInterval(this.#renewTimer);
  }

  async release(): Promise<void> {
    this.stopRenewing();
    // A lease that cannot be released ends by itself.
    await this.#documents
      .updateOne(
        { _id: 'lock', owner: this.#owner, token: this.epoch },
        { $set: { owner: null, at: new Date(0) } },
        TIME_LIMIT,
      )
      .catch(() => undefined);
  }

  async #renew(): Promise<boolean> {
    const requestedAt = readClocks();
    const { matchedCount } = await this.#documents.updateOne(
      { _id: 'lock', owner: this.#owner, token: this.epoch },
      { $currentDate: { at: true } },
      TIME_LIMIT,
    );
    if (matchedCount > 0 && requestedAt.monotonicMs > this.#renewedAt.monotonicMs) this.#renewedAt = requestedAt;
    return matchedCount > 0;
  }
}

/** Runs `work` under a lease on the server's clock, which is renewed until `work` ends and expires if its owner dies. */
export async function withLeaseLock<T>(
  server: MongoServer,
  leaseMs: number,
  work: (lease: Lease) => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const owner = randomUUID();
  const lease = await new LockWait(options)
    .poll(() => acquire(server, owner, leaseMs), POLL)
    .catch((error) => {
      throw withNothingChanged(toSvcError(error));
    });
  try {
    return await work(lease);
  } finally {
    await lease.release();
  }
}

export async function isLocked(server: MongoServer): Promise<boolean> {
  const notExpired = { $expr: { $gt: [{ $add: ['$at', '$ttlMs'] }, '$$NOW'] } };
  return (
    (await leaseCollection(server).findOne({ _id: 'lock', owner: { $ne: null }, ...notExpired }, TIME_LIMIT)) !== null
  );
}

async function acquire(server: MongoServer, owner: string, ttlMs: number): Promise<Lease | undefined> {
  const documents = leaseCollection(server);
  const requestedAt = readClocks();
  const acquired = await tryAcquire(documents, owner, ttlMs);
  if (!acquired) return undefined;
  const lease = new Lease(documents, owner, acquired.epoch, ttlMs, requestedAt);
  try {
    if (acquired.tookOver) await fenceFormerOwners(server, acquired.epoch);
    return lease;
  } catch (error) {
    lease.stopRenewing();
    throw error;
  }
}

/** Also succeeds if `owner` has the lease already: the response to an earlier attempt may have been lost. */
async function tryAcquire(
  documents: Collection<LeaseDocument>,
  owner: string,
  ttlMs: number,
): Promise<{ readonly epoch: number; readonly tookOver: boolean } | undefined> {
  const free = { $expr: { $lte: [{ $add: ['$at', '$ttlMs'] }, '$$NOW'] } };
  const acquired = await documents.findOneAndUpdate(
    { _id: 'lock', ...free },
    { $set: { owner, ttlMs }, $currentDate: { at: true }, $inc: { token: 1 } },
    { returnDocument: 'before', ...TIME_LIMIT },
  );
  if (acquired) return { epoch: acquired.token + 1, tookOver: acquired.owner !== null };
  const current = await documents.findOne({ _id: 'lock' }, TIME_LIMIT);
  if (current) return current.owner === owner ? { epoch: current.token, tookOver: true } : undefined;
  await createLeaseDocument(documents);
  return tryAcquire(documents, owner, ttlMs);
}

/** The field of a record with the epoch it was last written under. */
export const EPOCH = '_epoch';

/** A filter that no record written under a later epoch matches. */
export const notAfterEpoch = (epoch: number) => ({ [EPOCH]: { $not: { $gt: epoch } } });

/**
 * The former owner did not release the lease: it may be alive, suspended between two commands. Existing records get
 * the new epoch, so that its late writes match nothing. A record that it inserts is one that the new owner would insert.
 */
async function fenceFormerOwners({ db }: MongoServer, epoch: number): Promise<void> {
  const listed = await db.listCollections({ name: /^_svc_/ }, { nameOnly: true }).toArray();
  for (const { name } of listed) {
    const records = db.collection(name, MAJORITY_WITH_TIME_LIMIT);
    await records.updateMany({ [EPOCH]: { $lt: epoch } }, { $set: { [EPOCH]: epoch } });
  }
}

/** Throws `lock_lost` if the lock was acquired again after this epoch. */
export async function assertEpoch(server: MongoServer, epoch: number): Promise<void> {
  const current = await leaseCollection(server).findOne({ _id: 'lock' }, TIME_LIMIT);
  if (current && current.token !== epoch)
    throw lockLostError(undefined, 'The lock was acquired by another process since.');
}

async function createLeaseDocument(documents: Collection<LeaseDocument>): Promise<void> {
  const first = { owner: null, token: 0, at: new Date(0), ttlMs: 0 };
  try {
    await documents.updateOne({ _id: 'lock' }, { $setOnInsert: first }, { upsert: true, ...TIME_LIMIT });
  } catch (error) {
    // Another process was first.
    if (codeOf(error) !== DUPLICATE_KEY) throw error;
  }
}

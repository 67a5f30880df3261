import { randomUUID } from 'node:crypto';
import type { Connection, LockOptions } from '../../../core/dialect.ts';
import { anyDefinition, type RecordDefinition } from '../../../core/records.ts';
import { SerialQueue } from '../../shared/serial-queue.ts';
import { LockWait } from './lock-wait.ts';

const BACKOFF = { firstMs: 5, maxMs: 200 };
/** How long a dead holder blocks other processes. */
const LEASE_MS = 10_000;
const RENEWALS_PER_LEASE = 4;

export interface Lease {
  readonly id: string;
  /** Incremented each time the lock is acquired. */
  readonly epoch: number;
  readonly owner: string | null;
  readonly until: Date;
}

/** Holds the single lock record. Created when the lock is first acquired. */
export const leaseTable: RecordDefinition<Lease> = {
  collection: '_svc_lock',
  key: 'id',
  columns: {
    id: { type: 'string' },
    epoch: { type: 'bigint' },
    owner: { type: 'string', nullable: true },
    until: { type: 'timestamp' },
  },
  indexes: [],
};
const ID = 'lock';

export type LeaseStore = Pick<Connection, 'records' | 'ensureTables' | 'now'>;

/**
 * `Connection.withLock` for an engine without session locks: a lease record, renewed by the engine's clock while `work`
 * runs. A holder whose lease expires can lose the lock, so `run` and `replace` must check that their epoch is
 * still that of the record.
 */
export async function withLeaseLock<T>(
  store: LeaseStore,
  work: (epoch: number) => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const wait = new LockWait(options);
  const owner = randomUUID();
  await store.ensureTables([anyDefinition(leaseTable)]);
  const epoch = await wait.poll(() => tryAcquire(store, owner), BACKOFF);
  return keepAlive(store, owner, () => work(epoch));
}

export async function isLeased(store: LeaseStore): Promise<boolean> {
  const found = await store.records(leaseTable).get(ID);
  return found !== undefined && found.record.owner !== null && found.record.until > (await store.now());
}

async function tryAcquire(store: LeaseStore, owner: string): Promise<number | undefined> {
  const records = store.records(leaseTable);
  const now = (await store.now()).getTime();
  const found = await records.get(ID);
  const next = { id: ID, epoch: (found?.record.epoch ?? 0) + 1, owner, until: new Date(now + LEASE_MS) };
  if (!found) return (await records.insert(next)) === 'inserted' ? next.epoch : undefined;
  const { owner: holder, until } = found.record;
  if (holder !== null && until.getTime() > now) return undefined;
  return (await records.replace(ID, found.version, next)) === 'replaced' ? next.epoch : undefined;
}

async function keepAlive<T>(store: LeaseStore, owner: string, work: () => Promise<T>): Promise<T> {
  const records = store.records(leaseTable);
  const queue = new SerialQueue();
  const change = (holder: string | null, durationMs: number) =>
    queue.run(async () => {
      const found = await records.get(ID);
      if (found?.record.owner !== owner) return;
      const until = new Date((await store.now()).getTime() + durationMs);
      await records.replace(ID, found.version, { ...found.record, owner: holder, until });
    });
  // A failed renewal is followed by others. A lease that cannot be released expires.
  const renewal = setInterval(
    () => void change(owner, LEASE_MS).catch(() => undefined),
    LEASE_MS / RENEWALS_PER_LEASE,
  ).unref();
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    await change(null, 0).catch(() => undefined);
  }
}

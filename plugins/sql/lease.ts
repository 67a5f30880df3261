import { randomUUID } from 'node:crypto';
import type { Connection, LockOptions } from '../../core/dialect.ts';
import { anyDefinition, type RecordDefinition } from '../../core/records.ts';
import { LockWait } from '../lock-wait.ts';
import { Queue } from './queue.ts';

const PACE = { firstMs: 5, longestMs: 200 };
/** A holder that died is in the way for so long. */
const LEASE_MS = 10_000;
/** Signs of life within one lease. */
const BEATS = 4;

export interface Lease {
  readonly id: string;
  /** How often the lock was taken. */
  readonly epoch: number;
  readonly owner: string | null;
  readonly until: Date;
}

/** The one record of the lock; its table is made when the lock is first taken. */
export const LEASES: RecordDefinition<Lease> = {
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

export type LeasePlace = Pick<Connection, 'records' | 'ensure' | 'now'>;

/**
 * `Connection.exclusively` for an engine that has no lock of its own which ends with its session: a record that is kept
 * alive, on the clock of the engine, while the work lasts. Who is no longer kept alive has lost it when the next one
 * came: `run` and `replace` have to ask whether their epoch is still that of the record.
 */
export async function leased<T>(
  place: LeasePlace,
  work: (epoch: number) => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const waiting = new LockWait(options);
  const owner = randomUUID();
  await place.ensure([anyDefinition(LEASES)]);
  const epoch = await waiting.until(() => take(place, owner), PACE);
  return hold(place, owner, () => work(epoch));
}

export async function isLeased(place: LeasePlace): Promise<boolean> {
  const found = await place.records(LEASES).get(ID);
  return found !== undefined && found.record.owner !== null && found.record.until > (await place.now());
}

async function take(place: LeasePlace, owner: string): Promise<number | undefined> {
  const records = place.records(LEASES);
  const now = (await place.now()).getTime();
  const found = await records.get(ID);
  const next = { id: ID, epoch: (found?.record.epoch ?? 0) + 1, owner, until: new Date(now + LEASE_MS) };
  if (!found) return (await records.insert(next)) === 'inserted' ? next.epoch : undefined;
  const { owner: holder, until } = found.record;
  if (holder !== null && until.getTime() > now) return undefined;
  return (await records.replace(ID, found.version, next)) === 'replaced' ? next.epoch : undefined;
}

async function hold<T>(place: LeasePlace, owner: string, work: () => Promise<T>): Promise<T> {
  const records = place.records(LEASES);
  const queue = new Queue();
  const change = (holder: string | null, forMs: number) =>
    queue.run(async () => {
      const found = await records.get(ID);
      if (found?.record.owner !== owner) return;
      const until = new Date((await place.now()).getTime() + forMs);
      await records.replace(ID, found.version, { ...found.record, owner: holder, until });
    });
  // A beat that fails is followed by others; a lease that nobody can let go of ends by itself.
  const beats = setInterval(() => void change(owner, LEASE_MS).catch(() => undefined), LEASE_MS / BEATS).unref();
  try {
    return await work();
  } finally {
    clearInterval(beats);
    await change(null, 0).catch(() => undefined);
  }
}

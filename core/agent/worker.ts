import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { StorageBackend } from '../approval/backend.ts';
import { CLOCK, type RecordStore } from '../records.ts';
import { type WorkerRow, workerRecords } from './execution-record.ts';

export const LEASE_MS = 15_000;

/**
 * This process as a row in the store: one heartbeat for all its executions. The lease is measured on the monotonic
 * clock, starting before the heartbeat is sent, so it ends here before it ends for any other process.
 */
export class Worker {
  /** Short, because every execution stores it. */
  readonly id = randomBytes(12).toString('base64url');
  readonly #store: RecordStore<WorkerRow>;
  readonly #leaseMs: number;
  readonly #onLost: () => void;
  #lost = false;
  #version = 1;
  #beat = 1;
  #leaseEnd = 0;
  #renewal: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(backend: StorageBackend, leaseMs: number, onLost: () => void) {
    this.#store = backend.records(workerRecords);
    this.#leaseMs = leaseMs;
    this.#onLost = onLost;
  }

  /** Calls `onLost` once other workers may have taken over the executions of this one. */
  static async start(backend: StorageBackend, leaseMs: number, onLost: () => void): Promise<Worker> {
    const worker = new Worker(backend, leaseMs, onLost);
    const before = performance.now();
    await worker.#store.insert(worker.#row('alive'));
    worker.#leaseEnd = before + leaseMs;
    worker.#timer = setInterval(() => void worker.#renew(), leaseMs / 3).unref();
    return worker;
  }

  /** True if no other process can be running an execution of this worker. Renews a lease that has run out. */
  async hasLease(): Promise<boolean> {
    if (this.#lost) return false;
    return performance.now() < this.#leaseEnd || this.#renew();
  }

  /** Releases the lease, so that others can take over the executions at once. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewal;
    if (this.#lost) return;
    this.#lost = true;
    await this.#store.replace(this.id, this.#version, this.#row('dead'));
  }

  #renew(): Promise<boolean> {
    this.#renewal ??= this.#sendHeartbeat().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  /** A stored heartbeat proves that no process has declared this worker dead, however late it is. */
  async #sendHeartbeat(): Promise<boolean> {
    if (this.#lost) return false;
    const before = performance.now();
    try {
      this.#beat += 1;
      const result = await this.#store.replace(this.id, this.#version, this.#row('alive'));
      if (result === 'replaced' || (await this.#isStored())) {
        this.#version += 1;
        this.#leaseEnd = before + this.#leaseMs;
        return true;
      }
    } catch {
      // The store is unavailable. Until the lease ends, the next heartbeat may succeed.
      if (performance.now() < this.#leaseEnd) return true;
    }
    clearInterval(this.#timer);
    this.#lost = true;
    this.#onLost();
    return false;
  }

  /** Whether this heartbeat was stored by an earlier attempt whose response was lost. */
  async #isStored(): Promise<boolean> {
    const found = await this.#store.get(this.id);
    return found?.record.state === 'alive' && found.record.beat === this.#beat && found.version === this.#version + 1;
  }

  #row(state: WorkerRow['state']) {
    const at = `${hostname()} ${process.pid}`;
    return { workerId: this.id, state, beatAt: CLOCK, beat: this.#beat, leaseMs: this.#leaseMs, at } as const;
  }
}

/** Declares a worker dead if its lease has ended. True if it is dead, which is final. */
export async function markDeadIfExpired(backend: StorageBackend, workerId: string): Promise<boolean> {
  const store = backend.records(workerRecords);
  const found = await store.get(workerId);
  if (!found || found.record.state === 'dead') return true;
  const { record, version } = found;
  if ((await backend.now()).getTime() <= record.beatAt.getTime() + record.leaseMs) return false;
  const result = await store.replace(workerId, version, { ...record, state: 'dead' });
  return result === 'replaced' || result === 'missing' || (await store.get(workerId))?.record.state === 'dead';
}

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { StoreHome } from '../approval/home.ts';
import { CLOCK, type RecordStore } from '../records.ts';
import { type WorkerRow, workers } from './execution.ts';

export const LEASE_MS = 15_000;

/**
 * This process as the store knows it: one beat for all its executions. The lease counts on the monotonic clock from
 * before the beat was sent, so that it ends here before anybody else sees it end.
 */
export class Worker {
  /** Short: every execution carries one. */
  readonly id = randomBytes(12).toString('base64url');
  readonly #store: RecordStore<WorkerRow>;
  readonly #leaseMs: number;
  readonly #onLost: () => void;
  #lost = false;
  #version = 1;
  #beat = 1;
  #until = 0;
  #beating: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(home: StoreHome, leaseMs: number, onLost: () => void) {
    this.#store = home.records(workers);
    this.#leaseMs = leaseMs;
    this.#onLost = onLost;
  }

  /** `onLost` is told once others may have taken what this worker ran. */
  static async start(home: StoreHome, leaseMs: number, onLost: () => void): Promise<Worker> {
    const worker = new Worker(home, leaseMs, onLost);
    const before = performance.now();
    await worker.#store.insert(worker.#row('alive'));
    worker.#until = before + leaseMs;
    worker.#timer = setInterval(() => void worker.#renew(), leaseMs / 3).unref();
    return worker;
  }

  get isLost(): boolean {
    return this.#lost;
  }

  /** True when nobody else can be running what belongs to this worker: asked before anything begins. */
  async holds(): Promise<boolean> {
    if (this.#lost) return false;
    return performance.now() < this.#until || this.#renew();
  }

  /** Leaves its executions to others at once. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    if (this.#lost) return;
    this.#lost = true;
    await this.#store.replace(this.id, this.#version, this.#row('dead'));
  }

  /** A beat that the store took proves that nobody had declared this worker dead, however late it came. */
  #renew(): Promise<boolean> {
    this.#beating ??= this.#send().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #send(): Promise<boolean> {
    if (this.#lost) return false;
    const before = performance.now();
    try {
      this.#beat += 1;
      const answer = await this.#store.replace(this.id, this.#version, this.#row('alive'));
      if (answer === 'replaced' || (await this.#wasOurs())) {
        this.#version += 1;
        this.#until = before + this.#leaseMs;
        return true;
      }
    } catch {
      // The store does not answer: as long as the lease lasts the next beat may come through.
      if (performance.now() < this.#until) return true;
    }
    clearInterval(this.#timer);
    this.#lost = true;
    this.#onLost();
    return false;
  }

  /** A beat whose answer was lost was sent twice: the second one finds the first. */
  async #wasOurs(): Promise<boolean> {
    const found = await this.#store.get(this.id);
    return found?.record.state === 'alive' && found.record.beat === this.#beat && found.version === this.#version + 1;
  }

  #row(state: WorkerRow['state']) {
    const at = `${hostname()} ${process.pid}`;
    return { workerId: this.id, state, beatAt: CLOCK, beat: this.#beat, leaseMs: this.#leaseMs, at } as const;
  }
}

/** True once nobody can beat for this worker any more: it said good-bye, or its lease is over and it is declared dead. */
export async function isDead(home: StoreHome, workerId: string): Promise<boolean> {
  const store = home.records(workers);
  const found = await store.get(workerId);
  if (!found || found.record.state === 'dead') return true;
  const { record, version } = found;
  if ((await home.now()).getTime() <= record.beatAt.getTime() + record.leaseMs) return false;
  const answer = await store.replace(workerId, version, { ...record, state: 'dead' });
  return answer === 'replaced' || answer === 'missing' || (await store.get(workerId))?.record.state === 'dead';
}

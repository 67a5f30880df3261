import { randomUUID } from 'node:crypto';
import type { StoreHome } from '../approval/home.ts';
import { SvcError } from '../errors.ts';
import { CLOCK, type RecordStore, type Versioned } from '../records.ts';
import { type ExecutionRow, executions, type WorkerRow, workers } from './execution.ts';
import { HeldExecution } from './held-execution.ts';
import { isDead, Worker } from './worker.ts';

/** Who owns which execution, as far as this process has to do with it. */
export class Claims {
  readonly #home: StoreHome;
  readonly #rows: RecordStore<ExecutionRow>;
  readonly #workers: RecordStore<WorkerRow>;
  readonly #leaseMs: number;
  readonly #onLost: () => void;
  #worker: Promise<Worker> | undefined;
  #closed = false;

  /** `onLost` is told when others may have taken what this process owned. */
  constructor(home: StoreHome, leaseMs: number, onLost: () => void) {
    this.#home = home;
    this.#rows = home.records(executions);
    this.#workers = home.records(workers);
    this.#leaseMs = leaseMs;
    this.#onLost = onLost;
  }

  /** This process as a worker; another one where the last was declared dead. */
  async worker(): Promise<Worker> {
    for (;;) {
      if (this.#closed) throw new SvcError('interrupted', 'The client is closed.', { next: ['Make a new client.'] });
      this.#worker ??= Worker.start(this.#home, this.#leaseMs, this.#onLost);
      const current = this.#worker;
      try {
        const worker = await current;
        if (await worker.holds()) return worker;
        this.#drop(current);
      } catch (error) {
        this.#drop(current);
        throw error;
      }
    }
  }

  /** Nobody can be running it: not its worker, and not another run of this process, which has one for each execution. */
  async isFree({ owner }: ExecutionRow): Promise<boolean> {
    const own = await this.#worker?.catch(() => undefined);
    return owner === '' || owner === own?.id || isDead(this.#home, owner);
  }

  /** Makes it ours, if nobody else did so first. */
  async claim({ record, version }: Versioned<ExecutionRow>): Promise<HeldExecution | undefined> {
    const worker = await this.worker();
    const claim = randomUUID();
    const { error: _, ...state } = structuredClone(record.state);
    const mine: ExecutionRow = {
      ...record,
      status: 'running',
      owner: worker.id,
      state: { ...state, write: state.write + 1, claim },
    };
    const answer = await this.#rows.replace(record.executionId, version, { ...mine, updatedAt: CLOCK });
    if (answer !== 'replaced') {
      // The answer to a first attempt may have been lost.
      const found = answer === 'stale' ? await this.#rows.get(record.executionId) : undefined;
      if (found?.record.state.claim !== claim || found.version !== version + 1) return undefined;
    }
    return new HeldExecution(this.#home, { record: mine, version: version + 1 }, worker);
  }

  /** Those that said good-bye, and those that are declared dead now because their lease is over. */
  async deadWorkers(): Promise<readonly string[]> {
    const alive = await this.#workers.page('byState', { equals: { state: 'alive' }, limit: 1000 });
    const now = (await this.#home.now()).getTime();
    for (const { record } of alive.records) {
      if (record.beatAt.getTime() + record.leaseMs < now) await isDead(this.#home, record.workerId);
    }
    return this.#dead();
  }

  /** Forgets the dead that own nothing any more and were last heard of before that moment. */
  async prune(before: Date): Promise<void> {
    await this.deadWorkers();
    for (const owner of await this.#dead(before)) {
      const { records } = await this.#rows.page('byOwner', { equals: { owner }, limit: 1 });
      if (records.length === 0) await this.forget(owner);
    }
  }

  /** A dead worker that owns nothing any more. */
  async forget(workerId: string): Promise<void> {
    const found = await this.#workers.get(workerId);
    if (found?.record.state === 'dead') await this.#workers.remove(workerId, found.version);
  }

  /** Says good-bye, so that others may go on at once. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = await this.#worker?.catch(() => undefined);
    await worker?.stop().catch(() => undefined);
  }

  /** All of them: what the first thousand own may be nobody's to take over here. */
  async #dead(to?: Date): Promise<readonly string[]> {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#workers.page('byState', {
        equals: { state: 'dead' },
        limit: 1000,
        ...(to && { to }),
        ...(cursor !== undefined && { cursor }),
      });
      found.push(...page.records.map(({ record }) => record.workerId));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  /** The next who asks starts another, and of many who ask at once only one does. */
  #drop(worker: Promise<Worker>): void {
    if (this.#worker === worker) this.#worker = undefined;
  }
}

import { randomUUID } from 'node:crypto';
import type { StorageBackend } from '../approval/backend.ts';
import { SvcError } from '../errors.ts';
import { allRows, CLOCK, type RecordStore, type Versioned } from '../records.ts';
import {
  type ExecutionRow,
  type ExecutionState,
  type ExecutionStatus,
  executionRecords,
  type WorkerRow,
  workerRecords,
} from './execution-record.ts';
import { markDeadIfExpired, Worker } from './worker.ts';

type FinalStatus = Exclude<ExecutionStatus, 'running'>;

/** An execution that a worker of this process owns. Every write is a compare-and-set, so a former owner's write fails. */
export class LeasedExecution {
  readonly #store: RecordStore<ExecutionRow>;
  readonly #worker: Worker;
  #row: ExecutionRow;
  #version: number;
  #saving: Promise<void> = Promise.resolve();
  #nextSave: Promise<void> | undefined;
  #finalStatus: FinalStatus | undefined;
  #onCancelRequested: (reason: string) => void = () => {};

  constructor(backend: StorageBackend, { record, version }: Versioned<ExecutionRow>, worker: Worker) {
    this.#store = backend.records(executionRecords);
    this.#row = record;
    this.#version = version;
    this.#worker = worker;
  }

  get executionId(): string {
    return this.#row.executionId;
  }

  get createdAt(): Date {
    return this.#row.createdAt;
  }

  /** Changed in place; `save` stores it. */
  get state(): ExecutionState {
    return this.#row.state;
  }

  /** Throws `execution_lost` if another worker may have taken it over. Called before any step begins. */
  async assertLease(): Promise<void> {
    if (!(await this.#worker.hasLease())) throw executionLostError(this.executionId);
  }

  /** Calls `listener` once a write or a refresh finds that another process has requested cancellation. */
  onCancelRequested(listener: (reason: string) => void): void {
    this.#onCancelRequested = listener;
    if (this.state.cancel !== undefined) listener(this.state.cancel);
  }

  /** Reads the row to find a lost lease or a cancellation, before a step that writes nothing first. */
  async refresh(): Promise<void> {
    const found = await this.#store.get(this.executionId);
    if (found?.record.owner !== this.#worker.id) throw executionLostError(this.executionId);
    this.#requestCancel(found.record.state.cancel);
  }

  /** Stores the state. Changes made while a write is in flight are part of the next write. */
  save(): Promise<void> {
    this.#nextSave ??= this.#saving.then(() => {
      this.#nextSave = undefined;
      return this.#write();
    });
    const saving = this.#nextSave;
    this.#saving = saving.catch(() => undefined);
    return saving;
  }

  /** Stores the final status and gives up the lease. Returns `cancelled` if a cancellation was requested before. */
  async finish(status: FinalStatus): Promise<FinalStatus> {
    this.#finalStatus = status;
    await this.save();
    return this.#finalStatus;
  }

  async #write(): Promise<void> {
    const { executionId, state } = this.#row;
    state.write += 1;
    for (;;) {
      const written = { ...this.#row, ...(this.#finalStatus && { status: this.#finalStatus, owner: '' }) };
      const result = await writeExecution(this.#store, written, this.#version);
      if ('written' in result) {
        this.#version = result.written.version;
        return;
      }
      const found = result.conflict;
      if (!found || found.record.state.claim !== state.claim) throw executionLostError(executionId);
      const { status, owner } = found.record;
      const { write, cancel } = found.record.state;
      // If the response to a write is lost, the write is sent again although the first attempt was stored.
      const isWritten = write === state.write && status === written.status && owner === written.owner;
      // A process that does not own an execution writes only a cancellation request.
      const isCancelRequest = write === state.write - 1 && owner === this.#row.owner && cancel !== undefined;
      if (!isWritten && !isCancelRequest) throw executionLostError(executionId);
      this.#version = found.version;
      this.#requestCancel(cancel);
      if (isWritten) return;
      if (this.#finalStatus && cancel !== undefined) {
        this.#finalStatus = 'cancelled';
        state.reason ??= cancel;
      }
    }
  }

  #requestCancel(reason: string | undefined): void {
    if (reason === undefined || this.state.cancel !== undefined) return;
    this.state.cancel = reason;
    this.#onCancelRequested(reason);
  }
}

/** After a conflict, returns the current row: it may be the one of a write whose response was lost. */
async function writeExecution(
  store: RecordStore<ExecutionRow>,
  record: ExecutionRow,
  version: number,
): Promise<{ readonly written: Versioned<ExecutionRow> } | { readonly conflict: Versioned<ExecutionRow> | undefined }> {
  const { executionId } = record;
  const result = await store.replace(executionId, version, { ...record, updatedAt: CLOCK });
  if (result === 'replaced') return { written: { record, version: version + 1 } };
  return { conflict: result === 'stale' ? await store.get(executionId) : undefined };
}

export function executionLostError(executionId: string): SvcError {
  return new SvcError('execution_lost', `The execution ${executionId} no longer belongs to this process.`, {
    why: 'Its lease ended before it could be renewed, and another worker may have taken it over.',
    state: 'All completed steps are stored. The worker that takes it over resumes from there.',
  });
}

/** The leases of this process's executions, and the search for executions whose worker is dead. */
export class ExecutionLeases {
  readonly #backend: StorageBackend;
  readonly #rows: RecordStore<ExecutionRow>;
  readonly #workers: RecordStore<WorkerRow>;
  readonly #leaseMs: number;
  readonly #onLost: () => void;
  #worker: Promise<Worker> | undefined;
  #closed = false;

  /** Calls `onLost` once other processes may have taken over the executions of this one. */
  constructor(backend: StorageBackend, leaseMs: number, onLost: () => void) {
    this.#backend = backend;
    this.#rows = backend.records(executionRecords);
    this.#workers = backend.records(workerRecords);
    this.#leaseMs = leaseMs;
    this.#onLost = onLost;
  }

  /** The worker of this process. Starts a new one if the last was declared dead. */
  async worker(): Promise<Worker> {
    for (;;) {
      if (this.#closed) {
        throw new SvcError('interrupted', 'The client is closed.', { next: ['Create a new client.'] });
      }
      this.#worker ??= Worker.start(this.#backend, this.#leaseMs, this.#onLost);
      const current = this.#worker;
      try {
        const worker = await current;
        if (await worker.hasLease()) return worker;
        this.#drop(current);
      } catch (error) {
        this.#drop(current);
        throw error;
      }
    }
  }

  /** Whether nobody can be running it. This process is not, because it has at most one run of each execution. */
  async isUnowned({ owner }: ExecutionRow): Promise<boolean> {
    const worker = await this.#worker?.catch(() => undefined);
    return owner === '' || owner === worker?.id || markDeadIfExpired(this.#backend, owner);
  }

  /** Makes this process the owner; undefined if another process was first. */
  async acquire({ record, version }: Versioned<ExecutionRow>): Promise<LeasedExecution | undefined> {
    const worker = await this.worker();
    const claim = randomUUID();
    const { error: _, ...state } = structuredClone(record.state);
    const acquired: ExecutionRow = {
      ...record,
      status: 'running',
      owner: worker.id,
      state: { ...state, write: state.write + 1, claim },
    };
    const result = await writeExecution(this.#rows, acquired, version);
    if ('conflict' in result) {
      const found = result.conflict;
      if (found?.record.state.claim !== claim || found.version !== version + 1) return undefined;
    }
    return new LeasedExecution(this.#backend, { record: acquired, version: version + 1 }, worker);
  }

  /** The ids of dead workers. First declares every worker dead whose lease has ended. */
  async deadWorkers(): Promise<readonly string[]> {
    const alive = await this.#workers.page('byState', { equals: { state: 'alive' }, limit: 1000 });
    const now = (await this.#backend.now()).getTime();
    for (const { record } of alive.records) {
      if (record.beatAt.getTime() + record.leaseMs < now) await markDeadIfExpired(this.#backend, record.workerId);
    }
    return this.#dead();
  }

  /** Removes dead workers that own nothing and whose last heartbeat was before that moment. */
  async pruneWorkers(before: Date): Promise<void> {
    await this.deadWorkers();
    for (const owner of await this.#dead(before)) {
      const { records } = await this.#rows.page('byOwner', { equals: { owner }, limit: 1 });
      if (records.length === 0) await this.removeWorker(owner);
    }
  }

  /** Removes a worker, if it is dead. */
  async removeWorker(workerId: string): Promise<void> {
    const found = await this.#workers.get(workerId);
    if (found?.record.state === 'dead') await this.#workers.remove(workerId, found.version);
  }

  /** Releases every lease, so that other processes can take over at once. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = await this.#worker?.catch(() => undefined);
    await worker?.stop().catch(() => undefined);
  }

  /** Reads all pages: the executions of the first thousand may all belong to agents that this process lacks. */
  async #dead(to?: Date): Promise<readonly string[]> {
    const found: string[] = [];
    const query = { equals: { state: 'dead' }, limit: 1000, ...(to && { to }) } as const;
    for await (const { record } of allRows(this.#workers, 'byState', query)) found.push(record.workerId);
    return found;
  }

  /** Drops a worker, unless a concurrent caller has already replaced it. */
  #drop(worker: Promise<Worker>): void {
    if (this.#worker === worker) this.#worker = undefined;
  }
}

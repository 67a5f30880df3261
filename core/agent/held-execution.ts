import type { StoreHome } from '../approval/home.ts';
import { SvcError } from '../errors.ts';
import { CLOCK, type RecordStore, type Versioned } from '../records.ts';
import { type ExecutionRow, type ExecutionState, type ExecutionStatus, executions } from './execution.ts';
import type { Worker } from './worker.ts';

type Ended = Exclude<ExecutionStatus, 'running'>;

/** An execution that a worker of this process owns: each write is a compare-and-set, so that an old owner's is refused. */
export class HeldExecution {
  readonly worker: Worker;
  readonly #store: RecordStore<ExecutionRow>;
  #row: ExecutionRow;
  #version: number;
  #saving: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #ended: Ended | undefined;
  #onCancel: (reason: string) => void = () => {};

  constructor(home: StoreHome, { record, version }: Versioned<ExecutionRow>, worker: Worker) {
    this.#store = home.records(executions);
    this.#row = record;
    this.#version = version;
    this.worker = worker;
  }

  get executionId(): string {
    return this.#row.executionId;
  }

  get agentTag(): string {
    return this.#row.agentTag;
  }

  get createdAt(): Date {
    return this.#row.createdAt;
  }

  get status(): ExecutionStatus {
    return this.#row.status;
  }

  /** Changed in place; `save` stores it. */
  get state(): ExecutionState {
    return this.#row.state;
  }

  /** Throws `execution_lost` where another may have taken it over: called before anything begins. */
  async hold(): Promise<void> {
    if (!(await this.worker.holds())) throw executionLost(this.executionId);
  }

  /** Tells when another process wants it cancelled, as soon as a write or a look meets that. */
  whenCancelled(hear: (reason: string) => void): void {
    this.#onCancel = hear;
    if (this.state.cancel !== undefined) hear(this.state.cancel);
  }

  /** Meets what a write would meet: called before something begins for which nothing is written. */
  async look(): Promise<void> {
    const found = await this.#store.get(this.executionId);
    if (found?.record.owner !== this.worker.id) throw executionLost(this.executionId);
    this.#hear(found.record.state.cancel);
  }

  /** Stores the state as it is when the write begins; what is changed while one is on its way goes with the next. */
  save(): Promise<void> {
    this.#next ??= this.#saving.then(() => {
      this.#next = undefined;
      return this.#write();
    });
    const saving = this.#next;
    this.#saving = saving.catch(() => undefined);
    return saving;
  }

  /** Stores how it ended and lets go of it. Gives the end that stands: what was to be cancelled before is cancelled. */
  async end(status: Ended): Promise<Ended> {
    this.#ended = status;
    await this.save();
    return this.#ended;
  }

  async #write(): Promise<void> {
    const { executionId, state } = this.#row;
    state.write += 1;
    for (;;) {
      const written = { ...this.#row, ...(this.#ended && { status: this.#ended, owner: '' }) };
      const answer = await this.#store.replace(executionId, this.#version, { ...written, updatedAt: CLOCK });
      if (answer === 'replaced') {
        this.#version += 1;
        return;
      }
      const found = answer === 'stale' ? await this.#store.get(executionId) : undefined;
      if (!found || found.record.state.claim !== state.claim) throw executionLost(executionId);
      const { status, owner } = found.record;
      const { write, cancel } = found.record.state;
      // A write whose answer was lost was sent twice: the second one finds the first.
      const isWritten = write === state.write && status === written.status && owner === written.owner;
      // All that others write into what is ours is that they want it cancelled.
      const isMarked = write === state.write - 1 && owner === this.#row.owner && cancel !== undefined;
      if (!isWritten && !isMarked) throw executionLost(executionId);
      this.#version = found.version;
      this.#hear(cancel);
      if (isWritten) return;
      if (this.#ended && cancel !== undefined) {
        this.#ended = 'cancelled';
        state.reason ??= cancel;
      }
    }
  }

  #hear(cancel: string | undefined): void {
    if (cancel === undefined || this.state.cancel !== undefined) return;
    this.state.cancel = cancel;
    this.#onCancel(cancel);
  }
}

export function executionLost(executionId: string): SvcError {
  return new SvcError('execution_lost', `The execution ${executionId} is no longer this process's to run.`, {
    why: 'Its lease ran out before it could be renewed, and another worker may have taken it over.',
    state: 'What it had done is stored; it goes on wherever it was taken over.',
  });
}

import type { StoreHome } from '../approval/home.ts';
import { SvcError } from '../errors.ts';
import { CLOCK, type RecordStore, type Versioned } from '../records.ts';
import { type ExecutionRow, type ExecutionState, type ExecutionStatus, executions } from './execution.ts';
import type { Worker } from './worker.ts';

/** An execution that a worker of this process owns: each write is a compare-and-set, so that an old owner's is refused. */
export class HeldExecution {
  readonly worker: Worker;
  readonly #store: RecordStore<ExecutionRow>;
  #row: ExecutionRow;
  #version: number;
  #saving: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

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

  /** Stores how it ended and lets go of it. */
  end(status: Exclude<ExecutionStatus, 'running'>): Promise<void> {
    this.#row = { ...this.#row, status, owner: '' };
    return this.save();
  }

  async #write(): Promise<void> {
    const { state, executionId } = this.#row;
    state.write += 1;
    const answer = await this.#store.replace(executionId, this.#version, { ...this.#row, updatedAt: CLOCK });
    if (answer !== 'replaced' && !(answer === 'stale' && (await this.#wasOurs()))) throw executionLost(executionId);
    this.#version += 1;
  }

  /** A write whose answer was lost was sent twice: the second one finds the first. */
  async #wasOurs(): Promise<boolean> {
    const found = await this.#store.get(this.executionId);
    if (!found || found.version !== this.#version + 1) return false;
    return found.record.owner === this.#row.owner && found.record.state.write === this.state.write;
  }
}

export function executionLost(executionId: string): SvcError {
  return new SvcError('execution_lost', `The execution ${executionId} is no longer this process's to run.`, {
    why: 'Its lease ran out before it could be renewed, and another worker may have taken it over.',
    state: 'What it had done is stored; it goes on wherever it was taken over.',
  });
}

import { setTimeout as wait } from 'node:timers/promises';
import { ensureTableSet, isOutage, isRetryable, type StorageBackend, type StoreOwner } from '../approval/backend.ts';
import { abortReason, DETACH, PROCESS_NAME } from '../approval/call.ts';
import type { ApprovalService } from '../approval/service.ts';
import { TimerQueue } from '../approval/timer-queue.ts';
import { errorMessage, isSvcError, SvcError } from '../errors.ts';
import type { Json } from '../json.ts';
import { allPages, CLOCK, type RecordStore, type Versioned } from '../records.ts';
import { storableText, truncatedText } from '../tool/safe-json.ts';
import type { AgentRuntime } from './agent-runtime.ts';
import { type ExecutionRow, type ExecutionState, executionRecords, executionTables } from './execution-record.ts';
import { ExecutionLeases, LeasedExecution } from './leased-execution.ts';
import { isRunTimeout, RunTimeout, runLoop } from './loop.ts';
import { Run, type RunOutcome, runOutcome } from './run.ts';
import { LEASE_MS } from './worker.ts';

const MIN_POLL_MS = 50;
const MAX_POLL_MS = 2_000;
/** Executions that are taken over at a time. */
const RECOVERED_AT_ONCE = 64;
/** Failed attempts in a row before the execution fails: about eight seconds. */
const MAX_FAILURES = 8;

type Row = Versioned<ExecutionRow>;

export interface ExecutionsOptions {
  readonly backend: StorageBackend;
  readonly approvals: ApprovalService;
  readonly owner: StoreOwner;
  readonly leaseMs?: number;
}

interface TakeOverOptions {
  /** True: also take over an execution that failed because its model could not be called. */
  readonly retryFailed?: boolean;
  /** Failed attempts in a row. */
  readonly failures?: number;
  /** The error to fail the execution with once this process owns it again. */
  readonly fatalError?: unknown;
}

/** The executions of one store: runs those of this process and takes over those whose process died. */
export class ExecutionService {
  readonly rows: RecordStore<ExecutionRow>;
  readonly #backend: StorageBackend;
  readonly #approvals: ApprovalService;
  readonly #agents = new Map<string, AgentRuntime>();
  readonly #runs = new Map<string, Run>();
  readonly #active = new Set<Promise<void>>();
  readonly #deadlines = new TimerQueue<{ readonly run: Run; readonly timeout: RunTimeout }>(({ run, timeout }) =>
    run.abort(timeout),
  );
  readonly #leases: ExecutionLeases;
  #closed = false;

  static async open(options: ExecutionsOptions): Promise<ExecutionService> {
    await ensureTableSet(options.backend, executionTables, options.owner);
    return new ExecutionService(options);
  }

  private constructor({ backend, approvals, leaseMs = LEASE_MS }: ExecutionsOptions) {
    this.rows = backend.records(executionRecords);
    this.#backend = backend;
    this.#approvals = approvals;
    this.#leases = new ExecutionLeases(backend, leaseMs, () => {
      for (const run of this.#runs.values()) run.interrupt();
    });
  }

  /** Lets this process take over executions of the agent. */
  define(agent: AgentRuntime): void {
    this.#agents.set(agent.definition.tag, agent);
  }

  /** Stores a new execution and runs it to its end. Errors are reported by the run; this promise never rejects. */
  start(agent: AgentRuntime, run: Run, prompt: string, requester?: string): Promise<void> {
    return this.#track(run, async () => {
      const worker = await this.#leases.worker();
      const now = new Date(await this.#approvals.clock.now());
      const { tag, limits } = agent.definition;
      const record: ExecutionRow = {
        executionId: run.executionId,
        agentTag: tag,
        status: 'running',
        owner: worker.id,
        createdAt: now,
        updatedAt: now,
        state: {
          write: 1,
          prompt: storableText(prompt),
          ...(requester !== undefined && { requester }),
          limits,
          steps: [],
        },
      };
      try {
        await this.rows.insert(record);
      } catch (error) {
        if (!isOutage(error)) throw error;
        // The row may have been stored although the response was lost.
        return this.#waitOrTakeOver(run);
      }
      return this.#execute(agent, new LeasedExecution(this.#backend, { record, version: 1 }, worker), run);
    });
  }

  /**
   * The run of an execution that has not ended. Takes it over if nobody owns it; otherwise watches it, and takes it over
   * when its process dies. Throws `execution_unknown`, `execution_finished`, `agent_unknown`.
   */
  async resume(executionId: string): Promise<Run> {
    const local = this.#runs.get(executionId);
    if (local) return local;
    const found = await this.rows.get(executionId);
    if (!found) throw executionUnknownError(executionId);
    const { agentTag } = found.record;
    if (!isResumable(found.record)) throw executionFinishedError(found.record);
    if (!this.#agents.has(agentTag)) {
      throw new SvcError('agent_unknown', `No agent "${agentTag}" is defined in this process.`, {
        why: `The execution ${executionId} belongs to it.`,
        next: [`Call svc.agents.define for "${agentTag}" first.`],
      });
    }
    const run = this.#runs.get(executionId) ?? new Run(executionId);
    if (!this.#runs.has(executionId)) void this.#track(run, () => this.#waitOrTakeOver(run, { retryFailed: true }));
    return run;
  }

  /**
   * Cancels an execution in any process and returns its outcome. Pending requests are cancelled; a handler or a model
   * turn that runs in another process completes first. Throws `execution_unknown`, `execution_finished`.
   */
  async cancel(executionId: string, reason?: string): Promise<RunOutcome> {
    const local = this.#runs.get(executionId);
    if (local) return local.cancel(reason);
    const found = await this.rows.get(executionId);
    if (!found) throw executionUnknownError(executionId);
    if (found.record.status !== 'running') throw executionFinishedError(found.record);
    const run = this.#runs.get(executionId) ?? new Run(executionId);
    if (!this.#runs.has(executionId)) void this.#track(run, () => this.#waitOrTakeOver(run));
    return run.cancel(reason);
  }

  /** Takes over every execution of a defined agent whose worker is dead. */
  async recover(): Promise<readonly Run[]> {
    const recovered: Run[] = [];
    for (const owner of await this.#leases.deadWorkers()) {
      let left = 0;
      for await (const rows of allPages(this.rows, 'byOwner', { equals: { owner }, limit: RECOVERED_AT_ONCE })) {
        for (const run of await Promise.all(rows.map((row) => this.#recoverIfReadable(row)))) {
          if (run) recovered.push(run);
          else left += 1;
        }
      }
      if (left === 0) await this.#leases.removeWorker(owner);
    }
    return recovered;
  }

  /** Removes dead workers that own nothing and whose last heartbeat was before that moment. */
  pruneWorkers(before: Date): Promise<void> {
    return this.#leases.pruneWorkers(before);
  }

  /** Stops every run and releases its lease, so that other processes can take over at once. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const run of this.#runs.values()) run.abort(DETACH);
    await Promise.all(this.#active);
    this.#deadlines.clear();
    await this.#leases.close();
  }

  /** An execution whose stored state is damaged does not keep the others from being recovered. */
  async #recoverIfReadable(row: Row): Promise<Run | undefined> {
    try {
      return await this.#recoverOne(row);
    } catch (error) {
      if (isSvcError(error)) throw error;
      this.#approvals.warn(`The execution ${row.record.executionId} cannot be recovered: ${errorMessage(error)}`);
      return undefined;
    }
  }

  async #recoverOne(row: Row): Promise<Run | undefined> {
    const { executionId, agentTag } = row.record;
    const agent = this.#agents.get(agentTag);
    // A run of this process that watches the execution takes it over itself.
    if (!agent || this.#runs.has(executionId) || this.#closed) return undefined;
    const execution = await this.#leases.acquire(row);
    // Another run may have started to watch it since. That run finds that this process owns it, and continues it.
    if (!execution || this.#runs.has(executionId)) return undefined;
    const run = new Run(executionId);
    void this.#track(run, () => this.#execute(agent, execution, run));
    return run;
  }

  /** Runs an execution that this process owns. If the lease is lost, watches it. */
  async #execute(agent: AgentRuntime, execution: LeasedExecution, run: Run, failures = 0): Promise<RunOutcome> {
    const { durationMs } = execution.state.limits;
    const deadline = durationMs === undefined ? undefined : { run, timeout: new RunTimeout(durationMs) };
    try {
      if (deadline && durationMs !== undefined) {
        const age = (await this.#approvals.clock.now()) - execution.createdAt.getTime();
        this.#deadlines.set(deadline, performance.now() + durationMs - age);
      }
      return await runLoop(agent, execution, run);
    } catch (error) {
      if (this.#closed) throw error;
      if (isOutage(error) || isLost(error)) return await this.#waitOrTakeOver(run);
      // Any store error may be temporary, except one about the value itself.
      if (isRetryable(error) && failures < MAX_FAILURES) {
        return await this.#waitOrTakeOver(run, { failures: failures + 1 });
      }
      return await this.#failOrRetry(execution, run, error, failures);
    } finally {
      if (deadline) this.#deadlines.delete(deadline);
    }
  }

  /** Fails the execution after an unexpected error, so that nobody waits for it indefinitely. */
  async #failOrRetry(execution: LeasedExecution, run: Run, fatalError: unknown, failures: number): Promise<RunOutcome> {
    try {
      return await this.#fail(execution, fatalError);
    } catch (error) {
      if (this.#closed) throw error;
      if (isLost(error)) return this.#waitOrTakeOver(run);
      // This process still owns it, so no other would continue it. Only the failure is stored; nothing runs again.
      return this.#waitOrTakeOver(run, { failures: failures + 1, fatalError });
    }
  }

  async #fail(execution: LeasedExecution, fatalError: unknown): Promise<RunOutcome> {
    const { state, executionId } = execution;
    state.error = { code: isSvcError(fatalError) ? fatalError.code : 'run_failed', message: truncatedText(fatalError) };
    await execution.assertLease();
    // Requests are cancelled first: after the execution has ended, no process would cancel them.
    await this.#approvals.cancelAll(executionId, 'The run has failed.', PROCESS_NAME);
    for (;;) {
      try {
        return runOutcome(await execution.finish('failed'), state);
      } catch (error) {
        if (!isSvcError(error) || isRetryable(error) || !shorten(state)) throw error;
      }
    }
  }

  /**
   * Waits until the execution has ended in another process, or takes it over: because its worker is dead, or because
   * this process owned it before the store failed.
   */
  async #waitOrTakeOver(run: Run, options: TakeOverOptions = {}): Promise<RunOutcome> {
    const { failures = 0, fatalError } = options;
    let retryFailed = options.retryFailed === true;
    if (failures > 0) await wait(Math.min(MIN_POLL_MS * 2 ** failures, MAX_POLL_MS));
    for (let pause = MIN_POLL_MS; ; pause = Math.min(pause * 1.5, MAX_POLL_MS)) {
      try {
        const found = await this.rows.get(run.executionId);
        if (!found) throw executionUnknownError(run.executionId);
        const { status, state } = found.record;
        if (status !== 'running' && !(retryFailed && isResumable(found.record))) {
          return runOutcome(status, state);
        }
        retryFailed = false;
        const agent = this.#agents.get(found.record.agentTag);
        const canAcquire = agent && (await this.#leases.isUnowned(found.record));
        const execution = canAcquire ? await this.#leases.acquire(found) : undefined;
        if (execution && fatalError !== undefined) {
          return await this.#failOrRetry(execution, run, fatalError, failures);
        }
        if (agent && execution) return await this.#execute(agent, execution, run, failures);
        const reason = cancelReason(run);
        if (reason !== undefined) await this.#cancelElsewhere(found, reason);
      } catch (error) {
        if (this.#closed || !isRetryable(error) || isUnknown(error)) throw error;
      }
      if (this.#closed) throw runsElsewhereError(run.executionId);
      await wait(pause, undefined, run.stopped ? {} : { signal: run.startAttempt() }).catch(() => undefined);
    }
  }

  /**
   * Cancels an execution that this process does not run. If a worker owns it, stores the cancellation request, which the
   * worker reads at its next write, and then cancels the approval requests. The caller repeats this, because the worker
   * may create another request. If nobody owns it, cancels the approval requests first and then ends the execution.
   */
  async #cancelElsewhere({ record, version }: Row, requestedReason: string): Promise<void> {
    const { executionId, state } = record;
    const reason = state.cancel ?? requestedReason;
    const cancelRequests = () => this.#approvals.cancelAll(executionId, reason, PROCESS_NAME);
    const write = (next: ExecutionRow) => this.rows.replace(executionId, version, { ...next, updatedAt: CLOCK });
    if (await this.#leases.isUnowned(record)) {
      await cancelRequests();
      const ended = { ...state, write: state.write + 1, reason };
      await write({ ...record, status: 'cancelled', owner: '', state: ended });
      return;
    }
    if (state.cancel === undefined) {
      const result = await write({ ...record, state: { ...state, cancel: reason } });
      if (result !== 'replaced') return;
    }
    await cancelRequests();
  }

  #track(run: Run, work: () => Promise<RunOutcome>): Promise<void> {
    const { executionId } = run;
    this.#runs.set(executionId, run);
    const active = (async () => {
      try {
        this.#assertOpen();
        const outcome = await work();
        this.#runs.delete(executionId);
        run.finish(outcome);
      } catch (error) {
        this.#runs.delete(executionId);
        run.detach(error);
      }
    })().finally(() => this.#active.delete(active));
    this.#active.add(active);
    return active;
  }

  #assertOpen(): void {
    if (this.#closed) throw new SvcError('interrupted', 'The client is closed.', { next: ['Create a new client.'] });
  }
}

/** Why a caller cancelled the run; undefined if it was detached or timed out. */
function cancelReason({ stopped }: Run): string | undefined {
  if (!stopped || stopped.reason === DETACH || isRunTimeout(stopped.reason)) return undefined;
  return abortReason(stopped);
}

/**
 * Shortens a state that is too large for the store, and returns false if nothing is left to remove. Removes the last
 * step if none of its calls ran; otherwise the results of the last step that has long ones; otherwise the last step.
 */
function shorten({ steps }: ExecutionState): boolean {
  if (steps.at(-1)?.calls.some(({ started, outcome }) => started || outcome)) {
    for (const { calls } of steps.toReversed()) {
      let isShorter = false;
      for (const call of calls) {
        if (!call.outcome || !isLong(call.outcome.result)) continue;
        call.outcome = { ...call.outcome, result: NOT_KEPT };
        isShorter = true;
      }
      if (isShorter) return true;
    }
  }
  return steps.pop() !== undefined;
}

const NOT_KEPT = { error: 'result_not_kept', message: 'The execution was too large for the store.' };

function isLong(result: Json): boolean {
  return JSON.stringify(result).length > JSON.stringify(NOT_KEPT).length;
}

/** Whether it has not ended, or has failed because its model could not be called. */
function isResumable({ status, state }: ExecutionRow): boolean {
  return status === 'running' || (status === 'failed' && state.error?.code === 'model_failed');
}

function isLost(error: unknown): boolean {
  return isSvcError(error) && error.code === 'execution_lost';
}

function isUnknown(error: unknown): boolean {
  return isSvcError(error) && error.code === 'execution_unknown';
}

function executionUnknownError(executionId: string): SvcError {
  return new SvcError('execution_unknown', `No execution has the id ${executionId}.`, { details: { executionId } });
}

function executionFinishedError({ executionId, status }: ExecutionRow): SvcError {
  return new SvcError('execution_finished', `The execution ${executionId} is ${status}.`, {
    why: 'An execution that has ended cannot be resumed or cancelled.',
    details: { executionId, status },
  });
}

function runsElsewhereError(executionId: string): SvcError {
  return new SvcError('interrupted', 'The client was closed.', { state: `Another process runs ${executionId}.` });
}

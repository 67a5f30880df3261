import { setTimeout as wait } from 'node:timers/promises';
import { Alarm } from '../approval/alarm.ts';
import type { ApprovalDesk } from '../approval/desk.ts';
import { DETACH } from '../approval/gate.ts';
import { isOutage, mayPass, type StoreHome } from '../approval/home.ts';
import { PROCESS, reasonOf } from '../approval/passage.ts';
import { type Owner, openTables } from '../approval/tables.ts';
import { keptWords } from '../approval/words.ts';
import { isSvcError, SvcError } from '../errors.ts';
import type { Json } from '../json.ts';
import { CLOCK, type RecordStore, type Versioned } from '../records.ts';
import { Claims } from './claims.ts';
import { type ExecutionRow, type ExecutionState, executions, executionTables } from './execution.ts';
import { HeldExecution } from './held-execution.ts';
import { drive, OverTime } from './loop.ts';
import { outcomeOf } from './outcome.ts';
import { storable } from './own-json.ts';
import { Run, type RunOutcome } from './run.ts';
import type { RunnableAgent } from './runnable.ts';
import { LEASE_MS } from './worker.ts';

const FIRST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 2_000;
/** Attempts in a row, some eight seconds of them. */
const MOST_FAILURES = 8;

type Row = Versioned<ExecutionRow>;

export interface ExecutionsSetup {
  readonly home: StoreHome;
  readonly desk: ApprovalDesk;
  readonly owner: Owner;
  readonly leaseMs?: number;
}

interface Pursuit {
  /** Also one that failed because its model could not be asked. */
  readonly toResume?: boolean;
  /** Attempts in a row that ended in an error. */
  readonly failures?: number;
  /** The error that it ends with once it is ours again. */
  readonly broken?: unknown;
}

/** The executions of one store, as far as this process runs them or takes them over. */
export class Executions {
  readonly rows: RecordStore<ExecutionRow>;
  readonly #home: StoreHome;
  readonly #desk: ApprovalDesk;
  readonly #agents = new Map<string, RunnableAgent>();
  readonly #runs = new Map<string, Run>();
  readonly #going = new Set<Promise<void>>();
  readonly #overTime = new Alarm<{ readonly run: Run; readonly why: OverTime }>(({ run, why }) => run.abort(why));
  readonly #claims: Claims;
  #closed = false;

  static async open(setup: ExecutionsSetup): Promise<Executions> {
    await openTables(setup.home, executionTables, setup.owner);
    return new Executions(setup);
  }

  private constructor({ home, desk, leaseMs = LEASE_MS }: ExecutionsSetup) {
    this.rows = home.records(executions);
    this.#home = home;
    this.#desk = desk;
    this.#claims = new Claims(home, leaseMs, () => {
      for (const run of this.#runs.values()) run.interrupt();
    });
  }

  /** Makes executions of this agent resumable here. */
  define(agent: RunnableAgent): void {
    this.#agents.set(agent.definition.tag, agent);
  }

  /** Stores a new execution and runs it to its end; the run tells of everything, this promise of nothing. */
  begin(agent: RunnableAgent, run: Run, prompt: string): Promise<void> {
    return this.#track(run, async () => {
      // A model that cannot be had is refused before anything is stored.
      await agent.model();
      const worker = await this.#claims.worker();
      const now = new Date(await this.#desk.clock.now());
      const { tag, limits } = agent.definition;
      const record: ExecutionRow = {
        executionId: run.executionId,
        agentTag: tag,
        status: 'running',
        owner: worker.id,
        createdAt: now,
        updatedAt: now,
        state: { write: 1, prompt: storable(prompt), limits, steps: [] },
      };
      try {
        await this.rows.insert(record);
      } catch (error) {
        if (!isOutage(error)) throw error;
        // It may have been stored all the same.
        return this.#follow(run);
      }
      return this.#drive(agent, new HeldExecution(this.#home, { record, version: 1 }, worker), run, false);
    });
  }

  /**
   * The run of an execution that has not ended: one that nobody owns is taken over, one that another process runs
   * is watched, and taken over when that process dies. Throws `execution_unknown`, `execution_finished`,
   * `agent_unknown`.
   */
  async resume(executionId: string): Promise<Run> {
    const here = this.#runs.get(executionId);
    if (here) return here;
    const found = await this.rows.get(executionId);
    if (!found) throw unknownExecution(executionId);
    const { agentTag } = found.record;
    if (!isResumable(found.record)) throw finished(found.record);
    if (!this.#agents.has(agentTag)) {
      throw new SvcError('agent_unknown', `No agent "${agentTag}" is defined in this process.`, {
        why: `The execution ${executionId} is one of its.`,
        next: [`Call svc.agents.define for "${agentTag}" first.`],
      });
    }
    const run = this.#runs.get(executionId) ?? new Run(executionId);
    if (!this.#runs.has(executionId)) void this.#track(run, () => this.#follow(run, { toResume: true }));
    return run;
  }

  /**
   * Cancels an execution, whichever process runs it, and gives its outcome: what it waits for is cancelled, a handler
   * or a turn of the model that is under way in another process comes to its end first. Throws `execution_unknown`,
   * `execution_finished`.
   */
  async cancel(executionId: string, reason?: string): Promise<RunOutcome> {
    const here = this.#runs.get(executionId);
    if (here) return here.cancel(reason);
    const found = await this.rows.get(executionId);
    if (!found) throw unknownExecution(executionId);
    if (found.record.status !== 'running') throw finished(found.record);
    const run = this.#runs.get(executionId) ?? new Run(executionId);
    if (!this.#runs.has(executionId)) void this.#track(run, () => this.#follow(run));
    return run.cancel(reason);
  }

  /** Takes over every execution of a defined agent whose worker is dead. */
  async takeOver(): Promise<readonly Run[]> {
    const taken: Run[] = [];
    for (const owner of await this.#claims.deadWorkers()) {
      let left = 0;
      let cursor: string | undefined;
      do {
        const page = await this.rows.page('byOwner', {
          equals: { owner },
          limit: 200,
          ...(cursor !== undefined && { cursor }),
        });
        for (const row of page.records) {
          const run = await this.#takeOne(row);
          if (run) taken.push(run);
          else left += 1;
        }
        cursor = page.cursor;
      } while (cursor !== undefined);
      if (left === 0) await this.#claims.forget(owner);
    }
    return taken;
  }

  /** Forgets processes that are dead, own nothing any more and were last heard of before that moment. */
  pruneWorkers(before: Date): Promise<void> {
    return this.#claims.prune(before);
  }

  /** Stops running everything, and says so, so that others may go on at once. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const run of this.#runs.values()) run.abort(DETACH);
    await Promise.all(this.#going);
    this.#overTime.clear();
    await this.#claims.close();
  }

  async #takeOne(row: Row): Promise<Run | undefined> {
    const { executionId, agentTag } = row.record;
    const agent = this.#agents.get(agentTag);
    // One that is watched here is taken over by whoever watches it.
    if (!agent || this.#runs.has(executionId) || this.#closed) return undefined;
    const held = await this.#claims.claim(row);
    // Or has been since: he finds it to be this process's, and free.
    if (!held || this.#runs.has(executionId)) return undefined;
    const run = new Run(executionId);
    void this.#track(run, () => this.#drive(agent, held, run, true));
    return run;
  }

  /** Runs what this process owns; where it turns out to be another's, watches it. */
  async #drive(
    agent: RunnableAgent,
    held: HeldExecution,
    run: Run,
    isResumed: boolean,
    failures = 0,
  ): Promise<RunOutcome> {
    const { durationMs } = held.state.limits;
    const limit = durationMs === undefined ? undefined : { run, why: new OverTime(durationMs) };
    try {
      if (limit && durationMs !== undefined) {
        const age = (await this.#desk.clock.now()) - held.createdAt.getTime();
        this.#overTime.set(limit, performance.now() + durationMs - age);
      }
      return await drive(agent, held, run, isResumed);
    } catch (error) {
      if (this.#closed) throw error;
      if (isOutage(error) || isLost(error)) return await this.#follow(run);
      // The store may refuse for a while in ways that are not known for an outage; what it cannot hold it never can.
      if (mayPass(error) && failures < MOST_FAILURES) return await this.#follow(run, { failures: failures + 1 });
      return await this.#break(held, run, error, failures);
    } finally {
      if (limit) this.#overTime.delete(limit);
    }
  }

  /**
   * What nobody foresaw: the execution ends, so that nobody waits for it for ever. Its requests come first: once it has
   * ended, nobody would come by who cancels them.
   */
  async #break(held: HeldExecution, run: Run, broken: unknown, failures: number): Promise<RunOutcome> {
    try {
      return await this.#fail(held, broken);
    } catch (refused) {
      if (this.#closed) throw refused;
      if (isLost(refused)) return this.#follow(run);
      // It is still ours, and nobody else would go on with it: it ends as it was last stored, and nothing runs again.
      return this.#follow(run, { failures: failures + 1, broken });
    }
  }

  async #fail(held: HeldExecution, error: unknown): Promise<RunOutcome> {
    held.state.error = { code: isSvcError(error) ? error.code : 'run_failed', message: keptWords(error) };
    await held.hold();
    await this.#desk.cancelAll(held.executionId, 'The run has failed.', PROCESS);
    for (;;) {
      try {
        return outcomeOf(await held.end('failed'), held.state);
      } catch (refused) {
        if (!isSvcError(refused) || mayPass(refused) || !shortened(held.state)) throw refused;
      }
    }
  }

  /**
   * Until the execution has ended elsewhere, or it is ours: because its worker is dead, or because it was ours before
   * the store could not be reached for a while.
   */
  async #follow(run: Run, { toResume = false, failures = 0, broken }: Pursuit = {}): Promise<RunOutcome> {
    let isFirst = toResume;
    if (failures > 0) await wait(Math.min(FIRST_LOOK_MS * 2 ** failures, LONGEST_LOOK_MS));
    for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 1.5, LONGEST_LOOK_MS)) {
      try {
        const found = await this.rows.get(run.executionId);
        if (!found) throw unknownExecution(run.executionId);
        const { status, state } = found.record;
        if (status !== 'running' && !(isFirst && isResumable(found.record))) {
          return outcomeOf(status, state);
        }
        isFirst = false;
        const agent = this.#agents.get(found.record.agentTag);
        const held = agent && (await this.#claims.isFree(found.record)) ? await this.#claims.claim(found) : undefined;
        if (held && broken !== undefined) return await this.#break(held, run, broken, failures);
        if (agent && held) return await this.#drive(agent, held, run, true, failures);
        const reason = cancelReason(run);
        if (reason !== undefined) await this.#cancelElsewhere(found, reason);
      } catch (error) {
        if (this.#closed || !mayPass(error) || isUnknown(error)) throw error;
      }
      if (this.#closed) throw elsewhere(run.executionId);
      await wait(pause, undefined, run.stopped ? {} : { signal: run.attempt() }).catch(() => undefined);
    }
  }

  /**
   * Ends what nobody runs, and asks whoever runs it: his next write finds that the row has changed. Its requests come
   * after that, so that he who wakes by them finds it, and again each time, as he may have made one since; of what
   * nobody runs they come first.
   */
  async #cancelElsewhere({ record, version }: Row, wanted: string): Promise<void> {
    const { executionId, state } = record;
    const reason = state.cancel ?? wanted;
    const cancelRequests = () => this.#desk.cancelAll(executionId, reason, PROCESS);
    const write = (next: ExecutionRow) => this.rows.replace(executionId, version, { ...next, updatedAt: CLOCK });
    if (await this.#claims.isFree(record)) {
      await cancelRequests();
      const ended = { ...state, write: state.write + 1, reason };
      await write({ ...record, status: 'cancelled', owner: '', state: ended });
      return;
    }
    if (state.cancel === undefined) {
      const answer = await write({ ...record, state: { ...state, cancel: reason } });
      if (answer !== 'replaced') return;
    }
    await cancelRequests();
  }

  #track(run: Run, work: () => Promise<RunOutcome>): Promise<void> {
    const { executionId } = run;
    this.#runs.set(executionId, run);
    const going = (async () => {
      try {
        this.#refuseClosed();
        const outcome = await work();
        this.#runs.delete(executionId);
        run.finish(outcome);
      } catch (error) {
        this.#runs.delete(executionId);
        run.leave(error);
      }
    })().finally(() => this.#going.delete(going));
    this.#going.add(going);
    return going;
  }

  #refuseClosed(): void {
    if (this.#closed) throw new SvcError('interrupted', 'The client is closed.', { next: ['Make a new client.'] });
  }
}

/** Why somebody wants it cancelled; what the process that runs it stops it with of itself is no cancellation. */
function cancelReason({ stopped }: Run): string | undefined {
  if (!stopped || stopped.reason === DETACH || stopped.reason instanceof OverTime) return undefined;
  return reasonOf(stopped);
}

/**
 * Without what the record can best do without, as it has grown beyond what the store can hold: the last turn if none of
 * it ran, else results, from the last turn to the first. What ran is left out only where that is not enough either.
 * False where nothing is left.
 */
function shortened({ steps }: ExecutionState): boolean {
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

const NOT_KEPT = { error: 'result_not_kept', message: 'The execution had become too large for the store.' };

function isLong(result: Json): boolean {
  return JSON.stringify(result).length > JSON.stringify(NOT_KEPT).length;
}

/** A model that could not be asked may be asked again. */
function isResumable({ status, state }: ExecutionRow): boolean {
  return status === 'running' || (status === 'failed' && state.error?.code === 'model_failed');
}

function isLost(error: unknown): boolean {
  return isSvcError(error) && error.code === 'execution_lost';
}

function isUnknown(error: unknown): boolean {
  return isSvcError(error) && error.code === 'execution_unknown';
}

function unknownExecution(executionId: string): SvcError {
  return new SvcError('execution_unknown', `No execution has the id ${executionId}.`, { details: { executionId } });
}

function finished({ executionId, status }: ExecutionRow): SvcError {
  return new SvcError('execution_finished', `The execution ${executionId} is ${status}.`, {
    why: 'What has ended is not run again.',
    details: { executionId, status },
  });
}

function elsewhere(executionId: string): SvcError {
  return new SvcError('interrupted', 'The client was closed.', { state: `Another process runs ${executionId}.` });
}

import { type AgentDefinition, type CompiledAgent, checkSurroundings, compileAgent } from '../core/agent/define.ts';
import { Executions } from '../core/agent/executions.ts';
import { type ExecutionPage, type ExecutionQuery, listExecutions, readExecution } from '../core/agent/list.ts';
import { pruneExecutions } from '../core/agent/prune.ts';
import type { Run, RunOutcome } from '../core/agent/run.ts';
import { runnable } from '../core/agent/runnable.ts';
import { TakeOver, type TakeOverOptions } from '../core/agent/take-over.ts';
import { decide, type Signal, type SignalAnswer, type SignalOptions } from '../core/approval/signal.ts';
import { isSvcError, SvcError, sentences } from '../core/errors.ts';
import { DefinedAgent, type Ready } from './agent.ts';
import { type ApprovalRuntime, loadApprovals, surroundings } from './approval-runtime.ts';
import { routesOf } from './routes.ts';
import type { Runtime } from './runtime.ts';

interface Opened {
  readonly runtime: Runtime;
  readonly approvals: ApprovalRuntime;
  readonly executions: Executions;
}

/** The agents of a client and their executions. @experimental */
export class Agents {
  readonly #runtime: () => Promise<Runtime>;
  readonly #defined = new Map<string, () => Promise<Ready>>();
  readonly #workers = new Set<TakeOver>();
  #opened: Promise<Opened> | undefined;

  constructor(runtime: () => Promise<Runtime>) {
    this.#runtime = runtime;
  }

  /**
   * Defines an agent. Throws `agent_invalid` with every mistake and its path, `agent_taken`; awaited, also for what
   * only the configuration can tell: the provider, the broker, the way back from a webhook.
   * @example const payouts = svc.agents.define({ tag: 'payouts', model: { provider: 'openai', model: 'gpt-5' }, tools })
   */
  define<const T extends readonly unknown[]>(definition: AgentDefinition<T>): DefinedAgent {
    const compiled = compileAgent(definition);
    const { tag } = compiled;
    if (this.#defined.has(tag)) {
      throw new SvcError('agent_taken', `An agent "${tag}" is defined already.`, {
        why: 'Its executions would not know which of the two they belong to.',
        next: ['Give it another tag.'],
      });
    }
    warnOfIdle(compiled);
    let ready: Promise<Ready> | undefined;
    const open = (): Promise<Ready> => {
      ready ??= this.#ready(compiled);
      ready.catch(() => {
        ready = undefined;
      });
      return ready;
    };
    this.#defined.set(tag, open);
    return new DefinedAgent(compiled, () => this.#check(compiled), open);
  }

  /** Decides a request: see `svc.approvals`. */
  async signal(signal: Signal, options: SignalOptions = {}): Promise<SignalAnswer> {
    return decide((await loadApprovals(await this.#runtime())).desk, signal, options);
  }

  /**
   * The run of an execution that has not ended. One that nobody runs any more is taken over; one that another
   * process runs is watched, and taken over when that dies. Its agent must be defined here. Throws
   * `execution_unknown`, `execution_finished`, `agent_unknown`.
   */
  async resume(executionId: string): Promise<Run> {
    const { executions } = await this.#open();
    await this.#agentOf(executions, executionId);
    return executions.resume(executionId);
  }

  /**
   * Takes over what nobody runs, now and until it is stopped: the executions of agents that are defined here, whose
   * process has died or has closed its client. Those of an agent that is refused are left alone, with a warning.
   * Throws where the first look fails, and then looks no more.
   */
  async resumeAll(options: TakeOverOptions = {}): Promise<TakeOver> {
    const { executions } = await this.#open();
    await Promise.all([...this.#defined].map(([tag, ready]) => ready().catch((error) => warnOfRefused(tag, error))));
    const worker = new TakeOver(executions, options);
    this.#workers.add(worker);
    try {
      await worker.first;
    } catch (error) {
      this.#workers.delete(worker);
      await worker.stop();
      throw error;
    }
    return worker;
  }

  /** A page of executions, the oldest first; without a query those that have not ended. */
  async list(query: ExecutionQuery = {}): Promise<ExecutionPage> {
    return listExecutions((await this.#open()).executions, query);
  }

  /** An execution with its steps. Throws `execution_unknown`. */
  async get(executionId: string): Promise<NonNullable<Awaited<ReturnType<typeof readExecution>>>> {
    const found = await readExecution((await this.#open()).executions, executionId);
    if (found) return found;
    throw new SvcError('execution_unknown', `No execution has the id ${executionId}.`, { details: { executionId } });
  }

  /**
   * Cancels an execution, whichever process runs it, and gives its outcome: what it waits for is cancelled, a handler
   * or a turn of the model that is under way in another process comes to its end first. Throws `execution_unknown`,
   * `execution_finished`.
   */
  async cancel(executionId: string, reason?: string): Promise<RunOutcome> {
    const { executions } = await this.#open();
    // Whose agent is refused here runs nothing here: it is cancelled all the same.
    await this.#agentOf(executions, executionId).catch(() => undefined);
    return executions.cancel(executionId, reason);
  }

  /** Removes executions that were begun that long ago and have ended; `svc.approvals.prune` removes their requests. Gives how many. */
  async prune(options: { readonly olderThanMs: number }): Promise<number> {
    const { executions, approvals } = await this.#open();
    return pruneExecutions(executions, approvals.desk.clock, options);
  }

  /** Stops running; what runs or waits can be resumed. @internal */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.executions.close();
  }

  /** Makes the agent of an execution known to the store, if it is defined here. */
  async #agentOf({ rows }: Executions, executionId: string): Promise<void> {
    const found = await rows.get(executionId);
    if (found) await this.#defined.get(found.record.agentTag)?.();
  }

  #open(): Promise<Opened> {
    this.#opened ??= this.#opening();
    this.#opened.catch(() => {
      this.#opened = undefined;
    });
    return this.#opened;
  }

  async #opening(): Promise<Opened> {
    const runtime = await this.#runtime();
    const approvals = await loadApprovals(runtime);
    const { home, desk, owner } = approvals;
    return { runtime, approvals, executions: await Executions.open({ home, desk, owner }) };
  }

  async #check(compiled: CompiledAgent): Promise<void> {
    const runtime = await this.#runtime();
    checkSurroundings(compiled, surroundings(runtime));
    await runtime.find('models', compiled.model.provider).catch((error: unknown) => {
      if (!isSvcError(error) || error.code !== 'name_unknown') throw error;
      throw new SvcError('agent_invalid', `The agent "${compiled.tag}" cannot be defined.`, {
        why: `model.provider: ${error.message} ${error.why}`,
        next: error.next,
        details: { path: ['model', 'provider'] },
      });
    });
  }

  async #ready(compiled: CompiledAgent): Promise<Ready> {
    await this.#check(compiled);
    const { runtime, approvals, executions } = await this.#open();
    const factory = await runtime.find('models', compiled.model.provider);
    const agent = runnable(compiled, approvals.desk, factory, await routesOf(runtime, compiled.humanInLoop));
    executions.define(agent);
    return { agent, executions };
  }
}

/** Once, where it is defined: what looks like a gate and is none. */
export function warnOfIdle({ tag, idle }: Pick<CompiledAgent, 'tag' | 'idle'>): void {
  if (idle.length === 0) return;
  const tools = idle.length === 1 ? `the tool "${idle[0]}" runs` : `the tools ${idle.join(', ')} run`;
  process.emitWarning(`humanInLoop of the agent "${tag}" is not enabled: ${tools} without approval.`, 'SvcWarning');
}

function warnOfRefused(tag: string, error: unknown): void {
  const why = isSvcError(error) ? sentences(error) : String(error);
  process.emitWarning(`Executions of the agent "${tag}" are not taken over here: ${why}`, 'SvcWarning');
}

import { createAgentRuntime } from '../../core/agent/agent-runtime.ts';
import {
  type AgentDefinition,
  assertApprovalSettings,
  type CompiledAgent,
  compileAgent,
} from '../../core/agent/define.ts';
import { ExecutionService } from '../../core/agent/execution-service.ts';
import type { ModelProvider } from '../../core/agent/model.ts';
import { pruneExecutions } from '../../core/agent/prune-executions.ts';
import {
  type ExecutionPage,
  type ExecutionQuery,
  listExecutions,
  readExecution,
} from '../../core/agent/read-executions.ts';
import { type RecoveryOptions, RecoveryWorker } from '../../core/agent/recovery-worker.ts';
import type { Run, RunOutcome } from '../../core/agent/run.ts';
import type { DeliveryRoute } from '../../core/approval/announce.ts';
import {
  decide,
  type Signal,
  type SignalInput,
  type SignalOptions,
  type SignalResult,
} from '../../core/approval/decide.ts';
import { describeError, isSvcError, SvcError } from '../../core/errors.ts';
import type { Runtime } from '../load/runtime.ts';
import { DefinedAgent, type ReadyAgent } from './agent.ts';
import { type ApprovalRuntime, openApprovals } from './approval-runtime.ts';
import { approvalSettings, routesFor } from './delivery-routes.ts';
import { onceSuccessful } from './once-successful.ts';

interface OpenedStore {
  readonly runtime: Runtime;
  readonly approvals: ApprovalRuntime;
  readonly executions: ExecutionService;
}

/** What a definition needs from the configuration. */
interface CheckedAgent {
  readonly model: ModelProvider;
  readonly routes: readonly DeliveryRoute[];
}

/** The agents of a client and their executions. @experimental */
export class Agents {
  readonly #runtime: () => Promise<Runtime>;
  readonly #defined = new Map<string, () => Promise<ReadyAgent>>();
  readonly #workers = new Set<RecoveryWorker>();
  #opened: Promise<OpenedStore> | undefined;

  constructor(runtime: () => Promise<Runtime>) {
    this.#runtime = runtime;
  }

  /**
   * Defines an agent. Throws `agent_invalid` with every problem and its path, or `agent_taken`. Awaiting the result
   * also checks it against the configuration: the model provider with its package and settings, the broker, the callback
   * and the secrets of a webhook. Throws `config_invalid`, `driver_missing` and `agent_invalid`.
   * @example const payouts = svc.agents.define({ tag: 'payouts', model: { provider: 'openai', model: 'gpt-5' }, tools })
   */
  define<const T extends readonly unknown[]>(definition: AgentDefinition<T>): DefinedAgent {
    const compiled = compileAgent(definition);
    const { tag } = compiled;
    if (this.#defined.has(tag)) {
      throw new SvcError('agent_taken', `The agent "${tag}" is already defined.`, {
        why: 'Two agents with one tag would share their executions.',
        next: ['Use another tag.'],
      });
    }
    warnUngatedTools(compiled);
    const check = onceSuccessful(() => this.#check(compiled));
    const prepare = onceSuccessful(async () => this.#prepare(compiled, await check()));
    this.#defined.set(tag, prepare);
    return new DefinedAgent(compiled, check, prepare);
  }

  /** Decides a request, as `svc.approvals.signal` does. */
  async signal<Name extends string>(signal: SignalInput<Name>, options: SignalOptions = {}): Promise<SignalResult> {
    return decide((await openApprovals(await this.#runtime())).service, signal as Signal, options);
  }

  /**
   * Returns the run of an execution that has not ended. An abandoned execution is taken over. One that another process
   * runs is watched, and taken over if that process dies. Its agent must be defined in this process. Throws
   * `execution_unknown`, `execution_finished`, `agent_unknown`.
   */
  async resume(executionId: string): Promise<Run> {
    const { executions } = await this.#open();
    await this.#prepareAgentOf(executions, executionId);
    return executions.resume(executionId);
  }

  /**
   * Takes over abandoned executions, now and until the worker is stopped: those of agents defined in this process,
   * whose own process has died or closed its client. Skips agents that fail their checks, with a warning. Throws and
   * stops if the first scan fails.
   */
  async resumeAll(options: RecoveryOptions = {}): Promise<RecoveryWorker> {
    const { executions } = await this.#open();
    await Promise.all(
      [...this.#defined].map(([tag, prepare]) => prepare().catch((error) => warnNotRecovered(tag, error))),
    );
    const worker = new RecoveryWorker(executions, options);
    this.#workers.add(worker);
    try {
      await worker.initialRuns;
    } catch (error) {
      this.#workers.delete(worker);
      await worker.stop();
      throw error;
    }
    return worker;
  }

  /** Returns a page of executions, oldest first; without a query, those that have not ended. */
  async list(query: ExecutionQuery = {}): Promise<ExecutionPage> {
    return listExecutions((await this.#open()).executions, query);
  }

  /** Returns an execution with its steps. Throws `execution_unknown`. */
  async get(executionId: string): Promise<NonNullable<Awaited<ReturnType<typeof readExecution>>>> {
    const found = await readExecution((await this.#open()).executions, executionId);
    if (found) return found;
    throw new SvcError('execution_unknown', `No execution has the id ${executionId}.`, { details: { executionId } });
  }

  /**
   * Cancels an execution, whichever process runs it, and returns its outcome. Pending approvals are cancelled; a tool
   * handler or model turn already running in another process finishes first. Throws `execution_unknown`,
   * `execution_finished`.
   */
  async cancel(executionId: string, reason?: string): Promise<RunOutcome> {
    const { executions } = await this.#open();
    // Cancelling does not need a usable agent.
    await this.#prepareAgentOf(executions, executionId).catch(() => undefined);
    return executions.cancel(executionId, reason);
  }

  /** Removes ended executions older than `olderThanMs`; `svc.approvals.prune` removes their requests. Returns the count. */
  async prune(options: { readonly olderThanMs: number }): Promise<number> {
    const { executions, approvals } = await this.#open();
    return pruneExecutions(executions, approvals.service.clock, options);
  }

  /** Stops the runs of this process; they can be resumed. @internal */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.executions.close();
  }

  /** Prepares the agent of an execution, if this process defines it. */
  async #prepareAgentOf({ rows }: ExecutionService, executionId: string): Promise<void> {
    const found = await rows.get(executionId);
    if (found) await this.#defined.get(found.record.agentTag)?.();
  }

  #open(): Promise<OpenedStore> {
    this.#opened ??= this.#openOnce();
    this.#opened.catch(() => {
      this.#opened = undefined;
    });
    return this.#opened;
  }

  async #openOnce(): Promise<OpenedStore> {
    const runtime = await this.#runtime();
    const approvals = await openApprovals(runtime);
    const { backend, service, owner } = approvals;
    return { runtime, approvals, executions: await ExecutionService.open({ backend, approvals: service, owner }) };
  }

  /** Everything that a run needs except the store. */
  async #check(compiled: CompiledAgent): Promise<CheckedAgent> {
    const runtime = await this.#runtime();
    assertApprovalSettings(compiled, approvalSettings(runtime));
    const { provider, model, settings } = compiled.model;
    const factory = await runtime.find('models', provider).catch((error: unknown) => {
      if (!isSvcError(error) || error.code !== 'name_unknown') throw error;
      throw new SvcError('agent_invalid', `The agent "${compiled.tag}" cannot be defined.`, {
        why: `model.provider: ${error.message} ${error.why}`,
        next: error.next,
        details: { path: ['model', 'provider'] },
      });
    });
    const routes = await routesFor(runtime, compiled.humanInLoop);
    return { model: await factory({ model, settings }), routes };
  }

  async #prepare(compiled: CompiledAgent, { model, routes }: CheckedAgent): Promise<ReadyAgent> {
    const { approvals, executions } = await this.#open();
    approvals.notices.add(compiled.tag, routes);
    const agent = createAgentRuntime(compiled, approvals.service, model, routes);
    executions.define(agent);
    return { agent, executions };
  }
}

/** Warns, at definition, about a humanInLoop that gates nothing. */
export function warnUngatedTools({ tag, ungatedTools }: Pick<CompiledAgent, 'tag' | 'ungatedTools'>): void {
  if (ungatedTools.length === 0) return;
  const tools =
    ungatedTools.length === 1 ? `the tool "${ungatedTools[0]}" runs` : `the tools ${ungatedTools.join(', ')} run`;
  process.emitWarning(`humanInLoop of the agent "${tag}" is not enabled: ${tools} without approval.`, 'SvcWarning');
}

function warnNotRecovered(tag: string, error: unknown): void {
  const why = isSvcError(error) ? describeError(error) : String(error);
  process.emitWarning(`This process does not take over executions of the agent "${tag}": ${why}`, 'SvcWarning');
}

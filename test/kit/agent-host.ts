import { onceSuccessful } from '../../config/sdk/once-successful.ts';
import { type AgentRuntime, createAgentRuntime } from '../../core/agent/agent-runtime.ts';
import { compileAgent } from '../../core/agent/define.ts';
import { ExecutionService } from '../../core/agent/execution-service.ts';
import type { ModelProvider, ScriptedTurn } from '../../core/agent/model.ts';
import { Run } from '../../core/agent/run.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { decide, type Signal } from '../../core/approval/decide.ts';
import { type ListQuery, listApprovals } from '../../core/approval/list-approvals.ts';
import { newExecutionId } from '../../core/approval/request.ts';
import { ApprovalService } from '../../core/approval/service.ts';
import { Kernel } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import scripted from '../../plugins/models/scripted.ts';
import { MemoryStore } from '../../plugins/stores/memory.ts';
import { waitUntil } from '../suites/wait-until.ts';

const owner = { product: 'shop', env: 'test', database: 'main' };

/** The parts of a client that `svc.agents` uses, on any store. */
export class AgentHost {
  readonly kernel: Kernel;
  readonly service: ApprovalService;
  readonly executions: ExecutionService;
  readonly warnings: readonly string[];

  private constructor(
    kernel: Kernel,
    service: ApprovalService,
    executions: ExecutionService,
    warnings: readonly string[],
  ) {
    this.kernel = kernel;
    this.service = service;
    this.executions = executions;
    this.warnings = warnings;
  }

  static async open(backend: StorageBackend = new MemoryStore(), leaseMs = 15_000): Promise<AgentHost> {
    const kernel = new Kernel();
    applyPlugin(kernel, scripted, 'test');
    const warnings: string[] = [];
    const approvals = await ApprovalService.open({
      backend: backend,
      hooks: kernel.hooks,
      owner,
      warn: (message) => warnings.push(message),
    });
    return new AgentHost(
      kernel,
      approvals,
      await ExecutionService.open({ backend: backend, approvals, owner, leaseMs }),
      warnings,
    );
  }

  define(definition: object): AgentRuntime {
    const compiled = compileAgent(definition);
    const { provider, model, settings } = compiled.model;
    const open = onceSuccessful(async () => this.kernel.models.get(provider)({ model, settings }));
    const opened: ModelProvider = {
      async *turn(...args) {
        yield* (await open()).turn(...args);
      },
    };
    const agent = createAgentRuntime(compiled, this.service, opened);
    this.executions.define(agent);
    return agent;
  }

  run(agent: AgentRuntime, prompt = 'Go.'): Run {
    const run = new Run(newExecutionId());
    void this.executions.start(agent, run, prompt);
    return run;
  }

  /** Waits until `count` requests are waiting, and returns them. */
  async untilWaiting(count: number, query: ListQuery = {}) {
    await waitUntil(
      async () => (await listApprovals(this.service, query)).records.length >= count,
      `There were never ${count} waiting requests`,
    );
    return (await listApprovals(this.service, query)).records;
  }

  decide(
    { executionId, requestId }: { readonly executionId: string; readonly requestId: string },
    signal: Signal['signal'] = 'approve',
    overrides: Omit<Signal['payload'], 'requestId'> = {},
  ) {
    return decide(this.service, { executionId, signal, payload: { requestId, ...overrides } });
  }

  async close(): Promise<void> {
    await this.executions.close();
    await this.service.close();
  }
}

/** An agent whose model replays these turns. */
export function agentDefinition(
  turns: readonly (ScriptedTurn | ((...a: never[]) => ScriptedTurn))[],
  overrides: object = {},
): object {
  return {
    tag: 'payouts',
    model: { provider: 'scripted', model: 'test', settings: { turns } },
    tools: [],
    ...overrides,
  };
}

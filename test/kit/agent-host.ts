import { type AgentRuntime, createAgentRuntime } from '../../core/agent/agent-runtime.ts';
import { compileAgent } from '../../core/agent/define.ts';
import { Executions } from '../../core/agent/executions.ts';
import type { ScriptedTurn } from '../../core/agent/model.ts';
import { Run } from '../../core/agent/run.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { decide, type Signal } from '../../core/approval/decide.ts';
import { type ListQuery, listApprovals } from '../../core/approval/list.ts';
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
  readonly executions: Executions;
  readonly warnings: readonly string[];

  private constructor(kernel: Kernel, service: ApprovalService, executions: Executions, warnings: readonly string[]) {
    this.kernel = kernel;
    this.service = service;
    this.executions = executions;
    this.warnings = warnings;
  }

  static async open(home: StorageBackend = new MemoryStore(), leaseMs = 15_000): Promise<AgentHost> {
    const kernel = new Kernel();
    applyPlugin(kernel, scripted, 'test');
    const warnings: string[] = [];
    const approvals = await ApprovalService.open({
      backend: home,
      hooks: kernel.hooks,
      owner,
      warn: (message) => warnings.push(message),
    });
    return new AgentHost(
      kernel,
      approvals,
      await Executions.open({ backend: home, approvals, owner, leaseMs }),
      warnings,
    );
  }

  define(definition: object): AgentRuntime {
    const compiled = compileAgent(definition);
    const agent = createAgentRuntime(compiled, this.service, this.kernel.models.get(compiled.model.provider));
    this.executions.define(agent);
    return agent;
  }

  run(agent: AgentRuntime, prompt = 'Go.'): Run {
    const run = new Run(newExecutionId());
    void this.executions.start(agent, run, prompt);
    return run;
  }

  /** Waits until that many requests wait, and gives them. */
  async waiting(many: number, query: ListQuery = {}) {
    await waitUntil(
      async () => (await listApprovals(this.service, query)).records.length >= many,
      `There were never ${many} requests that wait`,
    );
    return (await listApprovals(this.service, query)).records;
  }

  decide(
    { executionId, requestId }: { readonly executionId: string; readonly requestId: string },
    signal: Signal['signal'] = 'approve',
    more: Omit<Signal['payload'], 'requestId'> = {},
  ) {
    return decide(this.service, { executionId, signal, payload: { requestId, ...more } });
  }

  async close(): Promise<void> {
    await this.executions.close();
    await this.service.close();
  }
}

/** An agent whose model replays these turns. */
export function agentOf(
  turns: readonly (ScriptedTurn | ((...a: never[]) => ScriptedTurn))[],
  more: object = {},
): object {
  return { tag: 'payouts', model: { provider: 'scripted', model: 'test', settings: { turns } }, tools: [], ...more };
}

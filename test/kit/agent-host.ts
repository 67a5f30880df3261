import { compileAgent } from '../../core/agent/define.ts';
import { Executions } from '../../core/agent/executions.ts';
import type { ScriptedTurn } from '../../core/agent/model.ts';
import { Run } from '../../core/agent/run.ts';
import { type RunnableAgent, runnable } from '../../core/agent/runnable.ts';
import { ApprovalDesk } from '../../core/approval/desk.ts';
import type { StoreHome } from '../../core/approval/home.ts';
import { newExecutionId } from '../../core/approval/id.ts';
import { type ListQuery, list } from '../../core/approval/list.ts';
import { decide, type Signal } from '../../core/approval/signal.ts';
import { Kernel } from '../../core/kernel.ts';
import { applyPlugin } from '../../core/plugin.ts';
import scripted from '../../plugins/models/scripted.ts';
import { MemoryStore } from '../../plugins/stores/memory.ts';
import { until } from './until.ts';

const owner = { product: 'shop', env: 'test', database: 'main' };

/** What a client has behind `svc.agents`, over a store of the test's choice. */
export class AgentHost {
  readonly kernel: Kernel;
  readonly desk: ApprovalDesk;
  readonly executions: Executions;
  readonly warnings: readonly string[];

  private constructor(kernel: Kernel, desk: ApprovalDesk, executions: Executions, warnings: readonly string[]) {
    this.kernel = kernel;
    this.desk = desk;
    this.executions = executions;
    this.warnings = warnings;
  }

  static async open(home: StoreHome = new MemoryStore(), leaseMs = 15_000): Promise<AgentHost> {
    const kernel = new Kernel();
    applyPlugin(kernel, scripted, 'test');
    const warnings: string[] = [];
    const desk = await ApprovalDesk.open({ home, kernel, owner, warn: (message) => warnings.push(message) });
    return new AgentHost(kernel, desk, await Executions.open({ home, desk, owner, leaseMs }), warnings);
  }

  define(definition: object): RunnableAgent {
    const compiled = compileAgent(definition);
    const agent = runnable(compiled, this.desk, this.kernel.models.get(compiled.model.provider));
    this.executions.define(agent);
    return agent;
  }

  run(agent: RunnableAgent, prompt = 'Go.'): Run {
    const run = new Run(newExecutionId());
    void this.executions.begin(agent, run, prompt);
    return run;
  }

  /** Waits until that many requests wait, and gives them. */
  async waiting(many: number, query: ListQuery = {}) {
    await until(
      async () => (await list(this.desk, query)).records.length >= many,
      `There were never ${many} requests that wait`,
    );
    return (await list(this.desk, query)).records;
  }

  decide(
    { executionId, requestId }: { readonly executionId: string; readonly requestId: string },
    signal: Signal['signal'] = 'approve',
    more: Omit<Signal['payload'], 'requestId'> = {},
  ) {
    return decide(this.desk, { executionId, signal, payload: { requestId, ...more } });
  }

  async close(): Promise<void> {
    await this.executions.close();
    await this.desk.close();
  }
}

/** An agent whose model replays these turns. */
export function agentOf(
  turns: readonly (ScriptedTurn | ((...a: never[]) => ScriptedTurn))[],
  more: object = {},
): object {
  return { tag: 'payouts', model: { provider: 'scripted', model: 'test', settings: { turns } }, tools: [], ...more };
}

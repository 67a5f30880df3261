import type { DeliveryRoute } from '../approval/announce.ts';
import { ApprovalGate } from '../approval/gate.ts';
import type { ApprovalService } from '../approval/service.ts';
import type { CompiledAgent } from './define.ts';
import type { ModelFactory, ModelProvider } from './model.ts';

/** A defined agent with its gate and its model. */
export interface AgentRuntime {
  readonly definition: CompiledAgent;
  readonly gate: ApprovalGate;
  /** Whether a request with that id is stored. */
  hasRequest(requestId: string): Promise<boolean>;
  /** The model provider, created on first use. */
  model(): Promise<ModelProvider>;
}

export function createAgentRuntime(
  definition: CompiledAgent,
  approvals: ApprovalService,
  createModel: ModelFactory,
  routes: readonly DeliveryRoute[] = [],
): AgentRuntime {
  const { tag, tools, humanInLoop, model } = definition;
  let provider: Promise<ModelProvider> | undefined;
  return {
    definition,
    gate: new ApprovalGate(approvals, { agentTag: tag, tools, humanInLoop, routes }),
    hasRequest: async (requestId) => (await approvals.read(requestId)) !== undefined,
    model() {
      provider ??= (async () => createModel({ model: model.model, settings: model.settings }))();
      // Tried again after a failure: the missing package may have been installed.
      provider.catch(() => {
        provider = undefined;
      });
      return provider;
    },
  };
}

import type { DeliveryRoute } from '../approval/announce.ts';
import { ApprovalGate } from '../approval/gate.ts';
import type { ApprovalService } from '../approval/service.ts';
import type { CompiledAgent } from './define.ts';
import type { ModelProvider } from './model.ts';

/** A defined agent with its gate and its model. */
export interface AgentRuntime {
  readonly definition: CompiledAgent;
  readonly gate: ApprovalGate;
  readonly model: ModelProvider;
  /** Whether a request with that id is stored. */
  hasRequest(requestId: string): Promise<boolean>;
}

export function createAgentRuntime(
  definition: CompiledAgent,
  approvals: ApprovalService,
  model: ModelProvider,
  routes: readonly DeliveryRoute[] = [],
): AgentRuntime {
  const { tag, tools, humanInLoop } = definition;
  return {
    definition,
    gate: new ApprovalGate(approvals, { agentTag: tag, tools, humanInLoop, routes }),
    model,
    hasRequest: async (requestId) => (await approvals.read(requestId)) !== undefined,
  };
}

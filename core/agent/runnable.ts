import type { Route } from '../approval/announce.ts';
import type { ApprovalDesk } from '../approval/desk.ts';
import { ApprovalGate } from '../approval/gate.ts';
import type { CompiledAgent } from './define.ts';
import type { ModelFactory, ModelProvider } from './model.ts';

/** An agent with what runs it. */
export interface RunnableAgent {
  readonly definition: CompiledAgent;
  readonly gate: ApprovalGate;
  /** Whether the gate has stored a request of that id. */
  hasRequest(requestId: string): Promise<boolean>;
  model(): Promise<ModelProvider>;
}

export function runnable(
  definition: CompiledAgent,
  desk: ApprovalDesk,
  factory: ModelFactory,
  routes: readonly Route[] = [],
): RunnableAgent {
  const { tag, tools, humanInLoop, model } = definition;
  let opened: Promise<ModelProvider> | undefined;
  return {
    definition,
    gate: new ApprovalGate(desk, { agentTag: tag, tools, humanInLoop, routes }),
    hasRequest: async (requestId) => (await desk.read(requestId)) !== undefined,
    model() {
      opened ??= (async () => factory({ model: model.model, settings: model.settings }))();
      // One that failed is tried again: its package may have been installed by then.
      opened.catch(() => {
        opened = undefined;
      });
      return opened;
    },
  };
}

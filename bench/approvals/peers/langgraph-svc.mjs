import { interrupt } from '@langchain/langgraph';
import { withApproval } from '../../../dist/plugins/frameworks/langchain.js';
import { graphOf } from './langgraph.mjs';
import { payingTool, Threads } from './langgraph-threads.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

/** @param agentOf an agent whose tool `refund` waits at a gate. */
export async function openGated({ url, effects, renamed }, agentOf) {
  const threads = await Threads.open({ url, effects });
  const { checkpointer } = threads;
  const gates = openGates({ url });
  const options = { interrupt, onRequested: gates.onRequested };
  const withGate = (gate) => agentOf({ gate, refund: payingTool(renamed, effects), checkpointer, options });
  const agents = { payouts: withGate(gates.payouts), expiring: withGate(gates.expiring) };
  return suspendedSystem(gates, effects, {
    start: (run, gate) => threads.start(agents[gate], run),
    resume: (run, gate) => threads.resume(agents[gate], run, true),
    tamperRun: (run) => threads.tamper(run),
    close: () => threads.close(),
  });
}

/** As langgraph.mjs, with the gate of svc in place of `interrupt` in the tool. */
export default {
  name: 'LangGraph JS with svc',
  packages: [],
  open: (context) =>
    openGated(context, ({ gate, refund, checkpointer, options }) =>
      graphOf(withApproval(gate, [refund], options), checkpointer),
    ),
};

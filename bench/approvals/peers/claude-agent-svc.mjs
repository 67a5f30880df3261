import { withApproval } from '../../../dist/plugins/frameworks/claude-agent.js';
import { refundOf, Sessions } from './claude-session.mjs';
import { openGates, suspendedSystem } from './svc-gate.mjs';

/** As claude-agent.mjs, with the hooks and the tools of svc. */
export default {
  name: 'Claude Agent SDK with svc',
  packages: [],
  mostRuns: 20,
  async open({ url, effects, renamed }) {
    const sessions = await Sessions.open(effects);
    const gates = openGates({ url });
    const partsOf = (run, gate) => {
      const options = { executionId: run, wait: 'suspend', onRequested: gates.onRequested };
      return withApproval(gates[gate], [refundOf(effects, renamed)], options);
    };
    return suspendedSystem(gates, effects, {
      start: (run, gate) => sessions.start(run, partsOf(run, gate)),
      resume: (run, gate) => sessions.resume(run, partsOf(run, gate)),
      tamperRun: (run) => sessions.tamper(run),
    });
  },
};

import { withApproval } from '../../../dist/plugins/frameworks/claude-agent.js';
import { refundOf, Sessions } from './claude-session.mjs';
import { openGates } from './svc-gate.mjs';

/** As claude-agent.mjs, with the hooks and the tools of svc. */
export default {
  name: 'Claude Agent SDK with svc',
  packages: [],
  mostRuns: 20,
  async open({ url, effects, renamed }) {
    const sessions = await Sessions.open(effects);
    const { svc, payouts, expiring, onRequested, decide, list, tamper } = openGates({ url });
    const partsOf = (run, gate = payouts) =>
      withApproval(gate, [refundOf(effects, renamed)], { executionId: run, wait: 'suspend', onRequested });
    return {
      start: (run) => sessions.start(run, partsOf(run)),
      async startExpiring(run) {
        let response = await sessions.start(run, partsOf(run, expiring));
        while (response === 'waits') response = await sessions.resume(run, partsOf(run, expiring));
        return response;
      },
      async decide(run, verdict) {
        await decide(run, verdict);
        return sessions.resume(run, partsOf(run));
      },
      recover: (run) => sessions.resume(run, partsOf(run)),
      list,
      async tamper(run) {
        await tamper(effects, run);
        await sessions.tamper(run);
      },
      close: () => svc.close(),
    };
  },
};

import { refundOf, Sessions } from './claude-session.mjs';
import { AMOUNT } from './script.mjs';

const decision = (permissionDecision, fields) => ({
  hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, ...fields },
});

/** Its hook defers the call, and the caller stores the session. */
export default {
  name: 'Claude Agent SDK',
  packages: ['@anthropic-ai/claude-agent-sdk'],
  mostRuns: 20,
  async open({ effects, renamed }) {
    const sessions = await Sessions.open(effects);
    const tools = [refundOf(effects, renamed)];
    const partsOf = (run, verdict) => {
      const before = async () => {
        if (verdict === undefined) return decision('defer');
        if (!verdict.approve) return decision('deny', { permissionDecisionReason: 'rejected' });
        const updatedInput = { orderId: run, amount: verdict.amount ?? AMOUNT };
        return decision('allow', verdict.amount === undefined ? {} : { updatedInput });
      };
      return { tools, hooks: { PreToolUse: [{ hooks: [before] }] } };
    };
    return {
      start: (run) => sessions.start(run, partsOf(run)),
      decide: (run, verdict) => sessions.resume(run, partsOf(run, verdict)),
      recover: (run) => sessions.resume(run, partsOf(run)),
      list: () => sessions.list(),
      tamper: (run) => sessions.tamper(run),
      close: async () => {},
    };
  },
};

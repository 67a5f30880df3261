import { Svc } from '../../../dist/config/sdk/index.js';

/** What contenders with an adapter of svc share: gates on the database, and decisions by the name of a run. */
export function openGates({ url, plugins = [] }) {
  const svc = new Svc({
    product: 'bench',
    env: 'dev',
    config: {
      databases: { main: { dialect: 'postgresql', url } },
      approvals: { store: { database: 'main' } },
      plugins,
    },
  });
  const gateOf = (agentTag, approvalTimeout) => svc.gate({ agentTag, humanInLoop: { enabled: true, approvalTimeout } });
  /** The ids of requests that this process made; others are looked up in the store. */
  const requests = new Map();
  const requestOf = async (executionId) => {
    const { records } = requests.has(executionId) ? { records: [] } : await svc.approvals.list({ executionId });
    return requests.get(executionId) ?? records[0]?.requestId ?? executionId;
  };
  return {
    svc,
    payouts: gateOf('payouts', 600_000),
    expiring: gateOf('expiring', 1_000),
    onRequested: ({ executionId, requestId }) => requests.set(executionId, requestId),
    async decide(executionId, { approve, amount }) {
      const requestId = await requestOf(executionId);
      const payload = { requestId, ...(amount !== undefined && { modifiedParams: { amount } }) };
      await svc.approvals.signal({ executionId, signal: approve ? 'approve' : 'reject', payload });
    },
    list: () => waitingIn(svc),
    tamper: async (effects, executionId) => tamperWith(effects, await requestOf(executionId)),
  };
}

/**
 * A contender whose runs are suspended while a request waits, as the bench drives it. `start` and `resume` take the name of a run and
 * which gate holds it, `payouts` or `expiring`; `tamperRun` changes the amount in what the framework stored.
 */
export function suspendedSystem({ svc, decide, list, tamper }, effects, { start, resume, tamperRun, close }) {
  return {
    start: (run) => start(run, 'payouts'),
    async startExpiring(run) {
      await start(run, 'expiring');
      let response;
      do response = await resume(run, 'expiring');
      while (response === 'waits');
      return response;
    },
    async decide(run, verdict) {
      await decide(run, verdict);
      return resume(run, 'payouts');
    },
    recover: (run) => resume(run, 'payouts'),
    list,
    async tamper(run) {
      await tamper(effects, run);
      await tamperRun(run);
    },
    async close() {
      await svc.close();
      await close?.();
    },
  };
}

/** How many requests wait. */
export async function waitingIn(svc) {
  let count = 0;
  let cursor;
  do {
    const page = await svc.approvals.list({ limit: 1000, ...(cursor !== undefined && { cursor }) });
    count += page.records.length;
    cursor = page.cursor;
  } while (cursor !== undefined);
  return count;
}

/** Changes the stored amount of a request. */
export async function tamperWith(effects, requestId) {
  const body = `jsonb_set(body::jsonb, '{parameters,amount}', '9999')`;
  await effects.query(`UPDATE _svc_approvals SET body = ${body} WHERE "requestId" = $1`, [requestId]);
}

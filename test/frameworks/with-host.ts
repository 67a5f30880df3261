import { Svc } from '../../config/sdk/index.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import type { HostName } from './hosts.ts';
import { type Ended, type FrameworkRun, loadHost } from './run.ts';

export const refundCall = (id: string, amount: number) => ({ id, name: 'refund', args: { amount, note: 'none' } });

interface Setup {
  readonly svc: Svc;
  readonly ran: number[];
  readonly requests: ApprovalRequest[];
  readonly open: (options: object) => Promise<FrameworkRun>;
}

export async function withHost(
  host: HostName,
  approvalTimeout: number,
  body: (setup: Setup) => Promise<void>,
): Promise<void> {
  const framework = await loadHost(host);
  const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
  const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true, approvalTimeout } });
  const ran: number[] = [];
  const requests: ApprovalRequest[] = [];
  const refund = async ({ amount }: { amount: number }) => {
    ran.push(amount);
    return `paid ${amount}`;
  };
  const base = { gate, executionId: 'exe_1', calls: [refundCall('c1', 20)], refund, lookup: async () => 'looked' };
  const onRequested = (request: ApprovalRequest) => requests.push(request);
  const runs: FrameworkRun[] = [];
  const open = async (options: object) => {
    const run = await framework.open({ ...base, onRequested, ...options });
    runs.push(run);
    return run;
  };
  try {
    await body({ svc, ran, requests, open });
  } finally {
    for (const run of runs) await run.close?.();
    await svc.close();
  }
}

export const approve = (svc: Svc, requestId = '', modifiedParams?: object) =>
  svc.approvals.signal({ signal: 'approve', payload: { requestId, modifiedParams } }, { actor: 'ann' });
export const reject = (svc: Svc, requestId = '') =>
  svc.approvals.signal({ signal: 'reject', payload: { requestId, reason: 'Ask first.' } }, { actor: 'bob' });

export const textOf = ({ received }: Pick<Ended, 'received'>, callId: string) =>
  received.find(([id]) => id === callId)?.[1] ?? 'nothing';

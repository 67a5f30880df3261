import { DBOS } from '@dbos-inc/dbos-sdk';
import { Svc } from '@svc/sdk';
import { approvalStep } from '@svc/sdk/dbos';

// The real DBOS and a real tool are what the step takes.

const gate = new Svc().gate({ agentTag: 'payouts', humanInLoop: { enabled: true } });
const refund = gate.guard('refund', { inputSchema: { type: 'object' } }, () => 'paid');
export const payout = DBOS.registerWorkflow(async (amount: number): Promise<string> => {
  const { status, text } = await approvalStep(DBOS, refund, { toolCallId: 'refund', parameters: { amount } });
  return `${status} ${text}`;
});
// @ts-expect-error: the name of the call is needed.
approvalStep(DBOS, refund, { parameters: {} });
const own = gate.guard('own', { inputSchema: { type: 'object' } }, (_input, _ctx, add: (amount: number) => number) =>
  add(1),
);
// @ts-expect-error: a tool that its callers pass something of their own cannot run in another process.
approvalStep(DBOS, own, { toolCallId: 'own', parameters: {} });

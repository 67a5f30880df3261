import { Svc } from '@svc/sdk';
import { approvalActivities, approvalStep, wakeUps } from '@svc/sdk/temporal';
import * as activity from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import * as workflow from '@temporalio/workflow';

// The real modules and a real tool are what the functions take.

declare const client: Client;
const plugins = [wakeUps((id, runId, signal) => client.workflow.getHandle(id, runId).signal(signal))];
const gate = new Svc({ config: { plugins } }).gate({ agentTag: 'payouts', humanInLoop: { enabled: true } });
const refund = gate.guard('refund', { inputSchema: { type: 'object' } }, () => 'paid');
export const worker = Worker.create({
  taskQueue: 'payouts',
  activities: { other: async () => 1, ...approvalActivities(activity, [refund]) },
});
export async function payout(amount: number): Promise<string> {
  const { status } = await approvalStep(workflow, 'refund', { toolCallId: 'refund', parameters: { amount } });
  return status;
}
// @ts-expect-error: the name of the call is needed.
approvalStep(workflow, 'refund', { parameters: {} });

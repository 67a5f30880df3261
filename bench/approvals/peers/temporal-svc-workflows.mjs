import * as workflow from '@temporalio/workflow';
import { approvalStep } from '../../../dist/plugins/frameworks/temporal.js';

export async function refund(run, amount, tool) {
  const call = { toolCallId: 'refund', parameters: { orderId: run, amount } };
  const { status, result } = await approvalStep(workflow, tool, call);
  return `${status} ${JSON.stringify(result)}`;
}

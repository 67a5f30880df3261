import * as workflow from '@temporalio/workflow';
import { approvalStep } from '../../plugins/frameworks/temporal.ts';

export async function payout({ calls, inTurn, checkMs }) {
  const options = { ...(checkMs && { checkMs }), activity: { heartbeatTimeout: 10_000 } };
  const step = (call) => approvalStep(workflow, 'refund', call, options);
  if (!inTurn) return Promise.all(calls.map(step));
  const outcomes = [];
  for (const call of calls) outcomes.push(await step(call));
  return outcomes;
}

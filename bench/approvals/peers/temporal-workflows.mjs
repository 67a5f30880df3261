import { condition, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';

const { pay } = proxyActivities({ startToCloseTimeout: '10 seconds' });

/** It has no agents: the gate is the workflow of its documentation, a signal before the activity. */
export async function refund(run, amount, waitMs) {
  let verdict;
  setHandler(defineSignal('decision'), (given) => {
    verdict = given;
  });
  if (!(await condition(() => verdict !== undefined, waitMs))) return 'nobody decided';
  if (!verdict.approve) return 'rejected';
  return JSON.stringify(await pay(run, verdict.amount ?? amount));
}

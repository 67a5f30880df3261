/** The scripted model of every contender: one refund, then "Done." */
export const AMOUNT = 42;
export const promptOf = (run) => `Refund order ${run}`;
export const runIn = (prompt) => /order (\S+)/.exec(prompt)?.[1] ?? '';
export const callOf = (run) => ({ name: 'refund', id: `call_${run}`, args: { orderId: run, amount: AMOUNT } });
export const DONE = 'Done.';

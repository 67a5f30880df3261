import { rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { type ApprovalRequest, defineTool, Svc } from '@svc/sdk';

/**
 * The other job: an agent that wants to pay money back and stops at its gate until a human has decided. Its model is a
 * script, so that it runs without a key; `model: { provider: 'openai', model: 'gpt-5' }` is all that a real one needs.
 */

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, '.svc');
const isAsked = process.stdin.isTTY === true && !process.argv.includes('--yes');

function say(text: string): void {
  process.stdout.write(`\n— ${text}\n`);
}

rmSync(folder, { recursive: true, force: true });
const svc = new Svc({
  product: 'shop',
  env: 'dev',
  config: {
    databases: { main: { dialect: 'postgresql', url: `pglite://${join(folder, 'main')}` } },
    approvals: { store: { database: 'main' } },
  },
});

const order = { id: '1234', customer: 'Ada', total: 20, currency: 'EUR' };

const lookUpOrder = defineTool({
  tag: 'look_up_order',
  description: 'Reads an order.',
  idempotent: true,
  parameters: { orderId: { type: 'string', required: true } },
  handler: (_ctx, { orderId }) => (orderId === order.id ? order : { error: 'There is no such order.' }),
});

const refund = defineTool({
  tag: 'refund',
  description: 'Pays money back to a customer. Cannot be undone.',
  requiresConfirmation: true,
  parameters: {
    orderId: { type: 'string', required: true },
    amount: { type: 'number', required: true, exclusiveMinimum: 0, maximum: order.total },
  },
  handler: (ctx, { orderId, amount }) => {
    say(`The handler runs: it pays ${amount} EUR for order ${orderId}, approved by ${ctx.approvedBy}.`);
    return { paid: amount };
  },
});

const payouts = svc.agents.define({
  tag: 'payouts',
  name: 'Payouts',
  systemPrompt: 'You pay money back to customers whose orders went wrong.',
  model: {
    provider: 'scripted',
    model: 'demo',
    settings: {
      turns: [
        { text: 'I look the order up.', calls: [{ tool: 'look_up_order', parameters: { orderId: order.id } }] },
        {
          text: 'It never arrived. I pay it back.',
          calls: [{ tool: 'refund', parameters: { orderId: order.id, amount: order.total } }],
        },
        { text: 'That is what I could do for this customer.' },
      ],
    },
  },
  tools: [lookUpOrder, refund],
  humanInLoop: { enabled: true, approvalTimeout: 600_000 },
});

/** What a human says to a request: in the terminal, or yes where there is none to ask. */
async function answer({ parameters }: ApprovalRequest) {
  if (!isAsked) {
    process.stdout.write(`There is ${process.stdin.isTTY ? 'a --yes' : 'no terminal to ask'}: approved.\n`);
    return { signal: 'approve', change: {} } as const;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    for (;;) {
      const said = (
        await terminal.question(`Pay ${String(parameters.amount)} EUR? [y]es, [n]o, or another amount: `)
      ).trim();
      if (/^(y|yes)$/i.test(said)) return { signal: 'approve', change: {} } as const;
      if (/^(n|no)$/i.test(said))
        return { signal: 'reject', change: { reason: 'Not without a return slip.' } } as const;
      if (/^\d+(\.\d+)?$/.test(said)) {
        return { signal: 'approve', change: { modifiedParams: { amount: Number(said) } } } as const;
      }
    }
  } finally {
    terminal.close();
  }
}

async function decide(request: ApprovalRequest): Promise<void> {
  const { executionId, requestId } = request;
  for (;;) {
    const { signal, change } = await answer(request);
    try {
      await svc.agents.signal(
        { executionId, signal, payload: { requestId, ...change } },
        { actor: isAsked ? 'you' : 'this example' },
      );
      return;
    } catch (error) {
      // A change that the tool does not take leaves the request waiting.
      process.stdout.write(`${error instanceof Error ? error.message : String(error)}\n`);
      if (!isAsked) throw error;
    }
  }
}

const prompt = `Order ${order.id} of ${order.customer} never arrived.`;
say(`An agent is asked: ${prompt}\n`);
const run = payouts.run({ prompt });
for await (const event of run) {
  if (event.type === 'text') process.stdout.write(`agent: ${event.text}\n`);
  if (event.type === 'tool_call')
    process.stdout.write(`agent calls ${event.tool} ${JSON.stringify(event.parameters)}\n`);
  if (event.type === 'approval_requested') {
    say('The request is stored; the agent waits, here or in whichever process takes it over:\n');
    process.stdout.write(`${JSON.stringify(event.request, null, 2)}\n\n`);
    await decide(event.request);
  }
  if (event.type === 'tool_result') process.stdout.write(`agent is told ${JSON.stringify(event.result)}\n`);
}

const outcome = await run.result;
const { records } = await svc.approvals.list({ executionId: run.executionId, limit: 10 });
say(`The run is ${outcome.status}. What the store kept of the request:\n`);
for (const { events } of records) {
  for (const { at, type, by } of events) process.stdout.write(`${at} ${type}${by === undefined ? '' : ` by ${by}`}\n`);
}
say(`All of it is in ${relative(process.cwd(), folder)}.`);
await svc.close();

import { rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { type ApprovalRequest, defineTool, displayJson, displayText, Svc } from '@svc/sdk';

/**
 * An agent that calls a refund tool and waits at its gate until a human decides. The model is scripted, so that the
 * example runs without an API key. For a real one, set `model: { provider: 'openai', model: 'gpt-5' }`.
 */

const here = dirname(fileURLToPath(import.meta.url));
const folder = join(here, '.svc');
const isInteractive = process.stdin.isTTY === true && !process.argv.includes('--yes');

function print(text: string): void {
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
  description: 'Refunds money to a customer. Cannot be undone.',
  requiresConfirmation: true,
  parameters: {
    orderId: { type: 'string', required: true },
    amount: { type: 'number', required: true, exclusiveMinimum: 0, maximum: order.total },
  },
  handler: (ctx, { orderId, amount }) => {
    print(`The handler runs: it pays ${amount} EUR for order ${orderId}, approved by ${ctx.approvedBy}.`);
    return { paid: amount };
  },
});

const payouts = svc.agents.define({
  tag: 'payouts',
  name: 'Payouts',
  systemPrompt: 'You refund customers whose orders went wrong.',
  model: {
    provider: 'scripted',
    model: 'demo',
    settings: {
      turns: [
        { text: 'I will look up the order.', calls: [{ tool: 'look_up_order', parameters: { orderId: order.id } }] },
        {
          text: 'It never arrived. I will refund it.',
          calls: [{ tool: 'refund', parameters: { orderId: order.id, amount: order.total } }],
        },
        { text: 'That is all I can do for this customer.' },
      ],
    },
  },
  tools: [lookUpOrder, refund],
  humanInLoop: { enabled: true, approvalTimeout: 600_000 },
});

/** Asks for a decision in the terminal. Approves with --yes, or without a terminal. */
async function askHuman({ agentTag, tool, parameters }: ApprovalRequest) {
  if (!isInteractive) {
    process.stdout.write(`Approved automatically: ${process.stdin.isTTY ? '--yes is set' : 'there is no terminal'}.\n`);
    return { signal: 'approve', change: {} } as const;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    for (;;) {
      const answer = (
        await terminal.question(
          `Let ${agentTag} call ${tool} in shop, dev, with ${displayText(String(parameters.amount))} EUR? [y]es, [n]o, or another amount: `,
        )
      ).trim();
      if (/^(y|yes)$/i.test(answer)) return { signal: 'approve', change: {} } as const;
      if (/^(n|no)$/i.test(answer))
        return { signal: 'reject', change: { reason: 'Not without a return slip.' } } as const;
      if (/^\d+(\.\d+)?$/.test(answer)) {
        return { signal: 'approve', change: { modifiedParams: { amount: Number(answer) } } } as const;
      }
    }
  } finally {
    terminal.close();
  }
}

async function decide(request: ApprovalRequest): Promise<void> {
  const { executionId, requestId } = request;
  for (;;) {
    const { signal, change } = await askHuman(request);
    try {
      await svc.agents.signal(
        { executionId, signal, payload: { requestId, ...change } },
        { actor: isInteractive ? 'you' : 'this example' },
      );
      return;
    } catch (error) {
      // After an invalid change the request is still waiting.
      process.stdout.write(`${error instanceof Error ? error.message : String(error)}\n`);
      if (!isInteractive) throw error;
    }
  }
}

const prompt = `Order ${order.id} of ${order.customer} never arrived.`;
print(`Prompt of the agent: ${prompt}\n`);
const run = payouts.run({ prompt });
for await (const event of run) {
  if (event.type === 'text') process.stdout.write(`agent: ${event.text}\n`);
  if (event.type === 'tool_call')
    process.stdout.write(`agent calls ${event.tool} ${displayText(JSON.stringify(event.parameters))}\n`);
  if (event.type === 'approval_requested') {
    print('The request is stored. The agent waits, in this process or in one that takes over:\n');
    process.stdout.write(`${displayJson(event.request)}\n\n`); // What a model wrote, safe to show.
    await decide(event.request);
  }
  if (event.type === 'tool_result') process.stdout.write(`agent receives ${JSON.stringify(event.result)}\n`);
}

const outcome = await run.result;
const { records } = await svc.approvals.list({ executionId: run.executionId, limit: 10 });
print(`The run is ${outcome.status}. The events of the request in the store:\n`);
for (const { events } of records) {
  for (const { at, type, by } of events) process.stdout.write(`${at} ${type}${by === undefined ? '' : ` by ${by}`}\n`);
}
print(`The data is in ${relative(process.cwd(), folder)}.`);
await svc.close();

import { serve } from '@hono/node-server';
import { defineTool, type Json, parseDecision, Svc } from '@svc/sdk';
import { Hono } from 'hono';

/**
 * An application's own endpoint for decisions. It authenticates the user, receives the decision from the user interface
 * and forwards it as a signal. It needs neither a token nor a callback.
 */

const svc = new Svc({ config: { product: 'shop', env: 'dev' } });
const gate = svc.gate({
  agentTag: 'payouts',
  tools: [
    defineTool({
      tag: 'refund',
      description: 'Refunds money to a customer. Cannot be undone.',
      requiresConfirmation: true,
      parameters: { orderId: { type: 'string', required: true }, amount: { type: 'number', required: true } },
      handler: (ctx, { orderId, amount }) => `paid ${amount} EUR for order ${orderId}, approved by ${ctx.approvedBy}`,
    }),
  ],
  humanInLoop: { enabled: true },
});

const app = new Hono();

interface Decision {
  readonly approved: boolean;
  readonly reason?: string;
  readonly modifiedParams?: { readonly [name: string]: Json };
}

app.get('/decisions', async (context) => context.json((await svc.approvals.list()).records));

app.post('/decisions/:requestId', async (context) => {
  const requestId = context.req.param('requestId');
  const body = new Uint8Array(await context.req.arrayBuffer()); // the bytes, which `json()` would change before anybody can check them
  const { approved, reason, modifiedParams } = parseDecision(body) as Decision;
  const user = context.req.header('x-user') ?? ''; // take it from your session, never from a header
  const signal = approved === true ? 'approve' : 'reject';
  const payload = { requestId, ...(reason && { reason }), ...(modifiedParams && { modifiedParams }) };
  return context.json(await svc.agents.signal({ signal, payload }, { actor: user }));
});

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, async ({ port }) => {
  const base = `http://127.0.0.1:${port}`;
  const run = gate.run(
    { tool: 'refund', parameters: { orderId: '1234', amount: 20 } },
    { onRequested: ({ requestId }) => decide(`${base}/decisions/${requestId}`) },
  );
  const { status, result, changed } = await run;
  console.log(`${status}: ${result} (changed by a human: ${changed?.join(', ') ?? 'nothing'})`);
  server.close();
  await svc.close();
});

/** The request of the user interface: Ada approves a refund of 15 instead of 20. */
async function decide(url: string): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-user': 'ada@shop.example' },
    body: JSON.stringify({ approved: true, modifiedParams: { amount: 15 } }),
  });
  console.log('decided:', response.status, await response.json());
}

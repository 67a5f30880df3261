import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { approvalHandler, Svc } from '../config/sdk/index.ts';
import { freshDatabase } from '../test/kit/postgresql.ts';

/**
 * Sends requests through webhook and callback for minutes while a share of everything fails: receivers that reject or
 * close the connection, callbacks whose request or response is lost, handlers that throw. At the end every request must
 * have the decision of its reviewer, and every approved tool must have run once.
 */

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '50' },
    failing: { type: 'string', default: '0.05' },
  },
});
const DURATION_MS = Number(flags.minutes) * 60_000;
const EVERY_MS = 1000 / Number(flags.rate);
const FAILING = Number(flags.failing);
const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const KEY = 'a key for the soak, of thirty-two bytes or more';

const unlucky = (): boolean => Math.random() < FAILING;
const faults = { webhookRefused: 0, webhookCut: 0, callbackCutBefore: 0, callbackCutAfter: 0, handler: 0 };

type Listener = { readonly url: string; close(): void };

async function listen(
  answer: (body: string, path: string, response: ServerResponse) => void | Promise<void>,
): Promise<Listener> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    await answer(Buffer.concat(parts).toString(), request.url ?? '/', response);
  }).listen(0, '127.0.0.1');
  await new Promise((ready) => server.once('listening', ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The reviewers' decision for each order. */
const decisions = new Map<string, boolean>();
/** How often each order's tool ran. */
const runs = new Map<string, number>();
const durations: number[] = [];

const { url: database, drop } = await freshDatabase();
let handle: (request: Request) => Promise<Response>;
const callback = await listen(async (body, path, response) => {
  if (unlucky()) {
    faults.callbackCutBefore += 1;
    response.destroy();
    return;
  }
  const answer = await handle(
    new Request(`${callback.url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }),
  );
  if (unlucky()) {
    faults.callbackCutAfter += 1;
    response.destroy();
    return;
  }
  response.writeHead(answer.status).end(await answer.text());
});
const reviewers = await listen((body, _path, response) => {
  if (unlucky()) {
    faults.webhookRefused += 1;
    response.writeHead(500).end();
    return;
  }
  if (unlucky()) {
    faults.webhookCut += 1;
    response.destroy();
  } else response.writeHead(204).end();
  void review(JSON.parse(body));
});

/** Decides and retries until the callback is acknowledged. */
async function review(request: {
  readonly callbackUrl: string;
  readonly parameters: { readonly order: string };
}): Promise<void> {
  const { order } = request.parameters;
  const approved = decisions.get(order) ?? Math.random() < 0.8;
  decisions.set(order, approved);
  for (let pause = 50; ; pause = Math.min(pause * 2, 2_000)) {
    try {
      const { status } = await fetch(request.callbackUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ approved }),
      });
      if (status === 200) return;
      throw new Error(String(status));
    } catch {
      await wait(pause);
    }
  }
}

const svc = new Svc({
  config: {
    product: 'soak',
    env: 'dev',
    databases: { main: { dialect: 'postgresql', url: database } },
    approvals: {
      store: { database: 'main' },
      callbackBase: callback.url,
      callbackKey: KEY,
      webhook: { secrets: { [reviewers.url]: [SECRET] } },
    },
  },
});
handle = approvalHandler(svc);
const gate = svc.gate({
  agentTag: 'soak',
  tools: [
    {
      tag: 'pay',
      description: 'Pays.',
      requiresConfirmation: true,
      parameters: { order: { type: 'string', required: true } },
      handler: async (_context, { order }) => {
        runs.set(order, (runs.get(order) ?? 0) + 1);
        if (!unlucky()) return 'paid';
        faults.handler += 1;
        throw new Error('the bank is closed');
      },
    },
  ],
  humanInLoop: { enabled: true, approvalTimeout: 300_000, approvalWebhook: reviewers.url },
});

const finalStatuses = new Map<string, string>();
const open = new Set<Promise<void>>();
const began = performance.now();
let next = began;
let requested = 0;
while (performance.now() - began < DURATION_MS) {
  const order = `order-${requested++}`;
  const since = performance.now();
  const work = gate.run({ tool: 'pay', parameters: { order } }).then(({ status }) => {
    finalStatuses.set(order, status);
    durations.push(performance.now() - since);
  });
  open.add(work);
  void work.finally(() => open.delete(work));
  next += EVERY_MS;
  await wait(Math.max(0, next - performance.now()));
  if (requested % 1000 === 0) console.error(`${requested} requested, ${finalStatuses.size} done, ${open.size} open`);
}
await Promise.all(open);

const wrong: string[] = [];
for (let index = 0; index < requested; index++) {
  const order = `order-${index}`;
  const approved = decisions.get(order);
  const ran = runs.get(order) ?? 0;
  const end = finalStatuses.get(order);
  const fits = approved ? ran === 1 && (end === 'completed' || end === 'failed') : ran === 0 && end === 'rejected';
  if (!fits) wrong.push(`${order}: decided ${approved}, ran ${ran} times, ended ${end}`);
}
durations.sort((a, b) => a - b);
const at = (share: number): string => `${Math.round(durations[Math.floor(share * (durations.length - 1))] ?? 0)} ms`;
console.log(
  `${requested} requests in ${flags.minutes} min, ${flags.rate} a second, ${FAILING * 100}% of everything failing`,
);
console.log(
  `faults: ${Object.entries(faults)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')}`,
);
console.log(`requested to done: p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)}`);
console.log(
  wrong.length === 0 ? 'none lost, none run twice' : `WRONG: ${wrong.length}\n${wrong.slice(0, 20).join('\n')}`,
);
await svc.close();
callback.close();
reviewers.close();
await drop();
process.exitCode = wrong.length === 0 ? 0 : 1;

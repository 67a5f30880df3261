// A worker of an engine: `worker.ts <settings>`. It prints `ready`.
import { appendFileSync, readFileSync } from 'node:fs';
import { openSvc, type WorkerSettings } from './run.ts';

const settings = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as WorkerSettings;
const svc = openSvc(settings.storeUrl);
const { approvalTimeout = 60_000 } = settings;
const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true, approvalTimeout } });
const amount = { type: 'number', ...(settings.difference === 'schema' && { maximum: 1_000 }) } as const;
const tool = gate.guard(
  settings.difference === 'name' ? 'repay' : 'refund',
  { inputSchema: { type: 'object', properties: { amount }, required: ['amount'] }, description: 'Pays money back.' },
  (input: unknown, { executionId }) => {
    const paid = (input as { readonly amount: number }).amount;
    appendFileSync(settings.effects, `${executionId} ${paid}\n`);
    if (settings.difference === 'kill after the effect') process.kill(process.pid, 'SIGKILL');
    return `paid ${paid}`;
  },
);
const { startWorker } = await import(new URL(`./${settings.engine}.mjs`, import.meta.url).href);
const { engineUrl: url, queue, code } = settings;
await startWorker({ url, queue, code, tool });
process.stdout.write('ready\n');

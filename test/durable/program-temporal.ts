import { fileURLToPath } from 'node:url';
import * as activity from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { Svc } from '../../config/sdk/index.ts';
import { approvalActivities, wakeUps } from '../../plugins/frameworks/temporal.ts';

const { workflow } = new Client({ connection: await Connection.connect({ address: '127.0.0.1:35469' }) });
const plugins = [wakeUps((id, runId, signal) => workflow.getHandle(id, runId).signal(signal))];
const databases = { main: { dialect: 'postgresql', url: process.env.DATABASE_URL } } as const;
const approvals = { store: { database: 'main' } };
const svc = new Svc({ config: { product: 'shop', env: 'dev', databases, approvals, plugins } });
const gate = svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true } });
const inputSchema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] } as const;
const refund = gate.guard('refund', { inputSchema }, async (input) => `Paid ${(input as { amount: number }).amount}.`);
const activities = approvalActivities(activity, [refund], {
  onRequested: ({ requestId }) =>
    svc.approvals.signal({ signal: 'approve', payload: { requestId, modifiedParams: { amount: 15 } } }),
});
const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));
const worker = await Worker.create({ connection: await NativeConnection.connect({ address: '127.0.0.1:35469' }), taskQueue: 'payouts', workflowsPath, activities });
const options = { workflowId: 'payout-1', workflowIdConflictPolicy: 'USE_EXISTING', args: [20] } as const;
const start = () => workflow.execute('payout', { taskQueue: 'payouts', ...options });
const { status, result } = await worker.runUntil(start);
console.log(status, result);
await svc.close();

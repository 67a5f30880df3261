import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { PostgresStore } from '@mastra/pg';
import { Svc } from '../../config/sdk/index.ts';
import { withApproval } from '../../plugins/frameworks/mastra.ts';
import { z } from 'zod';
import { model } from './mastra.mjs';

const svc = new Svc();
const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true, approvalTimeout: 86_400_000 } });
const inputSchema = z.object({ orderId: z.string(), amount: z.number() });
const execute = async ({ orderId, amount }: z.infer<typeof inputSchema>) => `Paid ${amount} for ${orderId}.`;
const refund = createTool({ id: 'refund', description: 'Pays money back.', inputSchema, execute });
let call = '';
const onRequested = ({ requestId, toolCallId = '' }: { requestId: string; toolCallId?: string }) => {
  call = toolCallId;
  console.log(`waits: ${requestId}`);
};
const tools = withApproval(gate, { refund }, { executionId: 'chat-1', wait: 'suspend', onRequested });
const support = new Agent({ id: 'support', name: 'support', instructions: 'Be kind.', model, tools });
const storage = new PostgresStore({ id: 'runs', connectionString: process.env.DATABASE_URL ?? '' });
const agent = new Mastra({ agents: { support }, storage, logger: false }).getAgent('support');
const stored = existsSync('chat-1.json') ? JSON.parse(readFileSync('chat-1.json', 'utf8')) : undefined;
const stream = stored ? await agent.resumeStream({}, stored) : await agent.stream('Refund order 1234.');
console.log((await stream.text) || 'suspended');
if (!stored) writeFileSync('chat-1.json', JSON.stringify({ runId: stream.runId, toolCallId: call }));
await Promise.all([svc.close(), storage.close()]);

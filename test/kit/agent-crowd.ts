// A process with many executions: `node agent-crowd.ts <url> <lease> <how many to start>`. Recovers those of dead processes.
import pg from 'pg';
import { RecoveryWorker } from '../../core/agent/recovery-worker.ts';
import { reconnectingBackend } from '../../core/approval/backend.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { connectAdapter } from './adapter.ts';
import { AgentHost, agentOf } from './agent-host.ts';

const [url = '', lease = '', many = ''] = process.argv.slice(2);

const world = new pg.Pool({ connectionString: url, max: 1 });
const home = reconnectingBackend(async () => (await connectAdapter(postgresql, url, {})).connection);
const host = await AgentHost.open(home, Number(lease));
const happened = (tag: string) => ({
  tag,
  parameters: { step: { type: 'integer', required: true } },
  handler: async ({ executionId }: { executionId: string }, { step }: { step: number }) => {
    await world.query('INSERT INTO effects VALUES ($1, $2)', [executionId, `${tag} ${step}`]);
    return 'done';
  },
});
const calls = (step: number) => [
  { tool: 'pay', parameters: { step } },
  { tool: 'look', parameters: { step } },
];
const definition = agentOf([{ calls: calls(1) }, { calls: calls(2) }, { text: 'Done.' }], {
  tools: [{ ...happened('pay'), requiresConfirmation: true }, happened('look')],
  humanInLoop: { enabled: true },
});
const agent = host.define(definition);
new RecoveryWorker(host.executions, {}, 50);
for (let started = 0; started < Number(many); started++) host.run(agent);
process.stdout.write('ready\n');

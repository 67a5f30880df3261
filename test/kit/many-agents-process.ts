// Starts executions and recovers those of dead processes: `node many-agents-process.ts <url> <lease> <count>`.
import pg from 'pg';
import { RecoveryWorker } from '../../core/agent/recovery-worker.ts';
import { reconnectingBackend } from '../../core/approval/backend.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { AgentHost, agentDefinition } from './agent-host.ts';
import { connectTarget } from './target.ts';

const [url = '', lease = '', count = ''] = process.argv.slice(2);

const effects = new pg.Pool({ connectionString: url, max: 1 });
const backend = reconnectingBackend(async () => (await connectTarget(postgresql, url, {})).connection);
const host = await AgentHost.open(backend, Number(lease));
const effectTool = (tag: string) => ({
  tag,
  parameters: { step: { type: 'integer', required: true } },
  handler: async ({ executionId }: { executionId: string }, { step }: { step: number }) => {
    await effects.query('INSERT INTO effects VALUES ($1, $2)', [executionId, `${tag} ${step}`]);
    return 'done';
  },
});
const calls = (step: number) => [
  { tool: 'pay', parameters: { step } },
  { tool: 'look', parameters: { step } },
];
const definition = agentDefinition([{ calls: calls(1) }, { calls: calls(2) }, { text: 'Done.' }], {
  tools: [{ ...effectTool('pay'), requiresConfirmation: true }, effectTool('look')],
  humanInLoop: { enabled: true },
});
const agent = host.define(definition);
new RecoveryWorker(host.executions, {}, 50);
for (let started = 0; started < Number(count); started++) host.run(agent);
process.stdout.write('ready\n');

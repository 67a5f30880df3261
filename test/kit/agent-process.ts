// A process that runs an agent and kills itself at a given point: `node agent-process.ts <url> <lease> [call:<n> | in:<effect> | after:<effect>]`.
import pg from 'pg';
import { reconnectingBackend, type StorageBackend } from '../../core/approval/backend.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { AgentHost } from './agent-host.ts';
import { crashAgent } from './crash-agent.ts';
import { connectTarget } from './target.ts';

const [url = '', lease = '', killPoint = ''] = process.argv.slice(2);
let calls = 0;

/** Kills the process without any cleanup. */
function killAt(point: string): void {
  if (point === killPoint) process.kill(process.pid, 'SIGKILL');
}

function killable<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name, _receiver) {
      const member = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === 'records') return killable(member.apply(object, args));
        calls += 1;
        killAt(`call:${calls}`);
        return member.apply(object, args);
      };
    },
  });
}

const effects = new pg.Client({ connectionString: url });
await effects.connect();
const backend: StorageBackend = reconnectingBackend(async () => (await connectTarget(postgresql, url, {})).connection);
const host = await AgentHost.open(killable(backend), Number(lease));
const run = host.run(
  host.define(
    crashAgent(async (name, { executionId }) => {
      killAt(`in:${name}`);
      await effects.query('INSERT INTO effects VALUES ($1, $2)', [executionId, name]);
      killAt(`after:${name}`);
    }),
  ),
);
process.stdout.write(`${run.executionId}\n`);
const { status } = await run.result;
process.stdout.write(`${status} calls ${calls}\n`);
await host.close();
await backend.close();
await effects.end();

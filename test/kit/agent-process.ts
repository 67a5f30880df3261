// An agent in its own process that kills itself at a given point: `node agent-process.ts <url> <lease> [call:<n> | in:<effect> | after:<effect>]`.
import pg from 'pg';
import { reconnectingBackend, type StorageBackend } from '../../core/approval/backend.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { connectAdapter } from './adapter.ts';
import { AgentHost } from './agent-host.ts';
import { crashAgent } from './crash-agent.ts';

const [url = '', lease = '', kill = ''] = process.argv.slice(2);
let calls = 0;

/** Kills the process without any cleanup. */
function dieAt(point: string): void {
  if (point === kill) process.kill(process.pid, 'SIGKILL');
}

function mortal<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name, _receiver) {
      const member = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === 'records') return mortal(member.apply(object, args));
        calls += 1;
        dieAt(`call:${calls}`);
        return member.apply(object, args);
      };
    },
  });
}

const world = new pg.Client({ connectionString: url });
await world.connect();
const home: StorageBackend = reconnectingBackend(async () => (await connectAdapter(postgresql, url, {})).connection);
const host = await AgentHost.open(mortal(home), Number(lease));
const run = host.run(
  host.define(
    crashAgent(async (name, { executionId }) => {
      dieAt(`in:${name}`);
      await world.query('INSERT INTO effects VALUES ($1, $2)', [executionId, name]);
      dieAt(`after:${name}`);
    }),
  ),
);
process.stdout.write(`${run.executionId}\n`);
const { status } = await run.result;
process.stdout.write(`${status} calls ${calls}\n`);
await host.close();
await home.close();
await world.end();

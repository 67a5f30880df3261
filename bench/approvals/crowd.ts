import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Svc } from '../../config/sdk/index.ts';
import { dropDatabases, freshDatabase } from '../database.ts';
import { postgresql } from '../engine.ts';
import { machineFacts } from '../machine.ts';
import { saveResult } from '../report.ts';
import { table } from '../table.ts';
import { type Spread, spread } from './stage.ts';

/*
 * Many people with the inbox open while agents make requests: `npm run bench -- crowd [--people=1000] [--seconds=60] [--quick]`.
 * `svc approvals serve`, the agents and the people are three processes, on PostgreSQL. Each person has an event stream, and
 * loads the list as the script of the page does. Only a complete run writes results/crowd.md.
 */

const { values: flags } = parseArgs({
  options: {
    people: { type: 'string' },
    seconds: { type: 'string' },
    rate: { type: 'string' },
    quick: { type: 'boolean' },
  },
});
const people = Number(flags.people ?? (flags.quick ? 50 : 1_000));
const seconds = Number(flags.seconds ?? (flags.quick ? 5 : 60));
const rate = Number(flags.rate ?? 100);
const MAX_AGE_MS = 2_000;
const MAX_SLOWER = 1.2;
/** As in the script of the page. */
const FLOOR_MS = 1_300;
const delay = (): number => 150 + Math.random() * 500;

interface AgentTimes extends Spread {
  readonly calls: number;
  readonly failures: number;
}

/** What a person sees. */
class Person {
  readonly ages: number[] = [];
  loads = 0;
  failures = 0;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #stream: IncomingMessage | undefined;
  #timer: NodeJS.Timeout | undefined;
  #last = -Infinity;
  #shownAt: number | undefined;
  isMeasured = false;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}`, 'x-refresh': '1' };
  }

  async open(): Promise<void> {
    await this.#load();
    const [stream] = (await once(get(`${this.#url}/events`, { headers: this.#headers }), 'response')) as [
      IncomingMessage,
    ];
    if (stream.statusCode !== 200) throw new Error(`events: ${stream.statusCode}`);
    this.#stream = stream;
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('event: changed')) this.#later();
    });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#stream?.destroy();
    this.#agent.destroy();
  }

  #later(): void {
    this.#timer ??= setTimeout(
      () =>
        this.#load().catch(() => {
          this.failures += 1;
        }),
      Math.max(delay(), this.#last + FLOOR_MS - performance.now()),
    );
  }

  async #load(): Promise<void> {
    this.#timer = undefined;
    this.#last = performance.now();
    const [response] = (await once(get(this.#url, { headers: this.#headers, agent: this.#agent }), 'response')) as [
      IncomingMessage,
    ];
    if (response.statusCode !== 200) throw new Error(`list: ${response.statusCode}`);
    let text = '';
    for await (const part of response.setEncoding('utf8')) text += part;
    // The newest request on the page: the page is no older than that.
    const shown = Math.max(...Array.from(text.matchAll(/at (\d{13})\./g), ([, at]) => Number(at)));
    if (this.isMeasured) {
      this.loads += 1;
      if (this.#shownAt !== undefined) this.ages.push(Date.now() - this.#shownAt);
    }
    this.#shownAt = Number.isFinite(shown) ? shown : undefined;
  }
}

/** The command line, as it is installed, with an inbox on this database. */
async function serve(url: string, folder: string): Promise<{ readonly inbox: string; readonly child: ChildProcess }> {
  const main = fileURLToPath(new URL('../../dist/cli/main.cjs', import.meta.url));
  const child = spawn(process.execPath, [main, 'approvals', 'serve', '--port', '0', '--json'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line) as { event?: string; url?: string };
    if (event.event === 'listening') return { inbox: `${event.url}/inbox`, child };
  }
  throw new Error(`svc approvals serve ended in ${folder} for ${url}`);
}

async function timesOf(agents: ChildProcess): Promise<AgentTimes> {
  const answer = once(agents, 'message');
  agents.send('times');
  return (await answer)[0] as AgentTimes;
}

async function measure(url: string, folder: string): Promise<readonly string[][]> {
  const config = {
    product: 'bench',
    env: 'dev',
    databases: { main: { dialect: 'postgresql', url } },
    approvals: {
      store: { database: 'main' },
      callbackBase: 'https://bench.example',
      callbackKey: randomBytes(32).toString('hex'),
      roles: { deciders: ['group:deciders'] },
      server: { role: 'deciders' },
    },
  } as const;
  writeFileSync(join(folder, 'svc.config.mjs'), `export default ${JSON.stringify(config)};\n`);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  const svc = new Svc({ config });
  const tokens = await Promise.all(
    Array.from({ length: people }, (_, index) =>
      svc.people.createToken({ id: `person-${index}`, groups: ['deciders'] }, { validForMs: 3_600_000 }),
    ),
  );
  await svc.close();
  const agents = fork(fileURLToPath(new URL('crowd-agents.ts', import.meta.url)), [url, String(rate)], {
    execArgv: ['--import', 'tsx'],
  });
  await once(agents, 'message');
  const { inbox, child } = await serve(url, folder);
  try {
    await wait(5_000);
    await timesOf(agents);
    await wait(seconds * 1_000);
    const alone = await timesOf(agents);
    const crowd = tokens.map(({ token }) => new Person(inbox, token));
    for (let index = 0; index < crowd.length; index += 50) {
      await Promise.all(crowd.slice(index, index + 50).map((person) => person.open()));
    }
    await wait(5_000);
    await timesOf(agents);
    for (const person of crowd) person.isMeasured = true;
    await wait(seconds * 1_000);
    const watched = await timesOf(agents);
    const ages = spread(crowd.flatMap((person) => person.ages));
    const oldest = crowd.flatMap((person) => person.ages).reduce((max, age) => Math.max(max, age), 0);
    const loads = crowd.reduce((sum, person) => sum + person.loads, 0);
    const failures = crowd.reduce((sum, person) => sum + person.failures, 0);
    for (const person of crowd) person.close();
    const verdict = (isReached: boolean) => (isReached ? 'reached' : 'MISSED');
    const ms = ({ p50, p95, p99 }: Spread) => `p50 ${p50.toFixed(1)}, p95 ${p95.toFixed(1)}, p99 ${p99.toFixed(1)} ms`;
    const slower = watched.p50 / alone.p50;
    return [
      [
        'how old a page is when it is loaded again',
        `p50 ${ages.p50.toFixed(0)}, p99 ${ages.p99.toFixed(0)}, oldest ${oldest} ms`,
        `${MAX_AGE_MS} ms`,
        verdict(oldest <= MAX_AGE_MS),
      ],
      ['pages loaded', `${(loads / seconds).toFixed(0)}/s, ${failures} failed`, '0 failed', verdict(failures === 0)],
      ['a call of an agent without the pages', `${ms(alone)}, ${(alone.calls / seconds).toFixed(0)}/s`, '', ''],
      [
        'a call of an agent with them',
        `${ms(watched)}, ${(watched.calls / seconds).toFixed(0)}/s: ${slower.toFixed(2)} times`,
        `${MAX_SLOWER} times`,
        verdict(slower <= MAX_SLOWER && watched.failures === 0),
      ],
    ];
  } finally {
    child.kill('SIGTERM');
    agents.disconnect();
    await once(child, 'exit');
  }
}

const folder = mkdtempSync(join(tmpdir(), 'svc-crowd-'));
try {
  const rows = await measure(await freshDatabase(postgresql, `svc_bench_crowd_${process.pid}`), folder);
  const text = [
    '# Measured with `npm run bench -- crowd`',
    `${people.toLocaleString('en')} people with the inbox open for ${seconds} s while agents make ${rate} requests a second, all on this machine: the server, the agents, the people and PostgreSQL.`,
    (await machineFacts([])).map((fact) => `- ${fact}`).join('\n'),
    table(['', 'measured', 'target', ''], rows),
  ].join('\n\n');
  console.log(text);
  if (Object.keys(flags).length === 0) await saveResult('crowd.md', text);
} finally {
  rmSync(folder, { recursive: true, force: true });
  await dropDatabases();
}

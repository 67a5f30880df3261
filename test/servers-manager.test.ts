import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';
import { built } from './servers/cache.ts';
import { ENGINES, variable } from './servers/engine.ts';
import { postgresqlMissing } from './servers/engines/postgresql.ts';
import { isRoot } from './servers/machine.ts';
import { needs } from './servers/needs.ts';
import { identify, isAlive } from './servers/process.ts';
import type { Started } from './servers/state.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAIN = 'test/servers/main.ts';
const NOBODY = 65_534;

/** Nothing of this machine's servers, and nothing of another run's: a cache of its own, and no server that runs. */
function alone(cache: string, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, SVC_TEST_CACHE: cache, SVC_TEST_USUAL: 'off' };
  for (const name of [...ENGINES.map(variable), 'SVC_TEST_REQUIRE']) delete env[name];
  return { ...env, ...more };
}

interface Ended {
  readonly status: number | null;
  readonly output: string;
}

async function run(args: readonly string[], env: NodeJS.ProcessEnv, uid?: number): Promise<Ended> {
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], {
    ...{ cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
  const [status] = await once(child, 'close');
  return { status, output };
}

const state = (cache: string): readonly Started[] =>
  JSON.parse(readFileSync(join(cache, 'state.json'), 'utf8')).servers;

/** A cache of its own whose servers end with the test. */
async function withCache(body: (cache: string, env: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
  const cache = folder();
  try {
    await body(cache, alone(cache));
  } finally {
    await run([MAIN, 'down'], alone(cache));
  }
}

const LONG = { timeoutMs: 180_000 };
const missing = postgresqlMissing();
const withServer = (name: string, body: (cache: string, env: NodeJS.ProcessEnv) => Promise<void>): void => {
  if (missing !== undefined) test.skip(name, missing);
  else test(name, () => withCache(body), LONG);
};

test('a run brings up what its test files name, and nothing else', () => {
  assert.deepEqual(needs('test/servers.test.ts'), ENGINES);
  assert.deepEqual(needs('test/servers/fixtures/asks-for-mysql.ts'), ['mysql']);
  assert.deepEqual(needs('test/floors.test.ts'), []);
  assert.ok(needs('test/engine.test.ts').includes('postgresql'), 'what a file of the kit names counts too');
});

withServer('a server that was killed is started again on its port, and down ends it', async (cache, env) => {
  const first = await run([MAIN, 'up', 'postgresql'], env);
  assert.equal(first.status, 0, first.output);
  const [server] = state(cache);
  assert.ok(server?.processes[0] && first.output.includes('started from an installed PostgreSQL'));
  process.kill(server.processes[0].pid, 'SIGKILL');
  const { processes, url } = server;
  await waitUntil(() => !processes.some(isAlive), 'it did not die');

  const second = await run([MAIN, 'up', 'postgresql'], env);
  assert.match(second.output, /does not answer any more, and is started again/);
  const [again, ...others] = state(cache);
  assert.deepEqual(others, []);
  assert.equal(again?.url, url);
  assert.ok(again && again.processes[0]?.pid !== processes[0]?.pid && again.processes.every(isAlive));
  assert.match(
    (await run([MAIN, 'status', 'postgresql'], env)).output,
    /started from an installed PostgreSQL, process/,
  );

  const end = await run([MAIN, 'down'], env);
  assert.match(end.output, /PostgreSQL: stopped/);
  assert.ok(!again.processes.some(isAlive) && !existsSync(again.folder) && state(cache).length === 0);
});

withServer('of two that bring it up at once one starts it and the other finds it', async (cache, env) => {
  const both = await Promise.all([1, 2].map(() => run([MAIN, 'up', 'postgresql'], env)));
  assert.deepEqual(
    both.map(({ status }) => status),
    [0, 0],
    both.map(({ output }) => output).join('\n'),
  );
  const said = both.map(({ output }) => output).sort((a) => (a.includes('started before') ? 1 : -1));
  assert.match(said[0] ?? '', /\(started from an installed PostgreSQL\)/);
  assert.match(said[1] ?? '', /\(started before, from an installed PostgreSQL\)/);
  assert.equal(state(cache).length, 1);
});

withServer('a server that a run uses outlives down, and ends with the run', async (cache, env) => {
  await run([MAIN, 'up', 'postgresql'], env);
  const user = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  try {
    const identity = identify(user.pid ?? 0);
    assert.ok(identity);
    const servers = state(cache).map((server) => ({ ...server, users: [identity] }));
    writeFileSync(join(cache, 'state.json'), JSON.stringify({ version: 1, servers }));
    assert.match((await run([MAIN, 'down'], env)).output, new RegExp(`goes on until its runs end .*${user.pid}`));
    assert.ok(state(cache)[0]?.processes.every(isAlive));
  } finally {
    await killed(user);
  }
  assert.match((await run([MAIN, 'down'], env)).output, /PostgreSQL: stopped/);
});

withServer('a run whose server is killed in the middle fails by its name, and leaves nothing', async (cache, env) => {
  const { status, output } = await run(['test/run.ts', 'test/servers/fixtures/kills-postgresql.ts'], env);
  assert.equal(status, 1, output);
  assert.match(output, /^ok {3}test\/servers\/fixtures\/kills-postgresql.ts: 1 passed, 0 failed/m);
  assert.match(output, /^FAIL PostgreSQL: its server died .* and was started again, while test\/servers\/fixtures/m);
  assert.match(output, /^1 passed, 1 failed, 0 skipped$/m);
  assert.deepEqual(state(cache), []);
});

test(
  'down ends no process that only got the number of one of ours',
  async () => {
    await withCache(async (cache, env) => {
      const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
      try {
        const pid = bystander.pid ?? 0;
        const processes = [{ pid, started: 'another boot 1', signal: 'SIGKILL' }];
        const server = { engine: 'mysql', url: 'mysql://root@127.0.0.1:1/', from: 'a test', processes };
        const servers = [{ ...server, folder: join(cache, 'gone'), kept: true, users: [] }];
        writeFileSync(join(cache, 'state.json'), JSON.stringify({ version: 1, servers }));
        assert.match((await run([MAIN, 'down'], env)).output, /MySQL: stopped/);
        assert.ok(identify(pid), 'the bystander was killed');
        assert.deepEqual(state(cache), []);
      } finally {
        await killed(bystander);
      }
    });
  },
  LONG,
);

test(
  'what a killed run left half built is thrown away and built anew',
  async () => {
    const cache = folder();
    const url = JSON.stringify(new URL('servers/cache.ts', import.meta.url).href);
    const script = `
    import { writeFileSync } from 'node:fs';
    const { built } = await import(${url});
    await built('thing', async (folder) => {
      writeFileSync(folder + '/half', '');
      console.log('half');
      await new Promise(() => setInterval(() => {}, 1000));
    });`;
    const args = ['--import', 'tsx', '--input-type=module', '-e', script];
    const builder = spawn(process.execPath, args, {
      cwd: ROOT,
      env: alone(cache),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const before = process.env.SVC_TEST_CACHE;
    process.env.SVC_TEST_CACHE = cache;
    const build = () => built('thing', async (made) => writeFileSync(join(made, 'whole'), ''));
    try {
      await once(builder.stdout, 'data');
      const [half = ''] = readdirSync(cache);
      assert.match(half, /^thing\.making-\d+/);
      assert.deepEqual(readdirSync(join(cache, half)), ['half']);

      await build();
      assert.deepEqual(readdirSync(cache).sort(), ['thing', half], 'what a living run builds is not thrown away');
      await killed(builder);
      rmSync(join(cache, 'thing'), { recursive: true });
      await Promise.all([build(), build()]);
      assert.deepEqual(readdirSync(cache), ['thing']);
      assert.deepEqual(readdirSync(join(cache, 'thing')), ['whole']);
    } finally {
      if (before === undefined) delete process.env.SVC_TEST_CACHE;
      else process.env.SVC_TEST_CACHE = before;
      await killed(builder);
    }
  },
  LONG,
);

test(
  'where there is nothing but Docker a container is started, and removed on down',
  async () => {
    const fake = folder({
      docker: `#!/bin/sh\nexec '${process.execPath}' '${ROOT}test/servers/fixtures/docker.mjs' "$@"\n`,
    });
    chmodSync(join(fake, 'docker'), 0o755);
    const cache = folder();
    const env = alone(cache, { PATH: fake, FAKE_DOCKER: fake });
    const up = await run([MAIN, 'up', 'cassandra'], env);
    assert.match(up.output, /^Cassandra CQL 3.4.7: .* \(started from Docker Compose\)$/m);
    const [server] = state(cache);
    assert.ok(server?.project);
    assert.match((await run([MAIN, 'up', 'cassandra'], env)).output, /started before, from Docker Compose/);

    assert.match((await run([MAIN, 'down'], env)).output, /Cassandra: stopped/);
    assert.ok(!existsSync(join(fake, 'container')));
    const calls = readFileSync(join(fake, 'calls'), 'utf8').replaceAll(ROOT, '');
    const compose = `compose --file test/servers/compose.yaml --project-name ${server.project}`;
    assert.ok(calls.includes(`${compose} up --detach --quiet-pull cassandra\n`), calls);
    assert.ok(calls.endsWith(`${compose} down --volumes --timeout 1\n`), calls);
  },
  LONG,
);

test(
  'what cannot be had is a skip with its reason, and a failure by its name where all is required',
  async () => {
    const cache = folder();
    if (isRoot()) chownSync(cache, NOBODY, NOBODY);
    const uid = isRoot() ? NOBODY : undefined;
    const file = 'test/servers/fixtures/asks-for-mysql.ts';
    const env = alone(cache, { HOME: cache, TMPDIR: cache });

    const without = await run(['test/run.ts', file], env, uid);
    assert.equal(without.status, 0, without.output);
    assert.match(without.output, /skipped: needs MySQL: MySQL: no server answers/);
    assert.match(without.output, /^1 passed, 0 failed, 1 skipped$/m);

    const required = await run(['test/run.ts', file], { ...env, SVC_TEST_REQUIRE: 'all' }, uid);
    assert.equal(required.status, 1);
    assert.match(required.output, /^FAIL MySQL: .*need root/m);

    const promised = await run(['test/run.ts', file], { ...env, SVC_TEST_MYSQL_URL: 'mysql://root@127.0.0.1:1/' }, uid);
    assert.equal(promised.status, 1);
    assert.match(promised.output, /MySQL: nothing usable answers where SVC_TEST_MYSQL_URL says: connect ECONNREFUSED/);
  },
  LONG,
);

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

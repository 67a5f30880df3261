import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';
import { buildOnce } from './servers/cache.ts';
import { ENGINES, urlVariable } from './servers/engine.ts';
import { whyPostgresqlUnavailable } from './servers/engines/postgresql.ts';
import { isRoot, withInMemory } from './servers/machine.ts';
import { identify, isAlive } from './servers/process.ts';
import { neededEngines } from './servers/run-servers.ts';
import type { StartedServer } from './servers/state.ts';
import { waitUntil } from './suites/wait-until.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAIN = 'test/servers/main.ts';
const NOBODY = 65_534;

/** An environment that sees neither this machine's servers nor those of other runs. */
function isolated(cache: string, more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, SVC_TEST_CACHE: cache, SVC_TEST_USUAL: 'off' };
  for (const name of [...ENGINES.map(urlVariable), 'SVC_TEST_REQUIRE']) delete env[name];
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

const state = (cache: string): readonly StartedServer[] =>
  JSON.parse(readFileSync(join(cache, 'state.json'), 'utf8')).servers;

/** Gives the test its own cache and stops the servers recorded there afterwards. */
async function withCache(body: (cache: string, env: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
  const cache = folder();
  try {
    await body(cache, isolated(cache));
  } finally {
    await run([MAIN, 'down'], isolated(cache));
  }
}

const LONG = { timeoutMs: 180_000 };
const missing = whyPostgresqlUnavailable();
const withServer = (name: string, body: (cache: string, env: NodeJS.ProcessEnv) => Promise<void>): void => {
  if (missing !== undefined) test.skip(name, missing);
  else test(name, () => withCache(body), LONG);
};

test('a run starts the servers that its test files name, and no others', () => {
  assert.deepEqual(neededEngines('test/servers.test.ts'), ENGINES);
  assert.deepEqual(neededEngines('test/servers/fixtures/needs-mysql.ts'), ['mysql']);
  assert.deepEqual(neededEngines('test/floors.test.ts'), []);
  assert.ok(neededEngines('test/engine.test.ts').includes('postgresql'), 'engines named in files of the kit count too');
});

const IN_MEMORY = 'a command works on a copy of its folder in memory';
if (!isRoot() || !existsSync('/dev/shm')) test.skip(IN_MEMORY, 'needs root and /dev/shm');
else
  test(IN_MEMORY, () => {
    const data = join(folder({ 'data/row': 'old ' }), 'data');
    const { TMPDIR } = process.env;
    process.env.TMPDIR = '/dev/shm';
    const script = 'cat "$0/row" && printf new > "$0/row" && cat "$0/row"';
    const { file, args } = withInMemory(data, { file: 'sh', args: ['-c', script, data] });
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    const { stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' });
    assert.equal(stdout, 'old new', stderr);
    assert.equal(readFileSync(join(data, 'row'), 'utf8'), 'old ');
  });

withServer('a kill server is restarted on its port, and down stops it', async (cache, env) => {
  const first = await run([MAIN, 'up', 'postgresql'], env);
  assert.equal(first.status, 0, first.output);
  const [server] = state(cache);
  assert.ok(server?.processes[0] && first.output.includes('started from an installed PostgreSQL'));
  process.kill(server.processes[0].pid, 'SIGKILL');
  const { processes, url } = server;
  await waitUntil(() => !processes.some(isAlive), 'it did not die');

  const second = await run([MAIN, 'up', 'postgresql'], env);
  assert.match(second.output, /does not answer any more; restarting it/);
  const [again, ...others] = state(cache);
  assert.deepEqual(others, []);
  assert.equal(again?.url, url);
  assert.ok(again && again.processes[0]?.pid !== processes[0]?.pid && again.processes.every(isAlive));
  assert.match(
    (await run([MAIN, 'status', 'postgresql'], env)).output,
    /started from an installed PostgreSQL, process/,
  );

  await run([MAIN, 'down', 'mysql'], env);
  assert.ok(again.processes.every(isAlive), 'down of another engine leaves it');
  const end = await run([MAIN, 'down', 'postgresql'], env);
  assert.match(end.output, /PostgreSQL: stopped/);
  assert.ok(!again.processes.some(isAlive) && !existsSync(again.folder) && state(cache).length === 0);
});

withServer('of two concurrent runs of up, one starts the server and the other finds it', async (cache, env) => {
  const both = await Promise.all([1, 2].map(() => run([MAIN, 'up', 'postgresql'], env)));
  assert.deepEqual(
    both.map(({ status }) => status),
    [0, 0],
    both.map(({ output }) => output).join('\n'),
  );
  const outputs = both.map(({ output }) => output).sort((a) => (a.includes('started before') ? 1 : -1));
  assert.match(outputs[0] ?? '', /\(started from an installed PostgreSQL\)/);
  assert.match(outputs[1] ?? '', /\(started before, from an installed PostgreSQL\)/);
  assert.equal(state(cache).length, 1);
});

withServer('a server in use by a run survives down and stops with the run', async (cache, env) => {
  await run([MAIN, 'up', 'postgresql'], env);
  const user = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  try {
    const identity = identify(user.pid ?? 0);
    assert.ok(identity);
    const servers = state(cache).map((server) => ({ ...server, users: [identity] }));
    writeFileSync(join(cache, 'state.json'), JSON.stringify({ version: 1, servers }));
    assert.match((await run([MAIN, 'down'], env)).output, new RegExp(`runs until its test runs end .*${user.pid}`));
    assert.ok(state(cache)[0]?.processes.every(isAlive));
  } finally {
    await kill(user);
  }
  assert.match((await run([MAIN, 'down'], env)).output, /PostgreSQL: stopped/);
});

withServer(
  'a run whose server is kill fails with the name of the server and leaves nothing running',
  async (cache, env) => {
    const { status, output } = await run(['test/run.ts', 'test/servers/fixtures/kills-postgresql.ts'], env);
    assert.equal(status, 1, output);
    assert.match(output, /^ok {3}test\/servers\/fixtures\/kills-postgresql.ts: 1 passed, 0 failed/m);
    assert.match(output, /^FAIL PostgreSQL: its server died .* and was restarted, while test\/servers\/fixtures/m);
    assert.match(output, /^1 passed, 1 failed, 0 skipped$/m);
    assert.deepEqual(state(cache), []);
  },
);

test(
  'down does not stop a process that reuses the id of a server',
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
        assert.ok(identify(pid), 'the bystander was kill');
        assert.deepEqual(state(cache), []);
      } finally {
        await kill(bystander);
      }
    });
  },
  LONG,
);

test(
  'an incomplete build of a kill run is removed and built again',
  async () => {
    const cache = folder();
    const url = JSON.stringify(new URL('servers/cache.ts', import.meta.url).href);
    const script = `
    import { writeFileSync } from 'node:fs';
    const { buildOnce } = await import(${url});
    await buildOnce('thing', async (folder) => {
      writeFileSync(folder + '/half', '');
      console.log('half');
      await new Promise(() => setInterval(() => {}, 1000));
    });`;
    const args = ['--import', 'tsx', '--input-type=module', '-e', script];
    const builder = spawn(process.execPath, args, {
      cwd: ROOT,
      env: isolated(cache),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const before = process.env.SVC_TEST_CACHE;
    process.env.SVC_TEST_CACHE = cache;
    const build = () => buildOnce('thing', async (target) => writeFileSync(join(target, 'whole'), ''));
    try {
      await once(builder.stdout, 'data');
      const [half = ''] = readdirSync(cache);
      assert.match(half, /^thing\.making-\d+/);
      assert.deepEqual(readdirSync(join(cache, half)), ['half']);

      await build();
      assert.deepEqual(readdirSync(cache).sort(), ['thing', half], 'the build of a live run is not removed');
      await kill(builder);
      rmSync(join(cache, 'thing'), { recursive: true });
      await Promise.all([build(), build()]);
      assert.deepEqual(readdirSync(cache), ['thing']);
      assert.deepEqual(readdirSync(join(cache, 'thing')), ['whole']);
    } finally {
      if (before === undefined) delete process.env.SVC_TEST_CACHE;
      else process.env.SVC_TEST_CACHE = before;
      await kill(builder);
    }
  },
  LONG,
);

test(
  'with only Docker available, up starts a container and down removes it',
  async () => {
    const fake = folder({
      docker: `#!/bin/sh\nexec '${process.execPath}' '${ROOT}test/servers/fixtures/docker.mjs' "$@"\n`,
    });
    chmodSync(join(fake, 'docker'), 0o755);
    const cache = folder();
    const env = isolated(cache, { PATH: fake, FAKE_DOCKER: fake });
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
  'an unavailable server skips its tests with a reason, and fails the run under SVC_TEST_REQUIRE=all; no file starts too late',
  async () => {
    const cache = folder();
    if (isRoot()) chownSync(cache, NOBODY, NOBODY);
    const uid = isRoot() ? NOBODY : undefined;
    const file = 'test/servers/fixtures/needs-mysql.ts';
    const env = isolated(cache, { HOME: cache, TMPDIR: cache });

    const without = await run(['test/run.ts', file], env, uid);
    assert.equal(without.status, 0, without.output);
    assert.match(without.output, /skipped: needs MySQL: MySQL: no server answers/);
    assert.match(without.output, /^1 passed, 0 failed, 1 skipped$/m);

    const required = await run(['test/run.ts', file], { ...env, SVC_TEST_REQUIRE: 'all' }, uid);
    assert.equal(required.status, 1);
    assert.match(required.output, /^FAIL MySQL: .*need root/m);

    const late = await run(['test/run.ts', file], { ...env, SVC_TEST_UNTIL: '1' }, uid);
    assert.equal(late.status, 0, late.output);
    assert.match(late.output, /^NOT RUN .*needs-mysql\.ts: no time was left\n0 passed, 0 failed, 1 skipped$/m);

    const unreachable = await run(
      ['test/run.ts', file],
      { ...env, SVC_TEST_MYSQL_URL: 'mysql://root@127.0.0.1:1/' },
      uid,
    );
    assert.equal(unreachable.status, 1);
    assert.match(unreachable.output, /MySQL: no usable server answers at SVC_TEST_MYSQL_URL: connect ECONNREFUSED/);
  },
  LONG,
);

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

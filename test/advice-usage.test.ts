import * as assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { advised, commandsOf, svcInProcess } from './kit/advice.ts';
import { folder } from './kit/folder.ts';
import { assertExit } from './kit/project.ts';
import { test } from './kit/test.ts';

const root = folder();
const run = (...args: readonly string[]) => svcInProcess([...args, '--json'], root);

test('commands of other tools, groups and unknown options lead to a command', async () => {
  const meant: Readonly<Record<string, string>> = {
    'db status': 'db migrate status',
    'db rollback': 'db migrate rollback',
  };
  for (const [typed, command] of Object.entries(meant)) {
    const suggestion = advised(await run(...typed.split(' ')), 'Did you mean "svc <…>"?');
    const [, found = ''] = /"svc (.*)"/.exec(suggestion) ?? [];
    assert.equal(found, command);
    assertExit(await run(...found.split(' '), '--help'));
  }
  for (const [args = [], text = ''] of [
    [['db', 'migrate', '--nope'], 'svc <…> --help'],
    [['approvals'], 'svc <…> --help'],
    [['nothing'], 'svc --help'],
    [['--nope'], 'svc --help'],
    [['db', 'migrate', 'resolve', 'x'], '--retry, --applied, --rolled-back, --failed or --forget'],
    [['init', '--dialect', 'oracle'], 'svc init --help'],
    [['init', '--dialect', 'mysq'], 'svc init --dialect <…>'],
    [['plugins', 'new'], 'svc plugins new --help'],
    [['plugins', 'new', 'channel', 'x', '--sql'], 'svc plugins new dialect duckdb --sql'],
    [['plugins', 'new', 'channel', 'Bad_Name'], 'svc plugins new <…> <…>'],
    [['plugins', 'new', 'broker', 'nats', '--port', 'x'], 'svc plugins new broker <…> --port 4222'],
  ] as const) {
    const advice = advised(await run(...args), text);
    for (const command of commandsOf(advice))
      assertExit(await run(...command, ...(command.includes('--dialect') ? ['--no-install'] : [])));
  }
});

test('the dialect of a plugin: a configuration that is written by hand, to which init adds what is missing', async () => {
  const cwd = folder({
    'plugin.mjs': `export default { name: 'acme', api: 1, apply: ({ dialects }) => dialects.register('abacus', {}) };`,
  });
  const runHere = (...args: readonly string[]) => svcInProcess([...args, '--json'], cwd);
  const advice = advised(
    await runHere('init', '--dialect', 'abacus'),
    "For the dialect of a plugin, write svc.config: plugins: ['<package>'], databases: { main: { dialect: '<…>', url: '<url>' } }, then: svc init    adds what is missing",
  );
  const [, written = ''] = /svc\.config: (.*), then:/.exec(advice) ?? [];
  const entries = written.replace('<package>', './plugin.mjs').replace('<url>', 'abacus://./beads');
  writeFileSync(join(cwd, 'svc.config.mjs'), `export default { product: 'shop', env: 'dev', ${entries} };`);
  const [init = []] = commandsOf(advice, { '<package>': '', '<url>': '' });
  assertExit(await runHere(...init, '--no-install'));
  const { plugins } = JSON.parse(assertExit(await runHere('plugins', 'list')).stdout);
  assert.deepEqual(plugins.find(({ name }: { name: string }) => name === 'acme')?.registers.dialects, ['abacus']);
});

import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table } from '../cli/command-list.ts';
import { colorsFor, errorLines } from '../cli/output.ts';
import { isSvcError, SvcError } from '../core/errors.ts';
import { cleanEnv, command, scripted, svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { terminal } from './kit/terminal.ts';
import { test } from './kit/test.ts';

const COMMANDS = fileURLToPath(new URL('../cli/commands', import.meta.url));
const PLAIN = { product: 'shop', env: 'dev' };
const ESCAPE = '\u001b[';
const cwd = folder({ 'svc.config.json': PLAIN });

test('--version and -v print to stdout', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  for (const flag of ['--version', '-v']) {
    assert.deepEqual(await svc([flag], { cwd }), { status: 0, stdout: `${version}\n`, stderr: '' });
  }
});

test('--help and --version with --json print one object', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const shown = async (...args: string[]) => {
    const { status, stdout, stderr } = await svc(args, { cwd });
    assert.deepEqual([status, stderr], [0, ''], args.join(' '));
    return JSON.parse(stdout);
  };
  const expected = { ok: true, code: 'ok', version, nextActions: [] };
  assert.deepEqual(await shown('--version', '--json'), expected);
  assert.deepEqual(await shown('--json', '-v'), expected);
  const all = await shown('--help', '--json');
  assert.deepEqual(all, await shown('--json'));
  assert.deepEqual(
    all.commands,
    table.map(({ path, summary }) => ({ command: `svc ${path}`, summary })),
  );
  const group = await shown('plugins', '--help', '--json');
  assert.equal(group.usage, 'svc plugins <command> [options]');
  assert.equal(group.commands.length, 2);
  const rollback = await shown('db', 'migrate', 'rollback', '--help', '--json');
  assert.equal(rollback.command, 'svc db migrate rollback');
  assert.deepEqual(
    rollback.options.find(({ names }: { names: string[] }) => names.includes('-n')),
    {
      names: ['-n', '--count'],
      argument: '<count>',
      required: false,
      description: 'The number of migrations. Default: 1.',
    },
  );
  for (const option of rollback.options) assert.notEqual(option.argument, '<value>');
});

test('help fits the width of a terminal, and is not wrapped in a pipe', async () => {
  for (const { path } of [{ path: '' }, ...table]) {
    const args = [...path.split(' ').filter(Boolean), '--help', '--no-color'];
    const screen = terminal(args, { cwd, cols: 60 });
    await screen.ended;
    const wide = screen
      .shown()
      .split('\r\n')
      .filter((line) => line.length > 60 && !/^ {4}svc |^usage /.test(line));
    assert.deepEqual(wide, [], path);
  }
  const { stdout } = await svc(['db', 'migrate', 'resolve', '--help'], { cwd });
  assert.ok(stdout.split('\n').some((line) => line.length > 100));
});

test('--help lists every command on its own line, and --help of a group only its commands', async () => {
  const all = await svc(['--help'], { cwd });
  assert.deepEqual([all.status, all.stderr], [0, '']);
  for (const { path, summary } of table) {
    assert.ok(
      all.stdout.split('\n').some((line) => line.includes(`svc ${path} `) && line.endsWith(summary)),
      path,
    );
  }
  assert.equal((await svc([], { cwd })).stdout, all.stdout);
  const group = await svc(['plugins', '--help'], { cwd });
  assert.equal(group.status, 0);
  assert.match(group.stdout, /svc plugins list/);
  assert.doesNotMatch(group.stdout, /svc init/);
});

test('every file is a command of the table under its path, with a summary and an example', async () => {
  const files = readdirSync(COMMANDS, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const declared = new Set<string>();
  for (const { path, summary, load } of table) {
    const { default: Class } = await load();
    assert.deepEqual(Class.paths, [path.split(' ')], path);
    assert.ok((Class.usage?.examples ?? []).length > 0, `${path} has no example`);
    for (const [, example] of Class.usage?.examples ?? []) assert.ok(example.startsWith(`svc ${path}`), example);
    assert.ok(summary.length > 0 && summary.length < 80 && !summary.endsWith('.'), summary);
    declared.add(path);
  }
  for (const file of files) {
    const text = readFileSync(join(COMMANDS, file), 'utf8');
    if (!/export default class/.test(text)) continue;
    const path = file.replace(/\.ts$/, '').replaceAll('/', ' ');
    assert.ok(
      declared.has(path) || declared.has(path.replace(/ index$/, '')),
      `cli/commands/${file} is not in the table`,
    );
  }
});

test('only the command that runs is imported', () => {
  const text = readFileSync(new URL('../cli/command-list.ts', import.meta.url), 'utf8');
  assert.doesNotMatch(text, /^import (?!type).*commands/m);
  const main = readFileSync(new URL('../cli/bundle/main.ts', import.meta.url), 'utf8');
  assert.deepEqual(
    [...main.matchAll(/^import .*from '(.*)'/gm)].map(([, from]) => from),
    ['../../core/version.ts'],
  );
});

test('--help of a command shows its options and an example', async () => {
  const { status, stdout } = await svc(['link', '--help'], { cwd });
  assert.equal(status, 0);
  for (const part of ['--env <env>', '--json', '--no-color', 'svc link --env staging'])
    assert.ok(stdout.includes(part), part);
});

const MISTYPED: readonly (readonly [readonly string[], RegExp])[] = [
  [['plugin', 'lst'], /"svc plugin lst" is not a command.*Did you mean "svc plugins list"\?/s],
  [['approvals', 'prune'], /needs more arguments: svc approvals prune --older-than/],
  [['--jsn'], /has no option --jsn/],
  [['intt'], /Did you mean "svc init"\?/],
  [['nothing-like-it'], /svc --help/],
  [['plugins'], /needs a subcommand/],
  [['plugins', 'list', '--jsn'], /has no option --jsn.*Did you mean --json\?/s],
  [['plugins', 'list', 'more'], /does not accept "more"/],
  [['db', 'schema', 'generate', '--rename', 'Invoice', 'Lines.qty:quantity'], /does not accept "Lines.qty:quantity"/],
  [['approvals', 'show', 'apr_1', '--yes'], /"svc approvals show" has no option --yes/],
  [['db', 'migrate', '--yes=false'], /option --yes does not accept a value/],
  [['db', 'migrate', '--db', 'main', 'rollback'], /after the command.*svc db migrate rollback --db main/s],
  [['--env', 'dev', 'plugins', 'list'], /after the command.*svc plugins list --env dev/s],
  [['link', '--env'], /option --env needs a value/],
  [['approvals', 'approve', 'apr_1', '--review-token'], /option --review-token needs a value/],
  [['approvals', 'approve', 'apr_1', '--review-token', '--yes'], /option --review-token needs a value/],
  [['approvals', 'allow', 'apr_1', '--uses', '3'], /needs more arguments: svc approvals allow <requestId> .*--until/],
  [['people', 'token', 'create', 'ann'], /needs more arguments: svc people token create <id> --expires/],
  [['people', 'token', 'create', 'ann', 'bo', '--expires', '90d'], /does not accept "bo"/],
  [['link'], /needs an environment/],
  [['db', 'status'], /Did you mean "svc db migrate status"\?/],
  [['db', 'rollback'], /Did you mean "svc db migrate rollback"\?/],
  [['db', 'schema', 'diff'], /needs more arguments: svc db schema diff --from/],
  [['db', 'diff'], /"svc db schema diff"\?\n +Did you mean "svc db schema check"\?/],
  [['db', 'up'], /Did you mean "svc db migrate"\?/],
  [['db', 'migrate', 'down'], /does not accept "down".*Did you mean "svc db migrate rollback"\?/s],
  [['db', 'migrate', 'foo'], /does not accept "foo".*\n {2}next {2}svc db migrate --help\n$/],
  [['status'], /Did you mean "svc db migrate status"\?/],
  [['approvals', 'lits'], /Did you mean "svc approvals list"\?/],
  [['approvals', 'history'], /Did you mean "svc approvals --help"\?/],
  [['help', 'db', 'migrate'], /Did you mean "svc db migrate --help"\?/],
  [['help'], /Did you mean "svc --help"\?/],
  [['version'], /Did you mean "svc --version"\?/],
  [['db', 'migrate', '--to'], /The option --to needs a value/],
  [['db', 'migrate', 'rollback', '-n', '0'], /next {2}svc db migrate rollback --help/],
];
for (const [args, said] of MISTYPED) {
  test(`svc ${args.join(' ')} exits with 2, with output only on stderr`, async () => {
    const { status, stdout, stderr } = await svc(args, { cwd });
    assert.deepEqual([status, stdout], [2, '']);
    assert.match(stderr, said);
    assert.ok(stderr.trimEnd().split('\n').length <= 5, stderr);
  });
}

test('--json prints one object for a result, an error and an invalid command', async () => {
  const answer = await svc(['plugins', 'list', '--json'], { cwd });
  assert.deepEqual([answer.status, answer.stderr], [0, '']);
  assert.deepEqual(JSON.parse(answer.stdout), { ok: true, code: 'ok', plugins: [], nextActions: [] });
  for (const [args, code] of [
    [['plugins', 'list', '--json', '--config', 'none.json'], 'config_missing'],
    [['plugins', 'list', '--json', '--unknown'], 'usage'],
  ] as const) {
    const refusal = await svc(args, { cwd });
    assert.deepEqual([refusal.status, refusal.stderr], [2, '']);
    const { ok, code: said, nextActions, message } = JSON.parse(refusal.stdout);
    assert.deepEqual([ok, said], [false, code]);
    assert.ok(message.length > 0 && Array.isArray(nextActions));
  }
});

test('an error has a line for each part, and control characters are escaped', () => {
  const error = new SvcError('migration_failed', 'It\nfailed.', {
    why: `a\n  b \u001b[31mred \u202e`,
    state: 's',
    next: ['one', 'two'],
    where: 'file.ts:1:2',
  });
  assert.ok(isSvcError(error));
  const lines = errorLines(error, colorsFor({ isTTY: false }, [], {}));
  assert.deepEqual(lines, [
    'error It failed. (migration_failed)',
    '  why   a b \\u{1b}[31mred \\u{202e}',
    '  state s',
    '  where file.ts:1:2',
    '  next  one',
    '        two',
  ]);
});

test('a bug keeps its stack and exits with 1', async () => {
  const script = scriptOf(`throw new TypeError('unforeseen');`);
  const { status, stdout, stderr } = await svc([], { cwd, script });
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /TypeError: unforeseen\n\s+at /);
});

test('color on a terminal, but not with NO_COLOR, in CI, with --no-color or in a pipe', async () => {
  const shown = async (args: readonly string[], env: Record<string, string> = {}): Promise<string> => {
    const screen = terminal(args, { cwd, env });
    await screen.ended;
    return screen.shown();
  };
  assert.ok((await shown(['--help'])).includes(ESCAPE));
  assert.ok((await shown(['nothing'])).includes(ESCAPE));
  for (const env of [{ NO_COLOR: '1' }, { CI: 'true' }, { TERM: 'dumb' }])
    assert.ok(!(await shown(['--help'], env)).includes(ESCAPE));
  assert.ok(!(await shown(['--help', '--no-color'])).includes(ESCAPE));
  assert.ok(!(await shown(['doctor', '--no-color'])).includes(ESCAPE));
  assert.ok(!(await svc(['--help'], { cwd })).stdout.includes(ESCAPE));
});

test('FORCE_COLOR colors a pipe, but not with NO_COLOR or --no-color', async () => {
  const colored = async (env: Record<string, string>, ...more: string[]) => {
    const [help, error] = await Promise.all([
      svc(['--help', ...more], { cwd, env }),
      svc(['nothing', ...more], { cwd, env }),
    ]);
    assert.equal(help.stdout.includes(ESCAPE), error.stderr.includes(ESCAPE));
    return help.stdout.includes(ESCAPE);
  };
  assert.ok(await colored({ FORCE_COLOR: '1' }));
  assert.ok(await colored({ FORCE_COLOR: '1', CI: 'true', TERM: 'dumb' }));
  for (const FORCE_COLOR of ['0', 'false', '']) assert.ok(!(await colored({ FORCE_COLOR })), FORCE_COLOR);
  assert.ok(!(await colored({ FORCE_COLOR: '1', NO_COLOR: '1' })));
  assert.ok(!(await colored({ FORCE_COLOR: '1' }, '--no-color')));
  const screen = terminal(['--help'], { cwd, env: { FORCE_COLOR: '0' } });
  await screen.ended;
  assert.ok(!screen.shown().includes(ESCAPE));
});

test('a closed pipe ends the command without an error', async () => {
  const [node, ...args] = [...command, '--help'] as const;
  const child = spawn(node, args, { cwd, env: cleanEnv(), stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const status = await new Promise((settle) => child.on('close', settle));
  assert.deepEqual([status, stderr], [0, '']);
});

const FULL = '/dev/full';
if (existsSync(FULL)) {
  test('a full disk for stdout is an error', async () => {
    const full = openSync(FULL, 'w');
    const [node, ...args] = [...command, '--help'] as const;
    const child = spawn(node, args, { cwd, env: cleanEnv(), stdio: ['ignore', full, 'pipe'] });
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const status = await new Promise((settle) => child.on('close', settle));
    closeSync(full);
    assert.equal(status, 1);
    assert.match(stderr, /ENOSPC/);
  });
} else test.skip('a disk that is full under stdout', 'this system has no /dev/full');

// ---- questions and signals, with a command of the test in the real CLI

/** Runs a command `probe` with this body in a separate process. */
function scriptOf(body: string): string {
  const url = (path: string): string => new URL(`../${path}`, import.meta.url).href;
  return join(
    folder({
      'package.json': { type: 'module' },
      'probe.ts': `
import { table } from '${url('cli/command-list.ts')}';
import { start } from '${url('cli/start.ts')}';
import { SvcCommand } from '${url('cli/base.ts')}';
import { confirm, choose } from '${url('cli/prompt.ts')}';
import { SvcError } from '${url('core/errors.ts')}';
class Probe extends SvcCommand {
  static paths = [['probe']];
  async run() {
    ${body}
  }
}
void [confirm, choose, SvcError];
(table as any).push({ path: 'probe', summary: 'Probe', load: async () => ({ default: Probe }) });
process.exitCode = await start(['probe', ...process.argv.slice(2)]);
`,
    }),
    'probe.ts',
  );
}

const ASKS = `const yes = await confirm(this, { message: 'Really?', flag: '--yes' }); this.print('said ' + yes);`;

test('a question is asked on a terminal', async () => {
  const screen = terminal([], { cwd, script: scriptOf(ASKS) });
  await screen.until('Really?');
  screen.type('y\r');
  await screen.until('said true');
  assert.equal(await screen.ended, 0);
});

test('a question without a terminal, or with --json, is an error that names the flag', async () => {
  const script = scriptOf(ASKS);
  const { status, stdout, stderr } = await svc([], { cwd, script });
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(stderr, /Really\?.*next\s+--yes/s);
  assert.equal(JSON.parse((await svc(['--json'], { cwd, script })).stdout).code, 'confirmation_required');
});

test('Ctrl-C at a question exits with 130', async () => {
  const screen = terminal([], { cwd, script: scriptOf(ASKS) });
  await screen.until('Really?');
  screen.type('\u0003');
  assert.equal(await screen.ended, 130);
});

const WAITS = `
this.note('running');
const end = Date.now() + 20000;
while (!this.signal.aborted && Date.now() < end) await new Promise((next) => setTimeout(next, 5));
this.note('finishing the step');
if (process.argv.includes('--stuck')) await new Promise((next) => setTimeout(next, 20000));
throw new SvcError('interrupted', 'Stopped.', { state: '2 of 5 steps are committed.' });`;

test('the first Ctrl-C lets the step finish, the second one exits immediately', async () => {
  const script = scriptOf(WAITS);
  const polite = terminal([], { cwd, script });
  await polite.until('running');
  polite.type('\u0003');
  assert.equal(await polite.ended, 130);
  assert.match(polite.shown(), /finishing the step[\s\S]*2 of 5 steps are committed/);
});

test('SIGTERM works the same', async () => {
  const [node, ...args] = scripted(scriptOf(WAITS.replace(`process.argv.includes('--stuck')`, 'true')));
  const child = spawn(node, args, { cwd, env: cleanEnv(), stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  const closed = new Promise((settle) => child.on('close', settle));
  child.stderr.on('data', (chunk: Buffer) => {
    const before = stderr;
    stderr += chunk.toString();
    for (const mark of ['running', 'finishing the step']) {
      if (stderr.includes(mark) && !before.includes(mark)) child.kill('SIGTERM');
    }
  });
  assert.equal(await closed, 130);
  assert.match(stderr, /repeat to stop immediately/);
});

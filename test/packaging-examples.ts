import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';

/** Tests the example packages as users get them: with the packed package installed, and their own tests. */

const examples = join(dirname(dirname(fileURLToPath(import.meta.url))), 'examples');
const names = readdirSync(examples).filter((name) => existsSync(join(examples, name, 'package.json')));
const npm = { timeoutMs: 5 * 60_000 };

/** One workspace for all examples, so that dependencies are installed once. */
const workspace = folder();

function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  return new Promise((settle, reject) => {
    execFile(command, args, { cwd, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command} ${args.join(' ')}: ${error.code}\n${stdout}${stderr}`));
      else settle(stdout);
    }).stdin?.end();
  });
}

test(
  'the examples install with the packed package',
  async () => {
    const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', workspace];
    const [packed] = JSON.parse(await run(dirname(examples), 'npm', ...pack));
    for (const name of names) {
      cpSync(join(examples, name), join(workspace, 'examples', name), {
        recursive: true,
        filter: (path) => !['node_modules', 'dist'].includes(basename(path)),
      });
    }
    // uvu and vitest, because a suite has to run under any runner that has test(name, fn).
    const dependencies = { '@svc/sdk': `file:${packed.filename}`, uvu: '^0.5.6', vitest: '^4.0.0' };
    const root = { private: true, workspaces: ['examples/*'], dependencies };
    writeFileSync(join(workspace, 'package.json'), JSON.stringify(root));
    await run(workspace, 'npm', 'install', '--no-audit', '--no-fund', '--no-package-lock');
  },
  npm,
);

for (const name of names) {
  test(
    `${name} passes its own tests`,
    async () => {
      const output = await run(join(workspace, 'examples', name), 'npm', 'test');
      assert.match(output, /^# fail 0$/m, output);
      // Prints the reason of a skipped suite.
      for (const line of output.match(/^# skipped: .+$/gm) ?? []) console.log(line);
    },
    npm,
  );

  test(`${name} is listed and has a README`, () => {
    assert.ok(readFileSync(join(examples, 'README.md'), 'utf8').includes(`(${name}/README.md)`), 'examples/README.md');
    assert.match(readFileSync(join(examples, name, 'README.md'), 'utf8'), /^# .+\n\n[A-Z]/);
  });
}

test('the Slack channel is as short as documented', () => {
  const lines = readFileSync(join(examples, 'channel-slack', 'src', 'channel.ts'), 'utf8')
    .trimEnd()
    .split('\n');
  assert.ok(lines.length < 60, `${lines.length} lines`);
});

test('the SQLite dialect is as short as documented', () => {
  const source = join(examples, 'dialect-sqlite', 'src');
  const lines = readdirSync(source).flatMap((name) => readFileSync(join(source, name), 'utf8').trimEnd().split('\n'));
  assert.ok(lines.length < 200, `${lines.length} lines`);
});

/** A suite under another test runner; one case fails, to check the report. */
const RUNNERS = {
  uvu: {
    imports: "import { test } from 'uvu';",
    after: 'test.run();',
    command: ['node', 'suite.test.mjs'],
    counts: /Total: +6\s+Passed: +5/,
  },
  vitest: {
    imports: "import { test } from 'vitest';",
    after: '',
    command: ['npx', 'vitest', 'run', '--root', '.'],
    counts: /Tests +1 failed \| 5 passed \(6\)/,
  },
} as const;

for (const [name, { imports, after, command, counts }] of Object.entries(RUNNERS)) {
  test(
    `a suite runs under ${name} and reports the rule of the contract`,
    async () => {
      const cwd = join(workspace, `under-${name}`);
      mkdirSync(cwd);
      writeFileSync(join(cwd, 'suite.test.mjs'), `${imports}\n${SUITE}${after}\n`);
      const [program, ...args] = command;
      const output = await run(cwd, program, ...args).then(
        (output) => assert.fail(`it did not fail: ${output}`),
        (error: Error) => stripVTControlCharacters(error.message),
      );
      assert.match(output, counts);
      assert.match(
        output,
        /# skipped: SQLite: pages contain every record once, in both directions: it is left out here/,
      );
      assert.match(output, /The contract requires: Every column comes back with the type/);
    },
    npm,
  );
}

const SUITE = `
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isSvcError } from '@svc/sdk';
import { recordStoreSuite, suite } from '@svc/sdk/testing';
import { sqlite } from '../examples/dialect-sqlite/dist/src/index.js';

recordStoreSuite(test, {
  name: 'SQLite',
  skip: { 'pages contain every record once, in both directions': 'it is left out here' },
  async createStore() {
    const folder = mkdtempSync(join(process.cwd(), 'db-'));
    const connect = async () => {
      const home = await sqlite.connect('sqlite://' + join(folder, 'test.db'), {});
      const records = (definition) => {
        const store = home.records(definition);
        const get = async (key) => {
          const found = await store.get(key);
          return key.startsWith("it's") ? { ...found, record: { ...found.record, kind: 'lost' } } : found;
        };
        return { ...store, get };
      };
      return { ...home, records };
    };
    return { connect, drop: async () => rmSync(folder, { recursive: true }) };
  },
});

// What a plugin throws is what the suites and the caller know, from whichever entry it came.
suite(test, { name: 'one copy' }, (on) =>
  on('an error of the dialect is one of the SDK', () => {
    try {
      sqlite.identify('nothing');
    } catch (error) {
      if (isSvcError(error) && error.code === 'url_invalid') return;
    }
    throw new Error('nothing was refused');
  }),
);
`;

import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { docsBlocks } from './kit/docs-blocks.ts';
import { LIFTOFF_ONLY } from './kit/node-flags.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';

/**
 * Runs the README and the tutorials. The words after a block's language define how: a path is written (and TypeScript
 * compiled and run), `sh` runs in that project, `sh answer=…` types an answer, `text` is what the last command printed,
 * `sh existing` runs on a database made by hand, `sh clone` is run by .ci/run and `sh install` by test/packaging.ts.
 * `console` is a transcript whose lines are in the tutorials. The commands of two how-to pages run as well.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const tutorials = readdirSync(join(root, 'docs', 'tutorials'));
const cli = join(root, 'dist', 'cli', 'main.cjs');

/** The blocks of a page; `word` is what its fence says after the language. */
const blocksOf = (page: string) =>
  docsBlocks()
    .filter((block) => block.page === page)
    .map(({ language, annotation: word, text }) => ({ language, word, text }));
const blocks = blocksOf('README.md');

const folder = mkdtempSync(join(tmpdir(), 'svc-readme-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** A project with the built package in its node_modules, like after an installation. */
async function project(name: string): Promise<string> {
  const path = join(folder, name);
  mkdirSync(join(path, 'node_modules', '.bin'), { recursive: true });
  for (const scope of ['@svc', '@electric-sql']) mkdirSync(join(path, 'node_modules', scope));
  symlinkSync(root, join(path, 'node_modules', '@svc', 'sdk'));
  // npm creates a link here, which packaging.ts tests.
  const command = `#!/bin/sh\nexec "${process.execPath}" ${LIFTOFF_ONLY} "${cli}" "$@"\n`;
  writeFileSync(join(path, 'node_modules', '.bin', 'svc'), command, { mode: 0o755 });
  for (const name of ['@electric-sql/pglite', '@types']) {
    symlinkSync(join(root, 'node_modules', name), join(path, 'node_modules', name));
  }
  writeFileSync(join(path, 'package.json'), '{ "dependencies": { "@svc/sdk": "^0.1.0" } }'); // as npm install writes it
  await run(path, 'svc init --no-install');
  return path;
}

function run(cwd: string, command: string, answer = ''): Promise<string> {
  const env = { ...process.env, PATH: `${join(cwd, 'node_modules', '.bin')}${delimiter}${process.env.PATH}` };
  return new Promise((settle, reject) => {
    const child = execFile('sh', ['-c', command], { cwd, env }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command}: ${error.code}\n${stdout}${stderr}`));
      else settle(stdout);
    });
    // A command that reads nothing may have ended before.
    child.stdin?.on('error', () => undefined).end(answer);
  });
}

/** Replaces npx, whose lookup takes a second, with the path of the same file. */
function commands(text: string): string[] {
  return text
    .trim()
    .split('\n')
    .map((line) => line.replace(/^npx /, ''));
}

/** Replaces times and durations, which vary. */
function normalizeOutput(text: string): string {
  return text.trim().replace(/\d+/g, '0');
}

test('the package is built', () => {
  assert.ok(existsSync(cli), 'npm run build');
  chmodSync(cli, 0o755);
});

test('every block is annotated with how it runs', () => {
  for (const { language, word } of blocks) {
    const known =
      language === 'sh'
        ? ['', 'clone', 'install', 'existing'].includes(word)
        : word !== '' || ['text', 'console'].includes(language);
    assert.ok(known, `\`\`\`${language} ${word}`);
  }
  assert.equal(blocks.length, readme.match(/^```\w/gm)?.length);
});

test('the commands for a clone are those of the CI', () => {
  const ci = readFileSync(join(root, '.ci', 'run'), 'utf8');
  const lines = blocks.filter(({ word }) => word === 'clone').flatMap(({ text }) => commands(text));
  assert.ok(lines.length > 0);
  for (const line of lines) assert.ok(ci.includes(`bash -c '${line}'`), line);
});

test('each line of a transcript is in the tutorials', () => {
  const pages = tutorials.map((name) => readFileSync(join(root, 'docs', 'tutorials', name), 'utf8')).join('\n');
  const known = new Set(pages.split('\n').map(normalizeOutput));
  const lines = blocks.filter(({ language }) => language === 'console').flatMap(({ text }) => text.trim().split('\n'));
  assert.ok(lines.length > 0);
  for (const line of lines) assert.ok(known.has(normalizeOutput(line.replace(/^\$ /, ''))), line);
});

test(
  'the project, block by block',
  async () => {
    const path = await project('app');
    let printed = '';
    const ran: string[] = [];
    for (const { language, word, text } of blocks.filter(
      ({ language, word }) => language !== 'console' && !['clone', 'install', 'existing'].includes(word),
    )) {
      if (language === 'sh') for (const command of commands(text)) printed = await run(path, command);
      else if (language === 'text') assert.equal(normalizeOutput(printed), normalizeOutput(text));
      else {
        mkdirSync(dirname(join(path, word)), { recursive: true });
        writeFileSync(join(path, word), text);
        if (language === 'ts') ran.push(await compileAndRun(path, word));
      }
    }
    assert.match(ran[0] ?? '', /^\d+ completed, 0 pending$/m);
    assert.match(ran[1] ?? '', /^completed paid 15 for order 1234 \[ 'amount' \]$/m);
  },
  { timeoutMs: 5 * 60_000 },
);

async function compileAndRun(path: string, file: string): Promise<string> {
  const flags = '--ignoreConfig --strict --module nodenext --target es2023 --types node --outDir out';
  await run(path, `"${process.execPath}" "${join(root, 'node_modules/typescript/bin/tsc')}" ${flags} ${file}`);
  return run(path, `"${process.execPath}" out/${file.replace(/ts$/, 'js')}`);
}

for (const name of tutorials) {
  test(
    `the tutorial ${name}, block by block`,
    async () => {
      const path = await project(name.replace('.md', ''));
      let printed = '';
      for (const { language, word, text } of blocksOf(`docs/tutorials/${name}`)) {
        const answer = /^answer=(.*)$/.exec(word)?.[1];
        if (word === 'install') continue;
        if (language === 'sh') {
          for (const command of commands(text)) printed = await run(path, command, answer && `${answer}\n`);
          // The input is on the terminal, but not in the output.
          if (answer) printed = printed.replace(/: (?=completed|rejected)/, `: ${answer}\n`);
        } else if (language === 'text') assert.equal(normalizeOutput(printed), normalizeOutput(text));
        else writeFileSync(join(path, word), text);
      }
      assert.notEqual(printed, '');
    },
    { timeoutMs: 5 * 60_000 },
  );
}

/** A project whose database has tables that svc did not create. */
async function existingDatabase(name: string): Promise<string> {
  const path = await project(name);
  mkdirSync(join(path, '.svc'));
  const made = await freshFolder();
  renameSync(new URL(made.url).pathname, join(path, '.svc', 'main'));
  await made.drop();
  const { PGlite } = await import('@electric-sql/pglite');
  const server = await PGlite.create(join(path, '.svc', 'main'));
  await server.exec(`
    create table authors (id int generated by default as identity primary key, name varchar(80) not null unique);
    create table books (id uuid primary key default gen_random_uuid(), author int not null references authors on delete cascade, price numeric(10, 2));
    create index books_by_price on books (author, price desc);
  `);
  await server.close();
  rmSync(join(path, 'svc', 'database'), { recursive: true }); // what svc init wrote as an example
  return path;
}

const ADOPTING = {
  'README.md': blocks.filter(({ word }) => word === 'existing'),
  'docs/how-to/adopt-a-database.md': blocksOf('docs/how-to/adopt-a-database.md'),
};
for (const [page, commandBlocks] of Object.entries(ADOPTING)) {
  test(
    `a database that exists already, as in ${page}`,
    async () => {
      const path = await existingDatabase(page.replaceAll(/\W/g, '-'));
      let printed = '';
      for (const { text } of commandBlocks) for (const command of commands(text)) printed = await run(path, command);
      assert.equal(printed.trim().split('\n').length, 1, printed);
      assert.match(await run(path, 'svc db migrate status'), /^OK/);
      assert.match(readFileSync(join(path, 'svc/database/schema.json'), 'utf8'), /"authors"/);
    },
    { timeoutMs: 5 * 60_000 },
  );
}

test(
  'the command of docs/how-to/recover-a-failed-migration.md shows what failed',
  async () => {
    const path = await project('recover');
    await run(path, 'svc db schema generate && svc db migrate');
    const { file } = JSON.parse(await run(path, 'svc db migrate create broken --json'));
    const broken = JSON.parse(readFileSync(join(path, file), 'utf8'));
    const raw = { type: 'raw', dialect: 'postgresql', statement: 'SELECT 1/0', transaction: false };
    writeFileSync(join(path, file), JSON.stringify({ ...broken, up: [raw], down: [raw] }));
    await assert.rejects(run(path, 'svc db migrate'), /division by zero/);
    for (const { text } of blocksOf('docs/how-to/recover-a-failed-migration.md')) {
      for (const command of commands(text)) await assert.rejects(run(path, command), /division by zero/);
    }
  },
  { timeoutMs: 5 * 60_000 },
);

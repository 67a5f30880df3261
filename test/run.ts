import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleFiles } from './kit/bundle.ts';
import { LIFTOFF_ONLY } from './kit/node-flags.ts';
import { neededEngines, RunServers } from './servers/run-servers.ts';

/**
 * Runs test files, each in its own process: all of test/*.test.ts without arguments, otherwise those whose names contain
 * an argument or whose path is one. `-part` excludes the files whose names contain `part`. Finds or starts the servers
 * that the files need; a server that dies during the run fails it. With `SVC_TEST_AGAIN=1` a file that fails
 * is run again, alone, and the second result counts; the output of both is printed and a file that then passes is listed as
 * UNSTEADY. No file starts after the moment `SVC_TEST_UNTIL`, in seconds since 1970: those that are left are listed as NOT RUN and
 * count as skipped.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const jobs = Math.max(1, Number(process.env.SVC_TEST_JOBS ?? 2) || 2);
const until = Number(process.env.SVC_TEST_UNTIL || Number.POSITIVE_INFINITY) * 1_000;
/** Kills a file that blocks its event loop, where its own time-outs never fire. */
const FILE_TIMEOUT_MS = 20 * 60_000;

/** Parts of the names of slow files, the slowest first. They start first, so that none of them runs alone at the end. */
const LONGEST = [
  ...['mysql-crash', 'mariadb-crash', 'cassandra-crash', 'dynamodb-crash', 'crash', 'approval-cassandra'],
  ...['approval-dynamodb', 'cassandra.', 'dynamodb.', 'suites-dialect', 'cli-db', 'bad-', 'six-engines', 'readme'],
  ...['engine', 'refund', 'embedded-key-value', 'pglite', 'race'],
];
/** Position in that list; other files come last. */
function startOrder(file: string): number {
  const at = LONGEST.findIndex((part) => file.includes(part));
  return at < 0 ? LONGEST.length : at;
}

/** Files that need the tsx loader at run time, or test whether a module is loaded twice: run from source, not bundled. */
const UNBUNDLED =
  /\b(claude-hooks|frameworks|frameworks-durable|frameworks-pages|suites-channel-broker|config|config-plugins|docs-code|embedded-dialect|read-only-embedded)\.test/;

interface Result {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly string[];
}

const running = new Set<ChildProcess>();

/**
 * CPU seconds of all child processes that have ended, including their own children; NaN where the system does not
 * report it.
 */
function childCpuSeconds(): number {
  if (process.platform !== 'linux') return Number.NaN;
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const [user = Number.NaN, system = Number.NaN] = stat
    .slice(stat.lastIndexOf(')'))
    .split(' ')
    .slice(14, 16)
    .map(Number);
  return (user + system) / 100;
}
let lastCpuSeconds = childCpuSeconds();

function runFile(file: string): Promise<{ output: string; status: string; cpu: number }> {
  return new Promise((resolve) => {
    const script = scripts.get(file);
    const args = script ? ['--enable-source-maps', script, file] : ['--import', 'tsx', file];
    const child = spawn(process.execPath, [LIFTOFF_ONLY, ...args], {
      cwd: root,
      env: { ...process.env, ...servers.environment(), SVC_TEST_UNTIL: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
    const timer = setTimeout(() => child.kill('SIGKILL'), FILE_TIMEOUT_MS);
    let cpu = 0;
    child.on('exit', () => {
      // Exits arrive one at a time, so the increase since the last one belongs to this file.
      const now = childCpuSeconds();
      cpu = now - lastCpuSeconds;
      lastCpuSeconds = now;
    });
    const done = (status: string) => {
      clearTimeout(timer);
      running.delete(child);
      resolve({ output, status, cpu });
    };
    child.on('error', (error) => done(error.message));
    child.on('close', (code, signal) => done(signal ?? String(code)));
  });
}

function readResult(output: string, status: string): Result {
  const summary = /^# .+: (\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(output);
  const skipped = [...output.matchAll(/^# skipped: (.+)$/gm)].map((match) => match[1] ?? '');
  const passed = Number(summary?.[1] ?? 0);
  const failed = Number(summary?.[2] ?? 0);
  // A file without its summary line was killed; one that exits with an error after a good summary still failed.
  return { passed, failed: summary && status === '0' ? failed : Math.max(1, failed), skipped };
}

const excluded = process.argv.slice(2).filter((name) => name.startsWith('-'));
const selected = process.argv.slice(2).filter((name) => !name.startsWith('-'));
const paths = selected.filter((name) => name.endsWith('.ts') && existsSync(resolve(root, name)));
const parts = selected.filter((name) => !paths.includes(name));
const named = (await readdir(join(root, 'test')))
  .filter((name) => name.endsWith('.test.ts') && (selected.length === 0 || parts.some((part) => name.includes(part))))
  .filter((name) => !excluded.some((part) => name.includes(part.slice(1))))
  .map((name) => join('test', name));
const files = [...new Set([...paths, ...named])].sort().sort((a, b) => startOrder(a) - startOrder(b));

const totals = { passed: 0, failed: 0, skipped: 0 };
if (files.length === 0) {
  console.log(`no test file in test/ matches ${selected.join(', ') || '*.test.ts'}`);
  totals.failed = 1;
}

const queue = [...files];
/** The bundled JavaScript of each file, except of those given by path, which may be anywhere. */
const scripts = await bundleFiles(
  root,
  named.filter((file) => !UNBUNDLED.test(file)),
).catch((error: Error): ReadonlyMap<string, string> => {
  console.log(`     bundling failed, files are transpiled one by one: ${error.message}`);
  return new Map();
});
const servers = new RunServers((line) => console.log(`     ${line}`));
const neededByFile = new Map(files.map((file) => [file, neededEngines(resolve(root, file))]));
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    queue.length = 0;
    for (const child of running) child.kill();
    void servers.end().finally(() => process.exit(1));
  });

for (const line of await servers.up([...new Set([...neededByFile.values()].flat())])) {
  // Otherwise the tests are skipped with this reason.
  if (process.env.SVC_TEST_REQUIRE !== 'all') continue;
  totals.failed += 1;
  console.log(`FAIL ${line}`);
}

/** Files that failed next to others and run retries alone. */
const retries: string[] = [];
const unsteady: string[] = [];

async function runNext(files: string[], alone: boolean): Promise<void> {
  for (;;) {
    const file = alone || Date.now() < until ? files.shift() : undefined;
    if (file === undefined) return;
    const started = performance.now();
    const { output, status, cpu } = await runFile(file);
    const result = readResult(output, status);
    const isRetried = result.failed > 0 && !alone && process.env.SVC_TEST_AGAIN === '1';
    if (isRetried) retries.push(file);
    else {
      totals.passed += result.passed;
      totals.failed += result.failed;
      totals.skipped += result.skipped.length;
      if (alone && result.failed === 0) unsteady.push(file);
    }
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    const counts = `${result.passed} passed, ${result.failed} failed, ${result.skipped.length} skipped`;
    const times = Number.isNaN(cpu) ? `${seconds} s` : `${seconds} s, CPU ${cpu.toFixed(1)} s`;
    console.log(`${result.failed > 0 ? 'FAIL' : 'ok  '} ${file}: ${counts} (${times})`);
    for (const reason of result.skipped) console.log(`     skipped: ${reason}`);
    if (result.failed > 0) console.log(`${output.trimEnd()}\n     ended with ${status}`);
    for (const line of await servers.died(neededByFile.get(file) ?? [])) {
      totals.failed += 1;
      console.log(`FAIL ${line}, while ${file} ran`);
    }
  }
}
await Promise.all(Array.from({ length: jobs }, () => runNext(queue, false)));
await runNext(retries, true);
await servers.end();
for (const file of queue) console.log(`NOT RUN ${file}: no time was left`);
totals.skipped += queue.length;
for (const file of unsteady) console.log(`UNSTEADY ${file}: failed next to others, passed alone`);

console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed > 0 ? 1 : 0;

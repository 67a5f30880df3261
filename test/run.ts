import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { built } from './kit/built.ts';
import { QUICK } from './kit/quick.ts';
import { needs } from './servers/needs.ts';
import { RunServers } from './servers/run-servers.ts';

/**
 * Runs test files, each in a process of its own: without arguments all of test/*.test.ts, else those whose names
 * contain one of the arguments, and those that an argument names by its path; never those whose names contain what
 * follows the minus of an argument. The servers that they need are found or brought up first; one that dies meanwhile
 * fails the run by its name. With `SVC_TEST_AGAIN=1` a file that fails beside others is run once more, alone, and counts
 * as it ends then: what fails twice is broken, what fails once is printed as such, whole, and named at the end.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const jobs = Math.max(1, Number(process.env.SVC_TEST_JOBS ?? 2) || 2);
/** A file that loops without ever giving way has no timer of its own left to stop it. */
const FILE_TIMEOUT_MS = 20 * 60_000;

/** What takes longest goes first, so that none of it is left over at the end: the longest on top, by parts of names. */
const LONGEST = [
  ...['mysql-crash', 'mariadb-crash', 'cassandra-crash', 'dynamodb-crash', 'crash', 'approval-cassandra'],
  ...['approval-dynamodb', 'cli-db', 'bad-', 'six-engines', 'readme', 'engine', 'refund', 'pglite', 'race'],
];
/** Its place in that list, or behind it. */
function turn(file: string): number {
  const at = LONGEST.findIndex((part) => file.includes(part));
  return at < 0 ? LONGEST.length : at;
}

/** Files that import TypeScript while they run, which the loader is for, or ask whether a module of ours is loaded twice. */
const AS_THEY_ARE = /\b(channels|config|config-plugins|docs-code)\.test/;

interface Result {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly string[];
}

const running = new Set<ChildProcess>();

/**
 * Seconds of processor time of every process that has ended and was waited for, with what it had started itself; NaN
 * where the system does not tell.
 */
function spent(): number {
  if (process.platform !== 'linux') return Number.NaN;
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const [user = Number.NaN, system = Number.NaN] = stat
    .slice(stat.lastIndexOf(')'))
    .split(' ')
    .slice(14, 16)
    .map(Number);
  return (user + system) / 100;
}
let told = spent();

function runFile(file: string): Promise<{ output: string; status: string; cpu: number }> {
  return new Promise((settle) => {
    const script = scripts.get(file);
    const how = script ? ['--enable-source-maps', script, file] : ['--import', 'tsx', file];
    const child = spawn(process.execPath, [QUICK, ...how], {
      cwd: root,
      env: { ...process.env, ...servers.environment() },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.add(child);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
    const timer = setTimeout(() => child.kill('SIGKILL'), FILE_TIMEOUT_MS);
    let cpu = 0;
    child.on('exit', () => {
      // One ends at a time, so what was added since the last one is of this one.
      const now = spent();
      cpu = now - told;
      told = now;
    });
    const done = (status: string) => {
      clearTimeout(timer);
      running.delete(child);
      settle({ output, status, cpu });
    };
    child.on('error', (error) => done(error.message));
    child.on('close', (code, signal) => done(signal ?? String(code)));
  });
}

function read(output: string, status: string): Result {
  const closing = /^# .+: (\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(output);
  const skipped = [...output.matchAll(/^# skipped: (.+)$/gm)].map((match) => match[1] ?? '');
  const passed = Number(closing?.[1] ?? 0);
  const failed = Number(closing?.[2] ?? 0);
  // A file without its closing line was killed; one that ended badly after a good one still failed.
  return { passed, failed: closing && status === '0' ? failed : Math.max(1, failed), skipped };
}

const unwanted = process.argv.slice(2).filter((name) => name.startsWith('-'));
const wanted = process.argv.slice(2).filter((name) => !name.startsWith('-'));
const paths = wanted.filter((name) => name.endsWith('.ts') && existsSync(resolve(root, name)));
const parts = wanted.filter((name) => !paths.includes(name));
const named = (await readdir(join(root, 'test')))
  .filter((name) => name.endsWith('.test.ts') && (wanted.length === 0 || parts.some((part) => name.includes(part))))
  .filter((name) => !unwanted.some((part) => name.includes(part.slice(1))))
  .map((name) => join('test', name));
const files = [...new Set([...paths, ...named])].sort().sort((a, b) => turn(a) - turn(b));

const totals = { passed: 0, failed: 0, skipped: 0 };
if (files.length === 0) {
  console.log(`no test file in test/ is named like ${wanted.join(', ') || '*.test.ts'}`);
  totals.failed = 1;
}

const queue = [...files];
/** What to run in their place: JavaScript; not for those that are named by their paths, which may be anywhere. */
const scripts = await built(
  root,
  named.filter((file) => !AS_THEY_ARE.test(file)),
).catch((error: Error): ReadonlyMap<string, string> => {
  console.log(`     could not be built, and are translated one by one: ${error.message}`);
  return new Map();
});
const servers = new RunServers((line) => console.log(`     ${line}`));
const asked = new Map(files.map((file) => [file, needs(resolve(root, file))]));
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    queue.length = 0;
    for (const child of running) child.kill();
    void servers.end().finally(() => process.exit(1));
  });

for (const line of await servers.up([...new Set([...asked.values()].flat())])) {
  // Else its tests say so themselves, and are counted as skipped.
  if (process.env.SVC_TEST_REQUIRE !== 'all') continue;
  totals.failed += 1;
  console.log(`FAIL ${line}`);
}

/** Files that failed beside others, and are run once more. */
const again: string[] = [];
const unsteady: string[] = [];

async function runNext(files: string[], alone: boolean): Promise<void> {
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const started = performance.now();
    const { output, status, cpu } = await runFile(file);
    const result = read(output, status);
    const postponed = result.failed > 0 && !alone && process.env.SVC_TEST_AGAIN === '1';
    if (postponed) again.push(file);
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
    for (const line of await servers.died(asked.get(file) ?? [])) {
      totals.failed += 1;
      console.log(`FAIL ${line}, while ${file} ran`);
    }
  }
}
await Promise.all(Array.from({ length: jobs }, () => runNext(queue, false)));
await runNext(again, true);
await servers.end();
for (const file of unsteady) console.log(`UNSTEADY ${file}: failed beside others, passed alone`);

console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed > 0 ? 1 : 0;

import { realpathSync } from 'node:fs';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { withTimeout } from '../suites/suite.ts';

type Body = () => unknown | Promise<unknown>;

/** The default timeout of a test. Generous, because four test files share the machine in CI. */
const TEST_TIMEOUT_MS = 240_000;
/** How long the file's own module may take to load, top-level await included. */
const LOAD_TIMEOUT_MS = 120_000;
/** How long the process may stay open after its last test. */
const OPEN_HANDLES_MS = 5_000;

const file = realpathSync(process.argv[1] ?? '.');
/** The file may be a bundle of another one. */
const title = process.argv[2] ?? relative(process.cwd(), file);

// uvu would start its own run on the next timer, before a top-level await of the file has settled.
Object.assign(globalThis, { UVU_DEFER: 1, UVU_QUEUE: [[null]] });
const { suite, exec } = await import('uvu');
const tests = suite();

let declared = 0;
let passed = 0;
let skipped = 0;
let phase: 'loading' | 'running' | 'finished' = 'loading';
/** Failures of the file itself, in addition to those of its tests. */
const trouble: string[] = [];

function fail(what: string, error?: unknown): void {
  trouble.push(what);
  const detail = error instanceof Error ? error.stack : error;
  process.stdout.write(`\n   FAIL  ${title}: ${what}\n${detail === undefined ? '' : `${String(detail)}\n`}\n`);
}

/**
 * Converts an error into one that uvu can report. uvu fails on anything else than an Error and skips the remaining tests,
 * and it prints a difference of its own in addition to that of Node's assertions.
 */
function reportable(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`threw ${String(error)}`);
  // uvu prints `details` as a textual difference, but SvcError has an object there.
  if (error.name !== 'AssertionError' && !('details' in error)) return error;
  const why = 'why' in error && error.why !== undefined ? ` ${String(error.why)}` : '';
  const plain = new Error(
    `${'code' in error && error.name !== 'AssertionError' ? `${String(error.code)}: ` : ''}${error.message}${why}`,
  );
  plain.stack = ['Error', ...(error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line))].join('\n');
  return plain;
}

function declare(name: string, body: Body, limit: number | { timeoutMs?: number } = {}): void {
  const { timeoutMs = TEST_TIMEOUT_MS } = typeof limit === 'number' ? { timeoutMs: limit } : limit;
  declared += 1;
  if (phase !== 'loading') {
    fail(`"${name}" was declared after the tests had begun and never ran`);
    return;
  }
  tests(name, async () => {
    try {
      await withTimeout(timeoutMs, `the test "${name}"`, body);
    } catch (error) {
      throw reportable(error);
    }
    passed += 1;
  });
}

/** The suites accept runners whose `skip` takes a body; they call `skipped` here, which takes the reason. */
function skip(name: string, reason: string | Body): void {
  skipped += 1;
  process.stdout.write(`# skipped: ${name}: ${reason}\n`);
}

function hook(kind: 'before' | 'after', body: Body, timeoutMs: number): void {
  tests[kind](async () => {
    try {
      await withTimeout(timeoutMs, `the ${kind} hook`, body);
    } catch (error) {
      fail(`the ${kind} hook failed`, error);
      // From `before` it must leave uvu's runner, which then runs no test; from `after` it would skip the other hooks.
      if (kind === 'before') throw error;
    }
  });
}

/**
 * Declares a test of this file. The file runs itself once its module has been evaluated, and fails if a test, a hook
 * or the file itself fails, hangs, runs nothing or leaves something open. Milliseconds, or a `timeoutMs`, replace two
 * minutes.
 */
export const test = Object.assign(declare, {
  /** Declares a test that cannot run here; the reason is printed with the result. */
  skip,
  /** The name that the suites use. */
  skipped: skip,
  before(body: Body, { timeoutMs = TEST_TIMEOUT_MS }: { timeoutMs?: number } = {}): void {
    hook('before', body, timeoutMs);
  },
  after(body: Body, { timeoutMs = TEST_TIMEOUT_MS }: { timeoutMs?: number } = {}): void {
    hook('after', body, timeoutMs);
  },
});

process.on('exit', (code) => {
  if (phase === 'loading') fail('the file did not load');
  if (phase === 'running') fail('the process ended before the tests did');
  if (declared + skipped === 0) fail('no test was declared');
  if (code !== 0 && declared === passed && trouble.length === 0) fail(`the process ended with ${code}`);
  const failed = Math.max(declared - passed, trouble.length > 0 ? 1 : 0);
  process.stdout.write(`# ${title}: ${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  if (failed > 0) process.exitCode = 1;
});

async function run(): Promise<void> {
  const loading = setTimeout(() => {
    fail(`the file did not load within ${LOAD_TIMEOUT_MS} ms`);
    process.exit(1);
  }, LOAD_TIMEOUT_MS).unref();
  try {
    await import(pathToFileURL(file).href); // settles when the module that is being evaluated has been
  } catch {
    clearTimeout(loading); // Node itself prints what the module threw, and ends with 1
    return;
  }
  clearTimeout(loading);
  phase = 'running';
  tests.run();
  await exec();
  phase = 'finished';
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().filter((kind) => kind !== 'TTYWrap');
    fail(`still open ${OPEN_HANDLES_MS} ms after the last test: ${open.join(', ')}`);
    process.exit(1);
  }, OPEN_HANDLES_MS).unref();
}

void run();

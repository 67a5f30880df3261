import * as assert from 'node:assert/strict';
import type { Connection } from '../core/dialect.ts';
import { SvcError } from '../core/errors.ts';
import { test } from './kit/test.ts';
import { RunningCalls } from './suites/running-calls.ts';
import { type DeclareCase, suite, type UnderTest } from './suites/suite.ts';

interface SuiteRun {
  readonly failures: readonly [name: string, message: string][];
  readonly limits: readonly (number | undefined)[];
}

/** Declares a suite on a runner that takes only a name and a function, and runs it. */
async function run(under: UnderTest, declare: (on: DeclareCase) => void): Promise<SuiteRun> {
  const cases: [string, () => Promise<void>, number | undefined][] = [];
  suite((name, body, timeoutMs) => cases.push([name, body, timeoutMs]), under, declare);
  const failures: [string, string][] = [];
  for (const [name, body] of cases) await body().catch((error: Error) => failures.push([name, error.message]));
  return { failures, limits: cases.map(([, , limit]) => limit) };
}

test('a case that fails reports the rule of the contract, then the difference', async () => {
  const refusal = new SvcError('not_supported', 'It cannot.', { why: 'It is small.', next: ['Grow.'] });
  const { failures } = await run({ name: 'Abacus' }, (on) => {
    on('it counts', () => assert.equal(1 + 1, 3), { promise: 'One and one are two.' });
    on('it knows its name', () => Promise.reject(refusal));
    on('it is quiet', () => {});
  });
  const [[first, counted], [second, refused]] = failures as [[string, string], [string, string]];
  assert.deepEqual([first, second, failures.length], ['Abacus: it counts', 'Abacus: it knows its name', 2]);
  assert.match(counted, /^The contract requires: One and one are two\.\n\nExpected values[\s\S]*2 !== 3/);
  assert.equal(refused, 'The contract requires: it knows its name.\n\nnot_supported: It cannot. It is small. Grow.');
});

test('a case times out before the runner does', async () => {
  const { failures, limits } = await run({ name: 'Abacus' }, (on) => {
    on('it waits', () => new Promise(() => {}), { timeoutMs: 20 });
  });
  assert.match(failures[0]?.[1] ?? '', /did not end within 20 ms/);
  assert.ok((limits[0] ?? 0) > 20);
});

test('a case of a slow engine has more time, and its time-out says what was running', async () => {
  const calls = new RunningCalls();
  const never = new Promise<never>(() => {});
  const connection = calls.track({ query: () => never, now: async () => new Date() } as unknown as Connection);
  const { failures, limits } = await run({ name: 'Abacus', timeoutMs: 40 }, (on) => {
    const body = async () => {
      await connection.now();
      await connection.query('SELECT 1');
    };
    on('it waits', body, { timeoutMs: 20, running: () => calls.describe() });
    on('it has its own limit', () => {});
  });
  assert.match(
    failures[0]?.[1] ?? '',
    /did not end within 40 ms: 1 calls have ended; running: query\(SELECT 1\), for \d+ ms$/,
  );
  assert.ok((limits[0] ?? 0) > 40 && (limits[1] ?? 0) > 120_000);
});

test('a skipped case is reported to the runner with its reason', async () => {
  const skipped: string[] = [];
  const declared: string[] = [];
  const runner = Object.assign((name: string) => void declared.push(name), {
    skipped: (name: string, reason: string) => void skipped.push(`${name}: ${reason}`),
  });
  const cases = (on: DeclareCase) => {
    on('it counts', () => {});
    on('it sings', () => {});
  };
  suite(runner, { name: 'Abacus', skip: { 'it sings': 'it is made of wood' } }, cases);
  assert.deepEqual([declared, skipped], [['Abacus: it counts'], ['Abacus: it sings: it is made of wood']]);
  suite(runner, { name: 'Slate', skip: 'nobody has one' }, cases);
  assert.deepEqual(skipped.slice(1), ['Slate: it counts: nobody has one', 'Slate: it sings: nobody has one']);
  assert.throws(
    () => suite(runner, { name: 'Abacus', skip: { 'it sigs': 'a slip' } }, cases),
    /unknown cases: it sigs\./,
  );
});

test('a skipped case is printed if the runner has no `skipped`, and counted by its `skip`', async () => {
  const { log } = console;
  const [printed, counted]: [string[], string[]] = [[], []];
  console.log = (line: string) => void printed.push(line);
  const abacus = { name: 'Abacus', skip: { 'it sings': 'it is made of wood' } };
  const cases = (on: DeclareCase) => void on('it sings', () => {});
  try {
    await run(abacus, cases);
    const skip = (name: string, body: () => Promise<void>) => void counted.push(`${name}: ${typeof body}`);
    suite(
      Object.assign(() => undefined, { skip }),
      abacus,
      cases,
    );
  } finally {
    console.log = log;
  }
  assert.deepEqual(printed, Array(2).fill('# skipped: Abacus: it sings: it is made of wood'));
  assert.deepEqual(counted, ['Abacus: it sings: function']);
});

import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import {
  closeAll,
  database,
  kill,
  missing,
  nodeFlags,
  type Place,
  shared,
  skipped,
  withPlace,
} from './durable/place.ts';
import type { EngineName } from './durable/run.ts';
import { docsBlocks } from './kit/docs-blocks.ts';
import { resultsTable } from './kit/results-table.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

// One suite, run in the workers of each engine: processes of their own, which are killed. The table of
// docs/reference/frameworks.md is compared with the results of the run.

const ENGINES = { dbos: 'DBOS', temporal: 'Temporal' } as const;
const ENGINE_NAMES = Object.keys(ENGINES) as EngineName[];
const own = new URL('./durable/', import.meta.url);

test.after(closeAll);

interface Case {
  readonly title: string;
  /** What an engine does in another way, or why it cannot be tried. */
  readonly impossible?: Partial<Record<EngineName, string>>;
  /** The test starts its workers. */
  readonly hasWorkers?: true;
  /** No process signals a decision. */
  readonly isSilent?: true;
  readonly run: (place: Place) => Promise<void>;
}

const NO_SIGNAL = { dbos: 'the step needs none' };

const CASES: readonly Case[] = [
  {
    title: 'parallel calls: one is edited, one rejected, one approved, in another order',
    async run(place) {
      await place.start([20, 30, 40]);
      await place.approve('c3');
      await place.reject('c2');
      await place.approve('c1', { amount: 15 });
      const [edited, rejected, approved] = await place.result();
      assert.match(edited?.text ?? '', /paid 15.*A reviewer changed/s);
      assert.match(rejected?.text ?? '', /approval_rejected.*No\./s);
      assert.match(approved?.text ?? '', /paid 40/);
      assert.deepEqual([...place.effects].sort(), ['15', '40']);
      assert.equal((await place.requests()).length, 3);
    },
  },
  {
    title: 'a request that expires',
    hasWorkers: true,
    async run(place) {
      await place.worker({ approvalTimeout: 1_500 });
      await place.start([20]);
      assert.match((await place.result())[0]?.text ?? '', /approval_timeout/);
      assert.deepEqual(place.effects, []);
    },
  },
  {
    title: 'a second, other decision is refused',
    async run(place) {
      await place.start([20]);
      await place.approve('c1');
      await expectError(place.reject('c1'), 'approval_decided');
      assert.deepEqual(await place.statuses(), ['completed']);
      assert.deepEqual(place.effects, ['20']);
    },
  },
  {
    title: 'kill -9 while it waits, a decision, and another process: nothing is asked again',
    hasWorkers: true,
    async run(place) {
      const killed = await place.worker();
      await place.start([20, 30], { inTurn: true });
      await place.approve('c1');
      await place.request('c2');
      await kill(killed);
      await place.approve('c2', { amount: 25 });
      await place.worker();
      assert.deepEqual(await place.statuses(), ['completed', 'completed']);
      assert.deepEqual(place.effects, ['20', '25']);
      assert.equal((await place.requests()).length, 2);
    },
  },
  {
    title: 'kill -9 after the effect: it happens once, and the workflow reads that nobody knows',
    hasWorkers: true,
    async run(place) {
      const killed = await place.worker({ difference: 'kill after the effect' });
      await place.start([20]);
      await place.approve('c1');
      if (killed.signalCode === null) await once(killed, 'exit');
      assert.equal(killed.signalCode, 'SIGKILL');
      // The claim of the killed process is lost after half a minute.
      await place.rewrite('{claim,leaseMs}', 500);
      await place.worker();
      assert.deepEqual(await place.statuses(), ['interrupted']);
      assert.deepEqual(place.effects, ['20']);
    },
  },
  {
    title: 'a schema that was changed since the approval',
    hasWorkers: true,
    async run(place) {
      const killed = await place.worker();
      await place.start([20]);
      await place.request('c1');
      await kill(killed);
      await place.approve('c1');
      await place.worker({ difference: 'schema' });
      assert.deepEqual(await place.statuses(), ['stale']);
      assert.deepEqual(place.effects, []);
    },
  },
  {
    title: 'a tool that was renamed since the approval does not run',
    hasWorkers: true,
    async run(place) {
      const killed = await place.worker();
      await place.start([20]);
      await place.request('c1');
      await kill(killed);
      await place.approve('c1');
      const renamed = await place.worker({ difference: 'name' });
      const { failure } = place.client;
      if (failure === undefined) {
        await assert.rejects(place.result(), isConflict);
        assert.deepEqual(place.effects, []);
        return;
      }
      // The activity names its tool: it is retried until a worker has one of that name.
      const isRetried = async () => /has no tool "refund"/.test(`${await failure(place.id)}`);
      await waitUntil(isRetried, 'the activity did not fail');
      assert.deepEqual(place.effects, []);
      await kill(renamed);
      await place.worker();
      assert.deepEqual(await place.statuses(), ['completed']);
      assert.deepEqual(place.effects, ['20']);
    },
  },
  {
    title: 'stored parameters that were changed do not run',
    hasWorkers: true,
    async run(place) {
      const killed = await place.worker();
      await place.start([20]);
      await place.request('c1');
      await kill(killed);
      await place.approve('c1');
      await place.rewrite('{parameters,amount}', 2_000);
      await place.worker();
      assert.deepEqual(await place.statuses(), ['stale']);
      assert.deepEqual(place.effects, []);
    },
  },
  {
    title: 'a forged message decides nothing',
    async run(place) {
      await place.start([20]);
      const requestId = await place.request('c1');
      for (let round = 0; round < 3; round++) await place.client.forge(place.id, 'c1');
      // The worker is not busy: another of its workflows ends.
      const other = `${place.id}-2`;
      await place.client.start(other, { calls: [{ toolCallId: 'c9', parameters: { amount: 1 } }] });
      await place.approve('c9');
      assert.equal((await place.client.result(other))[0]?.status, 'completed');
      assert.equal((await place.svc.approvals.get(requestId)).status, 'waiting');
      assert.deepEqual(place.effects, ['1']);
      await place.approve('c1');
      assert.deepEqual(await place.statuses(), ['completed']);
    },
  },
  {
    title: 'two calls of one name end the workflow',
    async run(place) {
      const calls = [20, 30].map((amount) => ({ toolCallId: 'c1', parameters: { amount } }));
      await place.client.start(place.id, { calls });
      await assert.rejects(place.result(), isConflict);
      assert.deepEqual(place.effects, []);
    },
  },
  {
    title: 'the signal of a decision continues the workflow, before any time-out',
    impossible: NO_SIGNAL,
    async run(place) {
      await place.start([20]);
      await place.approve('c1');
      assert.deepEqual(await place.statuses(), ['completed']);
      assert.equal(await place.client.checks?.(place.id), 0);
      assert.equal(await place.client.activities?.(place.id), 2, 'one asks, one runs the tool');
    },
  },
  {
    title: 'a signal that is lost: the workflow reads the decision',
    impossible: NO_SIGNAL,
    isSilent: true,
    async run(place) {
      await place.start([20], { checkMs: 500 });
      await place.approve('c1');
      assert.deepEqual(await place.statuses(), ['completed']);
      assert.notEqual(await place.client.checks?.(place.id), 0);
    },
  },
  {
    title: 'a cancelled workflow cancels its request',
    impossible: { dbos: 'it leaves it: the workflow may be resumed' },
    async run(place) {
      await place.start([20]);
      const requestId = await place.request('c1');
      await place.client.cancel(place.id);
      await assert.rejects(place.result());
      assert.equal((await place.svc.approvals.get(requestId)).status, 'cancelled');
      assert.deepEqual(place.effects, []);
    },
  },
  {
    title: 'a cancelled workflow does not run what is approved then, until it is resumed',
    impossible: { temporal: 'it is not resumed' },
    hasWorkers: true,
    async run(place) {
      const worker = await place.worker();
      const noticed = once(worker.stdout as Readable, 'data');
      await place.start([20]);
      await place.request('c1');
      await place.client.cancel(place.id);
      assert.match(String(await noticed), /ended without an outcome/);
      await place.approve('c1');
      assert.deepEqual(place.effects, []);
      await place.client.resume?.(place.id);
      assert.deepEqual(await place.statuses(), ['completed']);
      assert.deepEqual(place.effects, ['20']);
    },
  },
  {
    title: 'a time-out of the workflow that is shorter than the approval: what is approved after it does not run',
    hasWorkers: true,
    async run(place) {
      const worker = await place.worker();
      // The server of Temporal ends a workflow that is late, and no worker notices.
      const noticed = place.client.resume && once(worker.stdout as Readable, 'data');
      await place.start([20], { timeoutMs: 5_000 });
      const requestId = await place.request('c1');
      await assert.rejects(place.result());
      await noticed;
      assert.equal((await place.svc.approvals.get(requestId)).status, 'waiting');
      await place.approve('c1');
      // The worker is not busy: another of its workflows ends.
      const other = `${place.id}-2`;
      await place.client.start(other, { calls: [{ toolCallId: 'c9', parameters: { amount: 1 } }] });
      await place.approve('c9');
      assert.equal((await place.client.result(other))[0]?.status, 'completed');
      assert.deepEqual(place.effects, ['1']);
    },
  },
];

const table = resultsTable(ENGINES, CASES);

const isConflict = (error: Error): boolean => /A different call/.test(`${error.message} ${findCause(error)}`);

/** The message of the first error. */
function findCause(error: Error): string {
  return error.cause instanceof Error ? findCause(error.cause) : error.message;
}

for (const engine of ENGINE_NAMES) {
  for (const one of CASES) {
    const title = `${ENGINES[engine]}: ${one.title}`;
    const reason = one.impossible?.[engine] ?? skipped[engine];
    if (reason !== undefined) test.skip(title, reason);
    else test(title, () => table.record(engine, one.title, () => withPlace(engine, one, one.run)));
  }
}

for (const engine of ENGINE_NAMES) {
  const title = `${ENGINES[engine]}: the program of its page runs as printed`;
  if (skipped[engine] !== undefined) {
    test.skip(title, skipped[engine]);
    continue;
  }
  test(title, async () => {
    const { address } = await shared();
    const page = `docs/how-to/use-${engine}.md`;
    const sources = docsBlocks().filter((block) => block.page === page && block.language === 'ts');
    assert.ok(
      sources
        .map(({ text }) => text.trim())
        .join('\n')
        .split('\n').length < 30,
      'the program is longer',
    );
    const files = sources.map(({ text }, at) => {
      const file = new URL(at === sources.length - 1 ? `program-${engine}.ts` : 'workflows.ts', own);
      const source = text
        .replaceAll(/'@svc\/sdk\/(.+)'/g, "'../../plugins/frameworks/$1.ts'")
        .replaceAll("'@svc/sdk'", "'../../config/sdk/index.ts'")
        .replace('Connection.connect()', `Connection.connect({ address: '${address}' })`)
        .replace(
          'Worker.create({',
          `Worker.create({ connection: await NativeConnection.connect({ address: '${address}' }),`,
        )
        .replace('{ Worker }', '{ NativeConnection, Worker }');
      writeFileSync(file, source);
      return file;
    });
    try {
      const args = [...nodeFlags, files.at(-1)?.pathname ?? ''];
      const env = { ...process.env, DATABASE_URL: (await database()).url };
      const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 120_000 });
      assert.equal(stdout.trim().split('\n').at(-1), 'completed Paid 15.');
    } finally {
      for (const file of files) rmSync(file);
    }
  });
}

const typesTitle = 'the steps take the real modules of each engine';
if (missing !== undefined) test.skip(typesTitle, missing);
else
  test(typesTitle, async () => {
    const tsc = new URL('../node_modules/typescript/bin/tsc', import.meta.url).pathname;
    const args = [tsc, '-p', new URL('types', own).pathname, '--pretty', 'false'];
    await promisify(execFile)(process.execPath, args).catch(({ stdout }: { stdout: string }) => assert.fail(stdout));
  });

test('the table of the docs has the result of every case', () => {
  table.compare();
});

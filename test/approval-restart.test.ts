import * as assert from 'node:assert/strict';
import pg from 'pg';
import { Admission } from '../core/approval/admission.ts';
import { DETACH } from '../core/approval/call.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { AgentHost, agentDefinition } from './kit/agent-host.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';
import {
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  refund,
  startCall,
} from './suites/approval-setup.ts';
import { waitUntil } from './suites/wait-until.ts';

/** The texts that `work` sends to PostgreSQL, which are its round trips, and the statements in them. */
async function sentBy(work: () => Promise<unknown>): Promise<{ readonly texts: number; readonly statements: number }> {
  const { query } = pg.Client.prototype;
  let [texts, statements] = [0, 0];
  pg.Client.prototype.query = function (this: pg.Client, ...parameters: Parameters<typeof query>) {
    texts += 1;
    statements += String(parameters[0]).split(';\n').length;
    return query.apply(this, parameters);
  } as typeof query;
  try {
    await work();
  } finally {
    pg.Client.prototype.query = query;
  }
  return { texts, statements };
}

const missing = await unavailable();
const declare = (name: string, body: () => Promise<void>): void => {
  if (missing === undefined) test(name, body);
  else test.skip(name, missing);
};

declare(
  'after a restart, calls find their requests at the cost of making them, and approved ones run first',
  async () => {
    const { url, drop } = await freshDatabase();
    const calls = Array.from({ length: 600 }, () => refund());
    const bank = new Bank();
    const tools = compileTestTools(bank.tool());
    const before = await openApprovalProcess(await postgresql.connect(url, {}));
    const detach = new AbortController();
    const gateBefore = createGate(before, tools);
    let requests: { requestId: string; executionId: string }[] = [];
    const making = await sentBy(async () => {
      const started = await Promise.all(calls.map((call) => startCall(gateBefore, call, { signal: detach.signal })));
      requests = started.map(({ request }) => request);
    });
    const [approved, ...others] = requests;
    assert.ok(approved);
    await approve(before, approved);
    detach.abort(DETACH);
    await before.service.close();
    const after = await openApprovalProcess(await postgresql.connect(url, {}));
    try {
      const gate = createGate(after, tools);
      let attached = 0;
      let attachedAtRun = -1;
      const outcomes: Promise<unknown>[] = [];
      const attaching = await sentBy(async () => {
        const onRequested = () => {
          attached += 1;
        };
        for (const call of calls) outcomes.push(gate.call(call, { onRequested }));
        // Those that still wait when an assertion fails.
        Promise.all(outcomes).catch(() => undefined);
        void outcomes[0]?.then(() => {
          attachedAtRun = attached;
        });
        await waitUntil(() => attached === others.length && attachedAtRun >= 0, 'not all calls found their requests');
      });
      assert.equal(bank.paid.length, 1);
      const sent = `${JSON.stringify(attaching)} to find them, ${JSON.stringify(making)} to make them`;
      assert.ok(attaching.statements <= 2 * making.statements, sent);
      assert.ok(attaching.texts <= calls.length / 4, sent);
      assert.ok(attachedAtRun < others.length / 2, `${attachedAtRun} calls came before the approved one`);
      await Promise.all(others.map((request) => approve(after, request)));
      await Promise.all(outcomes);
      assert.equal(bank.paid.length, calls.length);
    } finally {
      await after.service.close();
      await drop();
    }
  },
);

declare('the executions of a dead process are taken over together', async () => {
  const { url, drop } = await freshDatabase();
  const before = await AgentHost.open(await postgresql.connect(url, {}));
  const definition = () =>
    agentDefinition([{ calls: [{ tool: 'pay', parameters: {} }] }, { text: 'Done.' }], {
      tools: [{ tag: 'pay', requiresConfirmation: true, parameters: {}, handler: () => 'paid' }],
      humanInLoop: { enabled: true },
    });
  const agent = before.define(definition());
  const runs = Array.from({ length: 300 }, () => before.run(agent));
  const requests = await Promise.all(
    runs.map(async (run) => {
      for await (const event of run) if (event.type === 'approval_requested') return event.request;
      throw new Error('the run ended without a request');
    }),
  );
  await before.close();
  const after = await AgentHost.open(await postgresql.connect(url, {}));
  try {
    after.define(definition());
    let recovered: Awaited<ReturnType<typeof after.executions.recover>> = [];
    const { texts } = await sentBy(async () => {
      recovered = await after.executions.recover();
    });
    assert.equal(recovered.length, runs.length);
    assert.ok(texts < runs.length / 2, `${texts} texts for ${runs.length} executions`);
    for (const request of requests) await after.decide(request);
    const outcomes = await Promise.all(recovered.map(({ result }) => result));
    assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['completed']));
  } finally {
    await after.close();
    await drop();
  }
});

test('calls are admitted in order, so many at a time; none waits for another that the store does not answer', async () => {
  const admission = new Admission();
  const started: number[] = [];
  const release: (() => void)[] = [];
  const ended = Array.from({ length: 300 }, (_, at) =>
    admission.run(async () => {
      started.push(at);
      await new Promise<void>((resolve) => release.push(resolve));
      return at;
    }),
  );
  await new Promise(setImmediate);
  const first = started.length;
  assert.ok(first > 0 && first < 300, `${first} were admitted`);
  for (const end of release.splice(0, 10)) end();
  await waitUntil(() => started.length === first + 10, 'none was admitted when others ended');
  assert.deepEqual(
    started,
    [...started].sort((one, other) => one - other),
  );
  // Nothing ends from here on.
  await waitUntil(() => started.length === 300, 'calls wait for one that does not end');
  for (const end of release) end();
  assert.deepEqual(
    await Promise.all(ended),
    Array.from({ length: 300 }, (_, at) => at),
  );
  await assert.rejects(
    admission.run(() => Promise.reject(new Error('refused'))),
    /refused/,
  );
  assert.equal(await admission.run(async () => 'admitted'), 'admitted');
});

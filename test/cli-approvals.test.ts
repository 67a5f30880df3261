import * as assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import amqp from 'amqplib';
import pg from 'pg';
import { startCli } from './kit/cli.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { LONG, type Project, project } from './kit/project.ts';
import { terminal } from './kit/terminal.ts';
import { test as declare } from './kit/test.ts';
import { find } from './servers/find.ts';
import { CALLBACK_KEY, type GateUnderTest, WEBHOOK_SECRET, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver } from './suites/webhook-receiver.ts';

const missing = await unavailable();
const STORE = { store: { database: 'main' } };

/** Declares a test with a gate in this process. The command line runs in another process, on the same database. */
function test(
  name: string,
  body: (gate: GateUnderTest, shop: Project) => Promise<void>,
  humanInLoop: object = {},
): void {
  if (missing !== undefined) {
    declare.skip(name, missing);
    return;
  }
  declare(
    name,
    async () => {
      const { url, drop } = await freshDatabase();
      try {
        const config = { databases: { main: { dialect: 'postgresql', url } } } as const;
        const shop = project({ main: url }, { approvals: { ...STORE, callbackKey: CALLBACK_KEY } });
        await withGate({ config, approvals: STORE, humanInLoop }, (gate) => body(gate, shop));
      } finally {
        await drop();
      }
    },
    LONG,
  );
}

test('list, show and approve with a lower amount: the tool runs with it', async ({ refund, refunds }, shop) => {
  const { request, outcome } = await refund();
  const listed = await shop.svc('approvals', 'list');
  assert.equal(listed.status, 0, listed.stderr);
  assert.match(listed.stdout, new RegExp(`^${request.requestId}  payouts → refund  (\\d+ min )?\\d+ (s|min) left`));
  assert.match(listed.stdout, /(?=.*orderId="1234")(?=.*amount=20)/);
  const shown = JSON.parse((await shop.svc('approvals', 'show', request.requestId, '--json')).stdout);
  assert.equal(shown.request.status, 'waiting');
  assert.deepEqual(shown.request.parameters, { orderId: '1234', amount: 20 });
  const approved = await shop.svc('approvals', 'approve', request.requestId, '--set', 'amount=15', '--json');
  assert.equal(approved.status, 0, approved.stderr);
  assert.equal(JSON.parse(approved.stdout).status, 'approved');
  assert.equal((await outcome).status, 'completed');
  assert.equal((refunds[0] as { amount: unknown }).amount, 15);
  const after = await shop.svc('approvals', 'show', request.requestId);
  assert.match(after.stdout, /approved by command line, \S+@\S+, run: done/);
});

test('later, show and list contain what the tool ran with, and why', async ({ refund, svc }, shop) => {
  const { request, outcome } = await refund();
  await shop.svc('approvals', 'approve', request.requestId, '--set', 'amount=15', '--reason', 'half\u202e\nis fair');
  await outcome;
  const hidden = await refund({ orderId: '2', amount: 3, card: '4111' });
  const { reviewToken } = await svc.approvals.get(hidden.request.requestId, { reveal: true });
  const { executionId, requestId: hiddenId } = hidden.request;
  const payload = { requestId: hiddenId, modifiedParams: { card: '4222' } };
  await svc.approvals.signal({ executionId, signal: 'approve', payload }, { reviewToken: reviewToken ?? '' });
  await hidden.outcome;
  const { requestId } = request;
  for (const args of [
    ['show', requestId],
    ['list', '--status', 'approved'],
  ]) {
    const { stdout } = await shop.svc('approvals', ...args);
    assert.match(stdout, /^ *changed {4}amount: 20 → 15$/m, stdout);
    assert.match(stdout, /^ *reason {5}half\\u\{202e\}\\nis fair$/m, stdout);
    assert.ok(!stdout.includes('4222'));
  }
  assert.match((await shop.svc('approvals', 'list', '--status', 'approved')).stdout, /changed {4}card: .*masked/);
  assert.match((await shop.svc('approvals', 'list')).stderr, /^No requests are waiting/);
});

test('a decision waits for a lock on its table', async ({ refund }, shop) => {
  const { request, outcome } = await refund();
  const { url } = JSON.parse(shop.read('svc.config.json')).databases.main;
  const locking = new pg.Client({ connectionString: url.dev });
  await locking.connect();
  try {
    await locking.query('BEGIN; LOCK TABLE _svc_approvals IN SHARE MODE');
    const deciding = shop.svc('approvals', 'approve', request.requestId);
    const attempts = new Set<string>();
    await waitUntil(async () => {
      await locking.query('SELECT pg_stat_clear_snapshot()');
      const { rows } = await locking.query(
        "SELECT query_start::text AS at FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      for (const { at } of rows) attempts.add(at);
      return attempts.size > 1;
    }, 'the decision is not retried');
    await locking.query('COMMIT');
    const { status, stderr } = await deciding;
    assert.equal(status, 0, stderr);
    assert.equal((await outcome).status, 'completed');
  } finally {
    await locking.end();
  }
});

test('reject passes the reason to the agent', async ({ refund, refunds }, shop) => {
  const { request, outcome } = await refund();
  const rejected = await shop.svc('approvals', 'reject', request.requestId, '--reason', 'paid yesterday');
  assert.equal(rejected.status, 0, rejected.stderr);
  const ended = (await outcome) as { status: string; result: { reason: string } };
  assert.equal(ended.result.reason, 'paid yesterday');
  assert.deepEqual(refunds, []);
  const again = await shop.svc('approvals', 'approve', request.requestId);
  assert.equal(again.status, 2);
  assert.match(again.stderr, /already rejected.*\(approval_decided\)/);
});

test('invalid arguments are rejected before anything is decided', async ({ refund, svc }, shop) => {
  const { request } = await refund();
  const invalid: [string[], RegExp][] = [
    [['approve', request.requestId, '--set', 'amout=15'], /Did you mean "amount"/],
    [['approve', request.requestId, '--set', 'amount=much'], /"amount" must be a number/],
    [['approve', request.requestId, '--set', 'amount=-3'], /approval_parameters_invalid/],
    [
      ['approve', request.requestId, '--set', 'amount=9007199254740993'],
      /"amount" would not be what you wrote\. The number 9007199254740993 .* 9007199254740992/,
    ],
    [['approve', request.requestId, '--set', 'amount=1\ufffd'], /not UTF-8/],
    [['approve', request.requestId, '--set', 'amount'], /<parameter>=<value>/],
    [['approve', 'apr_nothing'], /approval_unknown/],
    [['approve'], /The id of the request is missing/],
    [['list', '--status', 'open'], /waiting, approved, rejected, cancelled/],
    [['prune', '--older-than', 'long'], /12h, 90d or 4w/],
    [['prune', '--older-than', '1h'], /--yes/],
  ];
  for (const [args, message] of invalid) {
    const { status, stderr } = await shop.svc('approvals', ...args);
    assert.equal(status, 2, args.join(' '));
    assert.match(stderr, message);
  }
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

test('a string parameter stays a string, even if it looks like a number', async ({ refund, refunds }, shop) => {
  const { request, outcome } = await refund();
  await shop.svc('approvals', 'approve', request.requestId, '--set', 'orderId=0042');
  await outcome;
  assert.equal((refunds[0] as { orderId: unknown }).orderId, '0042');
});

test('hostile text is shown escaped and whole', async ({ refund }, shop) => {
  const nasty = `\u001b[2J\u001b]0;owned\u0007\u202eevil\u200b<b>${'x'.repeat(100_000)}END`;
  const { request } = await refund({ orderId: nasty, amount: 1 });
  const list = await shop.svc('approvals', 'list');
  const show = await shop.svc('approvals', 'show', request.requestId);
  for (const { stdout } of [list, show]) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test asserts their absence
    assert.doesNotMatch(stdout, /[\u001b\u0007\u202e\u200b]/);
    assert.match(stdout, /u(001b|\{1b\})/);
  }
  assert.ok(list.stdout.length < 1_000 && /full request: svc approvals show/.test(list.stdout));
  assert.ok(show.stdout.includes('END'));
});

test('hostile text is escaped in JSON too, with the same value', async ({ refund }, shop) => {
  const nasty = 'a\u009b31mb\u202e\u200b\u{e0041}\ud83d\ude00\ufe0f\nc';
  const { request } = await refund({ orderId: nasty, amount: 1 });
  const list = await shop.svc('approvals', 'list', '--json');
  const show = await shop.svc('approvals', 'show', request.requestId, '--json');
  const audit = await shop.svc('approvals', 'export');
  for (const { stdout } of [list, show, audit]) {
    for (const hidden of ['\u009b', '\u202e', '\u200b', '\ufe0f', '\u{e0041}']) assert.ok(!stdout.includes(hidden));
  }
  assert.equal(JSON.parse(list.stdout).records[0].parameters.orderId, nasty);
  assert.equal(JSON.parse(show.stdout).request.parameters.orderId, nasty);
  assert.equal(JSON.parse(audit.stdout.split('\n')[0] ?? '').details.parameters.orderId, nasty);
});

test('a decision on sensitive parameters requires the review token', async ({ refund }, shop) => {
  const { request, outcome } = await refund({ orderId: '1', amount: 1, card: '4111-secret' });
  const { requestId } = request;
  for (const args of [['list'], ['show', requestId], ['list', '--json'], ['export']]) {
    assert.ok(!(await shop.svc('approvals', ...args)).stdout.includes('4111-secret'), args.join(' '));
  }
  const blind = await shop.svc('approvals', 'approve', requestId);
  assert.match(blind.stderr, /approval_unseen[\s\S]*svc approvals show \S+ --reveal --json/);
  const seen = JSON.parse((await shop.svc('approvals', 'show', requestId, '--reveal', '--json')).stdout).request;
  assert.equal(seen.parameters.card, '4111-secret');
  assert.equal((await shop.svc('approvals', 'approve', requestId, '--review-token', seen.reviewToken)).status, 0);
  assert.equal((await outcome).status, 'completed');
});

test('a terminal selects a request, shows it whole, and approves it after a confirmation', async ({
  refund,
  refunds,
}, shop) => {
  const first = await refund({ orderId: 'A', amount: 1 });
  await refund({ orderId: 'B', amount: 2, card: '4111' });
  const deciding = terminal(['approvals', 'approve'], { cwd: shop.root });
  await deciding.until('Which request?');
  deciding.type('\u001b[B');
  deciding.type('\r');
  await deciding.until('Approve?');
  assert.ok(deciding.shown().includes('"orderId": "B"') && deciding.shown().includes('4111'));
  deciding.type('y\r');
  assert.equal(await deciding.ended, 0, deciding.shown());
  await waitUntil(() => refunds.length === 1, 'the tool did not run');
  assert.equal((refunds[0] as { orderId: string }).orderId, 'B');
  const declining = terminal(['approvals', 'approve', first.request.requestId], { cwd: shop.root });
  await declining.until('Approve?');
  declining.type('you must be joking\r');
  await declining.until('Answer y or n.');
  declining.type(`${'\u007f'.repeat(18)}n\r`);
  assert.equal(await declining.ended, 3);
  assert.equal(refunds.length, 1);
});

test('the terminal list distinguishes requests, and reject asks for the reason and a confirmation', async ({
  refund,
  svc,
}, shop) => {
  const first = await refund({ orderId: 'A', amount: 1 });
  const second = await refund({ orderId: 'B', amount: 2 });
  const deciding = terminal(['approvals', 'reject'], { cwd: shop.root });
  await deciding.until(/orderId="A".*orderId="B"/s);
  deciding.type('\u001b[B');
  deciding.type('\r');
  await deciding.until('Reason for the agent:');
  deciding.type('paid yesterday\r');
  await deciding.until('Reject the request?');
  deciding.type('y\r');
  assert.equal(await deciding.ended, 0, deciding.shown());
  const { status, decisionReason } = await svc.approvals.get(second.request.requestId);
  assert.deepEqual([status, decisionReason], ['rejected', 'paid yesterday']);
  const keeping = terminal(['approvals', 'reject', first.request.requestId, '--reason', 'no'], { cwd: shop.root });
  await keeping.until('Reject the request?');
  keeping.type('\r');
  assert.equal(await keeping.ended, 3);
  assert.equal((await svc.approvals.get(first.request.requestId)).status, 'waiting');
  const confirmed = terminal(['approvals', 'reject', first.request.requestId, '--yes'], { cwd: shop.root });
  assert.equal(await confirmed.ended, 0, confirmed.shown());
});

test('watch prints new requests and their decisions', async ({ refund }, shop) => {
  const watching = terminal(['approvals', 'watch'], { cwd: shop.root });
  const { request } = await refund();
  await watching.until(request.requestId);
  await watching.until('payouts → refund');
  await shop.svc('approvals', 'reject', request.requestId, '--reason', 'paid yesterday');
  await watching.until('rejected by command line');
  await watching.until('paid yesterday');
  watching.type('\u0003');
  assert.equal(await watching.ended, 0);
});

test('watch also prints requests created and decided between two polls, each once', async ({ refund, svc }, shop) => {
  const before = await refund();
  const approve = async ({ request: { executionId, requestId }, outcome }: typeof before) => {
    await svc.approvals.signal({ executionId, signal: 'approve', payload: { requestId } }, { actor: 'ann' });
    await outcome;
  };
  await approve(before);
  const { request: first } = await refund();
  const watching = terminal(['approvals', 'watch'], { cwd: shop.root });
  await watching.until(first.requestId);
  const quick: string[] = [];
  for (let made = 0; made < 3; made++) {
    const one = await refund();
    quick.push(one.request.requestId);
    await approve(one);
  }
  for (const requestId of quick) await watching.until(`${requestId}  approved by ann`);
  const { request: last } = await refund();
  await watching.until(last.requestId);
  watching.type('\u0003');
  assert.equal(await watching.ended, 0);
  const times = (text: string) => watching.shown().split(text).length - 1;
  for (const requestId of quick) {
    assert.deepEqual([times(`${requestId}  payouts → refund`), times(`${requestId}  approved by`)], [1, 1]);
  }
  for (const { requestId } of [first, last]) assert.equal(times(requestId), 1);
  assert.equal(times(before.request.requestId), 0);
});

test('export prints the audit as JSON Lines, prune removes closed requests', async ({ refund }, shop) => {
  const { request, outcome } = await refund();
  await shop.svc('approvals', 'approve', request.requestId, '--set', 'amount=15', '--reason', 'fair');
  await outcome;
  await refund();
  const lines = (await shop.svc('approvals', 'export')).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const types = lines.filter(({ requestId }) => requestId === request.requestId).map(({ type }) => type);
  assert.deepEqual(types, ['requested', 'approved', 'claimed', 'finished']);
  const decision = lines.find(({ type }) => type === 'approved');
  assert.deepEqual(decision.details, { reason: 'fair', modifiedParams: { amount: 15 } });
  const pruned = await shop.svc('approvals', 'prune', '--older-than', '0d', '--yes', '--json');
  assert.deepEqual(
    JSON.parse(pruned.stdout),
    { ...JSON.parse(pruned.stdout), removed: 1, executions: 0 },
    pruned.stderr,
  );
  assert.equal(JSON.parse((await shop.svc('approvals', 'list', '--json')).stdout).records.length, 1);
  assert.match((await shop.svc('approvals', 'list', '--status', 'rejected')).stderr, /^No requests found/);
});

declare('without a store nobody else can see what waits, and the command says so', async () => {
  const { status, stderr } = await project({}).svc('approvals', 'list');
  assert.equal(status, 2);
  assert.match(stderr, /approvals: \{ store: \{ database/);
});

const DEAD_LETTERS = 'serve names the queue that it consumes, and warns about each message that becomes a dead letter';
const rabbitmq = await find('rabbitmq');
if (missing !== undefined) declare.skip(DEAD_LETTERS, missing);
else if ('missing' in rabbitmq) declare.skip(DEAD_LETTERS, rabbitmq.missing);
else
  declare(
    DEAD_LETTERS,
    async () => {
      const { url, drop } = await freshDatabase();
      const product = `p${randomUUID()}`;
      const queue = `svc.approvals.decisions.${product}.dev`;
      const approvals = { ...STORE, callbackKey: CALLBACK_KEY, decisions: { broker: 'bus' } };
      const brokers = { bus: { type: 'rabbitmq', url: rabbitmq.url } };
      const shop = project({ main: url }, { product, approvals, brokers });
      const serving = startCli(['approvals', 'serve', '--port', '0'], shop.root);
      const connection = await amqp.connect(rabbitmq.url);
      try {
        await serving.untilStderr(`Consuming decisions from the queue ${queue} of the broker "bus"`);
        const channel = await connection.createChannel();
        await channel.assertQueue(queue, {
          durable: true,
          deadLetterExchange: 'svc.dead',
          deadLetterRoutingKey: queue,
        });
        channel.sendToQueue(queue, Buffer.from('{ "note": "a text of the sender" }'));
        await serving.untilStderr(`A message in ${queue} was not accepted as a decision (decision_invalid)`);
        assert.doesNotMatch(serving.stderr(), /a text of the sender|"note"/);
        serving.child.kill('SIGTERM');
        assert.equal((await serving.ended).status, 0);
        for (const name of [queue, `${queue}.dead`]) await channel.deleteQueue(name);
      } finally {
        serving.child.kill('SIGKILL');
        await connection.close();
        await drop();
      }
    },
    LONG,
  );

if (missing !== undefined) declare.skip('serve answers the callback over HTTP, from another process', missing);
else
  declare(
    'serve handles the callback over HTTP in another process, and stops on a signal',
    async () => {
      const { url, drop } = await freshDatabase();
      const to = await startWebhookReceiver(200);
      const shop = project({ main: url }, { approvals: { ...STORE, callbackKey: CALLBACK_KEY } });
      const serving = startCli(['approvals', 'serve', '--port', '0'], shop.root);
      try {
        await serving.untilStderr('Listening on');
        const base = /Listening on (\S+)/.exec(serving.stderr())?.[1] ?? '';
        assert.equal((await fetch(`${base}/healthz`)).status, 200);
        assert.equal((await fetch(`${base}/readyz`)).status, 200);
        assert.equal((await fetch(`${base}/elsewhere`)).status, 404);
        const approvals = {
          ...STORE,
          callbackBase: `${base}/any/prefix`,
          webhook: { secrets: { [to.url]: [WEBHOOK_SECRET] } },
        };
        const config = { databases: { main: { dialect: 'postgresql', url } } } as const;
        await withGate({ config, approvals, humanInLoop: { approvalWebhook: to.url } }, async ({ refund, refunds }) => {
          const { outcome } = await refund();
          await waitUntil(() => to.received.length === 1, 'nothing came');
          const { callbackUrl, requestId } = JSON.parse(to.received[0]?.body ?? '');
          await waitUntil(
            async () => /delivered {2}\(webhook\)/.test((await shop.svc('approvals', 'show', requestId)).stdout),
            'the delivery is not shown',
          );
          const shown = await fetch(callbackUrl);
          assert.match(await shown.text(), /Show the request/);
          const decided = await fetch(callbackUrl, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ approved: true, modifiedParams: { amount: 15 } }),
          });
          assert.equal(decided.status, 200);
          assert.equal((await outcome).status, 'completed');
          assert.equal((refunds[0] as { amount: number }).amount, 15);
        });
        serving.child.kill('SIGTERM');
        assert.equal((await serving.ended).status, 0);
        assert.match(serving.stderr(), /SIGTERM: finishing what was received, then stopping; repeat/);
      } finally {
        serving.child.kill('SIGKILL');
        to.close();
        await drop();
      }
    },
    LONG,
  );

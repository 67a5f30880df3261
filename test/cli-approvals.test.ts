import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify, stripVTControlCharacters } from 'node:util';
import amqp from 'amqplib';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import { shellQuote } from '../core/errors.ts';
import { cleanEnv, command, startCli } from './kit/cli.ts';
import { docsBlocks } from './kit/docs-blocks.ts';
import { testGateAndProject } from './kit/gate-and-project.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { LONG, type Project, project } from './kit/project.ts';
import { terminal } from './kit/terminal.ts';
import { test as declare } from './kit/test.ts';
import { find } from './servers/find.ts';
import { freePort } from './suites/free-port.ts';
import { CALLBACK_KEY, type GateUnderTest, WEBHOOK_SECRET, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver } from './suites/webhook-receiver.ts';

const missing = await unavailable();
const STORE = { store: { database: 'main' } };

function test(
  name: string,
  body: (gate: GateUnderTest, shop: Project, url: string) => Promise<void>,
  humanInLoop: object = {},
): void {
  testGateAndProject(name, ({ gate, shop, url }) => body(gate, shop, url), { humanInLoop });
}

/** Approves as a script does: with the token of what `show` printed. */
async function approve(shop: Project, requestId: string, ...flags: string[]) {
  const { stdout } = await shop.svc('approvals', 'show', requestId, '--json');
  const { reviewToken } = JSON.parse(stdout).request;
  return shop.svc('approvals', 'approve', requestId, '--review-token', reviewToken, '--yes', ...flags);
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
  const approved = await approve(shop, request.requestId, '--set', 'amount=15', '--json');
  assert.equal(approved.status, 0, approved.stderr);
  assert.equal(JSON.parse(approved.stdout).status, 'approved');
  assert.equal((await outcome).status, 'completed');
  assert.equal((refunds[0] as { amount: unknown }).amount, 15);
  const after = await shop.svc('approvals', 'show', request.requestId);
  assert.match(after.stdout, /approved by command line, \S+@\S+, run: done/);
});

test('later, show and list contain what the tool ran with, and why', async ({ refund, svc }, shop) => {
  const { request, outcome } = await refund();
  await approve(shop, request.requestId, '--set', 'amount=15', '--reason', 'half\u202e\nis fair');
  await outcome;
  const hidden = await refund({ orderId: '2', amount: 3, card: '4111' });
  const { reviewToken } = await svc.approvals.get(hidden.request.requestId, { reveal: true });
  const { executionId, requestId: hiddenId } = hidden.request;
  const payload = { requestId: hiddenId, modifiedParams: { card: 'card-4222' } };
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
    assert.ok(!stdout.includes('card-4222'));
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
    const deciding = approve(shop, request.requestId);
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
  const negative = await approve(shop, request.requestId, '--set', 'amount=-3');
  assert.equal(negative.status, 2);
  assert.match(negative.stderr, /approval_parameters_invalid/);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

test('a string parameter stays a string, even if it looks like a number', async ({ refund, refunds }, shop) => {
  const { request, outcome } = await refund();
  await approve(shop, request.requestId, '--set', 'orderId=0042');
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
  const masked = JSON.parse((await shop.svc('approvals', 'show', requestId, '--json')).stdout);
  assert.ok(!('reviewToken' in masked.request), 'the token of a request whose parameters are masked');
  for (const args of [
    ['approve', requestId, '--yes'],
    ['reject', requestId],
  ]) {
    const blind = await shop.svc('approvals', ...args);
    assert.equal(blind.status, 2);
    assert.match(blind.stderr, /approval_unseen[\s\S]*svc approvals show \S+ --reveal --json/);
  }
  const seen = JSON.parse((await shop.svc('approvals', 'show', requestId, '--reveal', '--json')).stdout).request;
  assert.equal(seen.parameters.card, '4111-secret');
  const revealed = seen.events.at(-1);
  assert.equal(revealed.type, 'revealed');
  assert.match(revealed.by, /^command line, /);
  const approved = await shop.svc('approvals', 'approve', requestId, '--yes', '--review-token', seen.reviewToken);
  assert.equal(approved.status, 0, approved.stderr);
  assert.equal((await outcome).status, 'completed');
});

test('without a terminal, approving needs --yes and the review token of what was shown', async ({
  refund,
  svc,
}, shop) => {
  const config = JSON.parse(shop.read('svc.config.json'));
  for (const isProtected of [false, true]) {
    shop.write('svc.config.json', { ...config, environments: { dev: { protected: isProtected } } });
    const { request, outcome } = await refund();
    const other = await refund({ orderId: '2', amount: 2 });
    const { requestId } = request;
    const tokenOf = async (id: string): Promise<string> =>
      JSON.parse((await shop.svc('approvals', 'show', id, '--json')).stdout).request.reviewToken;
    const [token, otherToken] = [await tokenOf(requestId), await tokenOf(other.request.requestId)];
    const refused: [flags: string[], code: string, missing: RegExp][] = [
      [[], 'approval_unseen', /needs --yes and --review-token\./],
      [['--yes'], 'approval_unseen', /needs --review-token\./],
      [['--review-token', token], 'confirmation_required', /needs --yes\./],
      [['--yes', '--review-token', 'guess'], 'approval_unseen', /review token/],
      [['--yes', '--review-token', otherToken], 'approval_unseen', /review token/],
      [['--yes', '--review-token', token.slice(0, 12)], 'approval_unseen', /review token/],
    ];
    for (const [flags, code, message] of refused) {
      const { status, stdout } = await shop.svc('approvals', 'approve', requestId, ...flags, '--json');
      const error = JSON.parse(stdout);
      assert.deepEqual([status, error.code, error.ok], [2, code, false], stdout);
      assert.match(error.message, message);
      assert.equal(error.state, 'The request is still waiting.');
      assert.ok(!stdout.includes(token), 'the error hands out the token');
    }
    assert.equal((await svc.approvals.get(requestId)).status, 'waiting');
    const flags = ['--set', 'amount=15', '--reason', 'half is fair', '--env', 'dev'];
    const { nextActions }: { nextActions: [string, string] } = JSON.parse(
      (await shop.svc('approvals', 'approve', requestId, ...flags, '--json')).stdout,
    );
    assert.deepEqual(nextActions, [
      `svc approvals show --env dev ${requestId} --json    shows it, with its request.reviewToken`,
      `svc approvals approve --env dev ${requestId} --set amount=15 --reason 'half is fair' --yes --review-token <reviewToken>`,
    ]);
    const run = (command: string) =>
      shop.svc(...[...command.matchAll(/'([^']*)'|\S+/g)].slice(1).map(([all, quoted]) => quoted ?? all));
    const shown = await run(nextActions[0].replace(/ {2}.*/, ''));
    const approved = await run(nextActions[1].replace('<reviewToken>', JSON.parse(shown.stdout).request.reviewToken));
    assert.equal(approved.status, 0, approved.stderr);
    assert.equal((await outcome).status, 'completed');
    const { modifiedParams, decisionReason } = await svc.approvals.get(requestId);
    assert.deepEqual([modifiedParams, decisionReason], [{ amount: 15 }, 'half is fair']);
  }
});

test('the script of the documentation approves what it showed', async ({ refund }, shop) => {
  const { request, outcome } = await refund();
  const block = docsBlocks().find(
    ({ page, language, text }) =>
      page === 'docs/reference/approvals.md' && language === 'sh' && text.includes('--review-token'),
  );
  assert.ok(block);
  const script = `set -e\nsvc() { ${command.map(shellQuote).join(' ')} "$@"; }\n${block.text}`;
  const options = { cwd: shop.root, env: cleanEnv({ ID: request.requestId }) };
  const { stdout } = await promisify(execFile)('sh', ['-c', script], options);
  assert.match(stdout, /is approved/);
  assert.equal((await outcome).status, 'completed');
});

test('show has the words of the model on one line, with hidden characters written out', async ({ gate, svc }, shop) => {
  const modelText = 'It arrived broken.\ndigest     c2.forged\u202e';
  const call = { tool: 'refund', parameters: { orderId: '7', amount: 5 }, executionId: 'one', toolCallId: '1' };
  await gate.run({ ...call, modelText }, { waitMs: 0 });
  const { records } = await svc.approvals.list();
  const requestId = records[0]?.requestId ?? '';
  const { stdout } = await shop.svc('approvals', 'show', requestId);
  assert.match(stdout, /^model said It arrived broken\.\\ndigest\\u\{20×5\}c2\.forged\\u\{202e\}$/m);
  const shown = JSON.parse((await shop.svc('approvals', 'show', requestId, '--json')).stdout);
  assert.equal(shown.request.modelText, modelText);
  await shop.svc('approvals', 'reject', requestId);
});

test('show prints the command that approves what it showed', async ({ refund }, shop) => {
  const { request, outcome } = await refund();
  const { stderr } = await shop.svc('approvals', 'show', request.requestId);
  const [, approval = ''] = /^next {2}svc (approvals approve .+)$/m.exec(stderr) ?? [];
  assert.equal((await shop.svc(...approval.split(' '), '--yes')).status, 0, stderr);
  assert.equal((await outcome).status, 'completed');
  assert.ok(!(await shop.svc('approvals', 'show', request.requestId)).stderr.includes('next'));
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
  await deciding.until(/Approve refund for payouts in shop, dev \(digest c2\.[\w-]{8}\)\?/);
  assert.ok(deciding.shown().includes('"orderId": "B"') && deciding.shown().includes('4111'));
  deciding.type('y\r');
  assert.equal(await deciding.ended, 0, deciding.shown());
  await waitUntil(() => refunds.length === 1, 'the tool did not run');
  assert.equal((refunds[0] as { orderId: string }).orderId, 'B');
  const declining = terminal(['approvals', 'approve', first.request.requestId], { cwd: shop.root });
  await declining.until('Approve refund');
  declining.type('you must be joking\r');
  await declining.until('Answer y or n.');
  declining.type(`${'\u007f'.repeat(18)}n\r`);
  assert.equal(await declining.ended, 3);
  assert.equal(refunds.length, 1);
});

test('what was typed before the question is no answer', async ({ refund, svc }, shop) => {
  const { request } = await refund();
  const deciding = terminal(['approvals', 'approve', request.requestId], { cwd: shop.root });
  deciding.type('y\r');
  await deciding.until('(y/N)');
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
  deciding.type('n\r');
  assert.equal(await deciding.ended, 3, deciding.shown());
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
});

test('a request with more lines than a terminal keeps is approved only with its review token', async ({
  refund,
  svc,
}, shop) => {
  const { request, outcome } = await refund({ orderId: 'lamp '.repeat(16_000), amount: 9999, card: '4111' });
  const deciding = terminal(['approvals', 'approve', request.requestId], {
    ...{ cwd: shop.root, cols: 80, staysOpen: true },
  });
  await deciding.until('--reveal --json');
  deciding.type('\r');
  assert.equal(await deciding.ended, 2);
  const shown = stripVTControlCharacters(deciding.shown()).replace(/\s+/g, ' ');
  assert.match(shown, /The request has 1,?\d{3} lines, of which a terminal shows 1,?000/);
  assert.ok(shown.includes(`svc approvals show ${request.requestId} --reveal --json`), shown);
  assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
  const { reviewToken } = await svc.approvals.get(request.requestId, { reveal: true });
  const flags = ['--yes', '--review-token', reviewToken ?? ''];
  const approving = terminal(['approvals', 'approve', request.requestId, ...flags], { cwd: shop.root, cols: 80 });
  assert.equal(await approving.ended, 0, approving.shown());
  assert.equal((await outcome).status, 'completed');
});

test('a terminal marks what a model laid out for its width, and the question names what it is about', async ({
  refund,
  svc,
}, shop) => {
  const cols = 80;
  const spaces = ' '.repeat(cols);
  const orderId = `paid${spaces}\u02baamount\u02ba: 5, p\u0430ypal.com e${'\u0301'.repeat(300)} ${'lamp '.repeat(2_000)}`;
  const first = await refund({ orderId, amount: 9999 });
  const { requestId } = first.request;
  const { digest } = await svc.approvals.get(requestId);
  const question = `refund for payouts in shop, dev (digest ${digest})`;
  /** The lines of the terminal: none is wider than it, or it would wrap it itself. */
  const linesOf = (shown: string): string[] => {
    const [request = ''] = stripVTControlCharacters(shown).split(/^(?:\? (?!Which)|next {2})/m);
    const lines = request.split(/\r?\n/);
    for (const line of lines) assert.ok([...line].length <= cols, line);
    return lines;
  };
  const assertMarked = (lines: readonly string[]): void => {
    const [from, to] = [lines.indexOf('  {'), lines.indexOf('  }')];
    assert.ok(from > 0 && to > from + 100, `${from} to ${to}`);
    for (const line of lines.slice(from, to + 1)) assert.match(line, /^ {2}(↪ | {2}"|[{}]$)/);
    assert.deepEqual(
      lines
        .slice(from, to)
        .filter((line) => line.startsWith('    "'))
        .map((line) => line.split(':')[0])
        .sort(),
      ['    "amount"', '    "orderId"'],
    );
    const shown = lines.join('\n').replaceAll('\n  ↪ ', '');
    assert.ok(shown.includes('paid\\u{20×80}\\u{2ba}amount\\u{2ba}: 5, p\\u{430}ypal.com e\\u{301×300} lamp'));
    for (const what of ['look like others: p\\u{430}ypal.com', 'punctuation', '300 combining', '80 spaces']) {
      assert.match(shown, new RegExp(`^  ! orderId: .*${what.replace(/[\\{}]/g, '\\$&')}`, 'm'));
    }
    assert.match(shown, /^product {4}shop\nenv {8}dev$/m);
    assert.ok(shown.includes(`digest     ${digest}`));
  };
  for (const command of ['approve', 'reject']) {
    const deciding = terminal(['approvals', command, requestId], { cwd: shop.root, cols });
    if (command === 'reject') {
      await deciding.until('Reason for the agent:');
      deciding.type('no\r');
    }
    await deciding.until(/\(y\/N\)/);
    assertMarked(linesOf(deciding.shown()));
    assert.ok(stripVTControlCharacters(deciding.shown()).replace(/\s+/g, ' ').includes(question));
    deciding.type('n\r');
    assert.equal(await deciding.ended, 3);
  }
  const showing = terminal(['approvals', 'show', requestId], { cwd: shop.root, cols, staysOpen: true });
  await showing.until(/\n {2}\}/);
  await showing.until(/digest {5}/);
  showing.type('\r');
  assert.equal(await showing.ended, 0);
  assertMarked(linesOf(showing.shown()));
  assertMarked((await shop.svc('approvals', 'show', requestId)).stdout.split('\n'));
  const listing = terminal(['approvals', 'list'], { cwd: shop.root, cols });
  assert.equal(await listing.ended, 0);
  assert.ok(linesOf(listing.shown()).length < 10);
  const choosing = terminal(['approvals', 'approve'], { cwd: shop.root, cols });
  await choosing.until('payouts → refund');
  linesOf(choosing.shown());
  choosing.type('\u0003');
  await choosing.ended;
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
  await deciding.until(/Reject refund for payouts in shop, dev \(digest c2\.[\w-]{8}\)\?/);
  deciding.type('y\r');
  assert.equal(await deciding.ended, 0, deciding.shown());
  const { status, decisionReason } = await svc.approvals.get(second.request.requestId);
  assert.deepEqual([status, decisionReason], ['rejected', 'paid yesterday']);
  const keeping = terminal(['approvals', 'reject', first.request.requestId, '--reason', 'no'], { cwd: shop.root });
  await keeping.until('Reject refund');
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
  await approve(shop, request.requestId, '--set', 'amount=15', '--reason', 'fair');
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

declare(
  'secret prints the derived secret of a webhook, and explains an error',
  async () => {
    const url = 'https://ops.example/approvals';
    const own = 'https://own.example/';
    const secrets = { [own]: [WEBHOOK_SECRET] };
    const shop = project({}, { approvals: { callbackKey: CALLBACK_KEY, webhook: { secrets } } });
    const { stdout, stderr } = await shop.svc('approvals', 'secret', url);
    assert.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/, stderr);
    const json = JSON.parse((await shop.svc('approvals', 'secret', url, '--json', '--env', 'prd')).stdout);
    const { secret, ...rest } = json;
    assert.deepEqual(rest, { ok: true, code: 'ok', url, product: 'shop', env: 'prd', nextActions: [] });
    assert.notEqual(secret, stdout.trim());
    for (const [where, address, status, message] of [
      [shop, own, 2, /has its own secrets/],
      [shop, own.slice(0, -1), 2, /has its own secrets/],
      [shop, 'http://ops.example', 2, /is not https/],
      [shop, 'ops', 2, /is not a URL/],
      [project({}), url, 2, /needs approvals\.callbackKey/],
      [project({}, { approvals: { callbackKey: 'short' } }), url, 2, /too short/],
    ] as const) {
      const refused = await where.svc('approvals', 'secret', address);
      assert.equal(refused.status, status, refused.stdout);
      assert.match(refused.stderr, message);
      assert.equal(refused.stdout, '');
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
        const approvals = { ...STORE, callbackBase: `${base}/any/prefix` };
        const config = { databases: { main: { dialect: 'postgresql', url } } } as const;
        await withGate({ config, approvals, humanInLoop: { approvalWebhook: to.url } }, async ({ refund, refunds }) => {
          const { outcome } = await refund();
          await waitUntil(() => to.received.length === 1, 'nothing came');
          const { headers = {}, body = '' } = to.received[0] ?? {};
          const { status, stdout, stderr } = await shop.svc('approvals', 'secret', to.url);
          assert.equal(status, 0, stderr);
          const { callbackUrl, requestId } = new Webhook(stdout.trim()).verify(
            body,
            headers as Record<string, string>,
          ) as { callbackUrl: string; requestId: string };
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

const LOCAL_PORT = 'serve listens on the port of a local callbackBase, where links lead';
if (missing !== undefined) declare.skip(LOCAL_PORT, missing);
else
  declare(
    LOCAL_PORT,
    async () => {
      const { url, drop } = await freshDatabase();
      const callbackBase = `http://127.0.0.1:${await freePort()}`;
      const shop = project({ main: url }, { approvals: { ...STORE, callbackKey: CALLBACK_KEY, callbackBase } });
      const serving = startCli(['approvals', 'serve'], shop.root);
      try {
        await serving.untilStderr('Listening on');
        assert.match(serving.stderr(), new RegExp(`Listening on ${callbackBase}\n`));
        assert.equal((await fetch(`${callbackBase}/healthz`)).status, 200);
      } finally {
        serving.child.kill('SIGKILL');
        await drop();
      }
    },
    LONG,
  );

const REMINDED = 'serve gives a reminder to the channels of the configuration if no process of the agent does';
if (missing !== undefined) declare.skip(REMINDED, missing);
else
  declare(
    REMINDED,
    async () => {
      const { url, drop } = await freshDatabase();
      const people = {
        roles: { finance: ['group:finance'], heads: ['group:heads'] },
        rules: [
          { approve: [{ role: 'finance' }], remind: '1s', escalate: [{ after: '20m', to: 'heads' }], expires: '1h' },
        ],
      };
      const approvals = { ...STORE, ...people, callbackKey: CALLBACK_KEY, channels: { ops: { type: 'console' } } };
      const shop = project({ main: url }, { approvals });
      const config = { databases: { main: { dialect: 'postgresql', url } } } as const;
      let requestId = '';
      // A process without channels, which ends.
      await withGate({ config, approvals: { ...STORE, ...people } }, async ({ refund }) => {
        requestId = (await refund()).request.requestId;
      });
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      // As if ten minutes had passed.
      await client.query(`UPDATE _svc_approval_notices SET "dueAt" = "dueAt" - interval '10 minutes'`);
      const serving = startCli(['approvals', 'serve', '--port', '0'], shop.root);
      try {
        await serving.untilStderr(`svc approvals show ${requestId}`);
        assert.match(serving.stderr(), /Still waiting for 1 of finance: payouts wants to call refund/);
        await waitUntil(
          async () => /reminded {2}by \S+/.test((await shop.svc('approvals', 'show', requestId)).stdout),
          'the history has no reminder',
        );
        const { stdout } = await shop.svc('approvals', 'show', requestId);
        assert.match(stdout, /^escalates {2}to heads, 20m after the request: from \d{4}-/m);
        serving.child.kill('SIGTERM');
        assert.equal((await serving.ended).status, 0);
      } finally {
        serving.child.kill('SIGKILL');
        await client.end();
        await drop();
      }
    },
    LONG,
  );

test('verify names the request that somebody changed in the database', async ({ refund, svc }, shop, url) => {
  const [one, other] = [await refund(), await refund()];
  await approve(shop, one.request.requestId);
  await one.outcome;
  const sound = await shop.svc('approvals', 'verify');
  assert.deepEqual([sound.status, sound.stdout], [0, '2 requests checked: every event fits.\n']);
  const { requestId } = one.request;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `UPDATE _svc_approvals SET body = jsonb_set(body::jsonb, '{decision,by}', '"eve"') WHERE "requestId" = $1`,
    [requestId],
  );
  await client.end();
  const found = await shop.svc('approvals', 'verify');
  assert.equal(found.status, 1);
  const why = 'After the last event, the status, votes, decision or result was changed.';
  assert.equal(found.stdout, `${requestId}: ${why}\n`);
  assert.match(found.stderr, /1 request was changed in the database, or removed from it\. \(audit_broken\)/);
  assert.match(found.stderr, /svc approvals show <requestId> {4}shows what is stored now/);
  assert.match((await shop.svc('approvals', 'show', requestId)).stdout, /approved by eve/);
  const json = JSON.parse((await shop.svc('approvals', 'verify', '--json')).stdout);
  assert.equal(json.code, 'audit_broken');
  assert.deepEqual((await svc.approvals.verify()).broken, [{ requestId, problems: [why] }]);
  assert.ok((await svc.approvals.get(other.request.requestId)).events.length === 1);
});

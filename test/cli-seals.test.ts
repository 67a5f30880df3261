import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import { svc as run, startCli } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { testGateAndProject } from './kit/gate-and-project.ts';
import { assertExit, json, type Project } from './kit/project.ts';
import { newSealKey } from './kit/sealed.ts';
import { test as declare } from './kit/test.ts';
import { type GateUnderTest, WEBHOOK_SECRET } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { startWebhookReceiver } from './suites/webhook-receiver.ts';

const STORE = { store: { database: 'main' } };
const KEY = newSealKey();
const FILE = { file: { type: 'file', path: 'audit/seals.jsonl' } };

interface Shop extends Project {
  readonly gate: GateUnderTest;
  /** Runs a statement as somebody with the password of the database. */
  sql(statement: string, ...values: unknown[]): Promise<unknown>;
}

/** The command line seals what a gate in this process does. */
function test(name: string, body: (shop: Shop) => Promise<void>, seals: object = { key: KEY, sinks: FILE }): void {
  testGateAndProject(
    name,
    async ({ gate, shop, url }) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        await body({
          ...shop,
          gate,
          sql: async (statement, ...values) => (await client.query(statement, values)).rows,
        });
      } finally {
        await client.end();
      }
    },
    { projectApprovals: { seals } },
  );
}

/** A call that was approved and has run. */
async function paid({ svc, refund }: GateUnderTest): Promise<string> {
  const { request, outcome } = await refund();
  const { requestId, executionId } = request;
  await svc.agents.signal({ executionId, signal: 'approve', payload: { requestId } });
  await outcome;
  return requestId;
}

test('a sealed audit: what is changed with all hashes computed again is found, and a proof needs no database', async (shop) => {
  const { svc, gate, sql, root } = shop;
  const requestId = await paid(gate);
  const sealed = assertExit(await svc('approvals', 'seal'));
  assert.equal(sealed.stdout, '1 request with 3 new events sealed in seal 1\n');
  assert.equal(assertExit(await svc('approvals', 'seal')).stdout, 'Nothing is new since seal 1.\n');
  const { requests, events, last } = json(await svc('approvals', 'seal', '--all', '--json'));
  assert.deepEqual([requests, events, last], [0, 0, 2]);
  const sound = assertExit(await svc('approvals', 'verify'));
  assert.match(
    sound.stdout,
    /^1 request checked: every event fits\.\nCompared with 2 seals of the sink "file", up to seal 2\. All that was stored until \S+ is sealed\.$/m,
  );

  // An auditor has a copy of the seals and the public key, the password of the database, and no key.
  const { stdout: publicKey } = assertExit(await svc('approvals', 'seal', '--public-key'));
  const auditor = folder({ 'seal.pub': publicKey, 'seals.jsonl': shop.read('audit/seals.jsonl') });
  const configFile = join(root, 'svc.config.json');
  const { approvals, ...config } = JSON.parse(shop.read('svc.config.json'));
  shop.write('auditor/svc.config.json', { ...config, approvals: STORE });
  const audit = (...args: string[]) => run(args, { cwd: join(root, 'auditor') });
  const flags = ['--seals', join(auditor, 'seals.jsonl'), '--key', join(auditor, 'seal.pub')];
  const { checked, seals } = json(assertExit(await audit('approvals', 'verify', ...flags, '--json')));
  assert.deepEqual([checked, seals.last, seals.problems], [1, 2, []]);
  const keyless = await audit('approvals', 'verify', '--seals', join(auditor, 'seals.jsonl'));
  assert.match(keyless.stderr, /public key of the seals is not known/);
  assert.equal(keyless.status, 2);

  const proof = assertExit(await svc('approvals', 'prove', requestId)).stdout;
  assert.equal(json(await svc('approvals', 'prove', requestId, '--json')).sealed.requestId, requestId);
  const elsewhere = folder({
    'proof.json': proof,
    'seal.pub': publicKey,
    'forged.json': proof.replace('"amount": 20', '"amount": 2'),
  });
  const prove = (...args: string[]) => run(['approvals', 'verify', '--proof', ...args], { cwd: elsewhere });
  const proven = assertExit(await prove('proof.json', '--key', 'seal.pub'));
  assert.match(
    proven.stdout,
    new RegExp(
      `^${requestId} of shop \\(dev\\) is as it was sealed at .*, in seal 1\\.\nrefund \\{"orderId":"1234","amount":20\\}\n`,
    ),
  );
  assert.match(proven.stdout, /^\d{4}\S+ approved by unknown\n/m);
  assert.equal(json(assertExit(await prove('proof.json', '--key', 'seal.pub', '--json'))).seal, 1);
  const forged = await prove('forged.json', '--key', 'seal.pub');
  assert.match(forged.stderr, /does not hold\. \(audit_broken\)[\s\S]*The call is not that of the request/);
  assert.equal(forged.status, 1);
  assert.match((await prove('seal.pub', '--key', 'seal.pub')).stderr, /not a proof\. \(file_invalid\)/);
  assert.match((await prove('proof.json')).stderr, /public key of the seals is not known[\s\S]*--key <file>/);
  assert.match((await prove('proof.json', '--config', 'none.json')).stderr, /\(config_missing\)/);

  // Removed by somebody with the password, and put in: a copy of the row with another id.
  await sql('DELETE FROM _svc_approvals');
  const broken = await svc('approvals', 'verify');
  assert.equal(broken.status, 1);
  assert.equal(broken.stdout.split('\n')[0], `${requestId}: The request was removed, and not by svc approvals prune.`);
  assert.equal(json(await svc('approvals', 'verify', '--json')).details.broken.length, 1);
  // Without seals, nothing is missing.
  assertExit(await audit('approvals', 'verify'));
  // What is removed from a sealed store is sealed first.
  const refused = await audit('approvals', 'prune', '--older-than', '1h', '--yes');
  assert.match(refused.stderr, /The audit of this store is sealed.*\(seals_needed\)/);
  assert.equal(refused.status, 2);
  assertExit(await svc('approvals', 'prune', '--older-than', '1h', '--yes', '--config', configFile));
});

test(
  'without a key nothing is sealed, and the error does not contain what was given instead',
  async ({ svc }) => {
    const { stderr, status } = await svc('approvals', 'seal');
    assert.match(stderr, /The private key of the seals is not an Ed25519 key\. \(config_invalid\)/);
    assert.match(stderr, /openssl genpkey -algorithm ed25519/);
    assert.doesNotMatch(stderr, /not-a-key/);
    assert.equal(status, 2);
    assert.match((await svc('approvals', 'serve', '--port', '0')).stderr, /\(config_invalid\)/);
    assert.match((await svc('approvals', 'verify')).stderr, /\(config_invalid\)/);
  },
  { key: 'not-a-key', sinks: FILE },
);

test('what the errors about seals advise leads on', async (shop) => {
  const { svc, gate, write, read } = shop;
  const requestId = await paid(gate);
  const config = JSON.parse(read('svc.config.json'));
  const use = (seals?: object) =>
    write('svc.config.json', {
      ...config,
      approvals: { ...config.approvals, seals: undefined, ...(seals && { seals }) },
    });
  const advised = async (code: string, ...args: string[]) => {
    const ran = json(await svc('approvals', ...args, '--json'));
    assert.equal(ran.code, code, JSON.stringify(ran));
    return ran.nextActions.join('\n') as string;
  };
  const runAdvised = (text: string, start: string) => {
    const line = text.split('\n').find((one) => one.startsWith(start)) ?? assert.fail(`${start} is not in ${text}`);
    return line.split('    ')[0] ?? '';
  };

  use();
  const needed = await advised('config_invalid', 'seal');
  const [, printed = ''] = /^Set approvals: \{ seals: (\{ .* \}) \} in svc\.config\.$/m.exec(needed) ?? [];
  const shell = (command: string) => execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim();
  const key = shell(runAdvised(needed, 'openssl genpkey'));
  // As it is printed, with the variable that it names.
  const seals = new Function('process', `return ${printed}`)({ env: { SVC_SEAL_KEY: key } });
  use({ ...seals, key: 'x' });
  use({ ...seals, key: shell(runAdvised(await advised('config_invalid', 'seal'), 'openssl genpkey')) });
  use(seals);

  assert.match(await advised('seal_missing', 'prove', requestId), /^svc approvals seal {4}/);
  assertExit(await svc('approvals', 'seal'));
  assertExit(await svc('approvals', 'prove', requestId));

  // Another key.
  const other = newSealKey();
  use({ ...seals, key: other });
  assert.match(
    await advised('config_invalid', 'verify'),
    /the public key of that time to approvals\.seals\.publicKeys/,
  );
  const { publicKey } = json(await run(['approvals', 'seal', '--public-key', '--json'], { cwd: shop.root }));
  use({ sinks: seals.sinks });
  const keyless = await advised('config_invalid', 'verify');
  assert.match(keyless, /^svc approvals seal --public-key {4}/m);
  assert.match(keyless, /^svc approvals verify --key <file> {4}/m);
  use(seals);
  const { publicKey: earlier } = json(await svc('approvals', 'seal', '--public-key', '--json'));
  write('earlier.pub', earlier);
  use({ sinks: seals.sinks });
  assertExit(await svc('approvals', 'verify', '--key', 'earlier.pub'));
  use({ ...seals, key: other, publicKeys: [earlier, publicKey] });
  assertExit(await svc('approvals', 'seal', '--all'));
  assertExit(await svc('approvals', 'verify'));
  use(seals);
  assert.match(await advised('config_invalid', 'seal'), /publicKeys/);

  // A sink that cannot be written.
  const both = { key: other, publicKeys: [earlier] };
  use({ ...both, sinks: { file: { type: 'file', path: 'svc.config.json/seals.jsonl' } } });
  assert.match(await advised('seal_undelivered', 'seal'), /^svc approvals seal {4}tries again/);
  use({ ...both, sinks: { file: { type: 'file' } } });
  assert.match(await advised('config_invalid', 'seal'), /^Set path: 'seals\.jsonl'/m);
  use({ ...both, sinks: { hook: { type: 'webhook' } } });
  const hook = await advised('config_invalid', 'seal');
  const secret = shell(runAdvised(hook, 'Set url').replace(/^.*(echo .*) creates one\.$/, '$1'));
  use({ ...both, sinks: { hook: { type: 'webhook', url: 'https://audit.example/seals', secrets: [secret] } } });
  assertExit(await svc('approvals', 'verify'));
  use({ ...both, sinks: seals.sinks });
  assertExit(await svc('approvals', 'seal'));

  // What was changed: prune keeps it, prove refuses it, and verify names it.
  await shop.sql(
    `UPDATE _svc_approvals SET body = jsonb_set(body::jsonb, '{timestamp}', '"2026-01-01T00:00:00.000Z"')`,
  );
  for (const args of [
    ['prove', requestId],
    ['prune', '--older-than', '1h', '--yes'],
  ])
    assert.match(await advised('audit_broken', ...args), /^svc approvals verify {4}names what was changed/);
  assert.match((await svc('approvals', 'verify')).stdout, new RegExp(requestId));
  // Also where the seals of the store are others.
  await shop.sql(`UPDATE _svc_approval_seals SET body = jsonb_set(body::jsonb, '{at}', '"2026-01-01T00:00:00.000Z"')`);
  assert.match(await advised('audit_broken', 'seal'), /^svc approvals verify {4}names what differs/m);
});

const receiver = await startWebhookReceiver((response, number) => response.writeHead(number === 1 ? 503 : 204).end());
declare.after(() => receiver.close());

test(
  'serve seals when it starts, at intervals and when it stops; a webhook gets each seal, also one that it did not take',
  async ({ gate, svc, root, read }) => {
    await paid(gate);
    const serving = startCli(['approvals', 'serve', '--port', '0', '--json'], root);
    try {
      const events = () =>
        serving
          .stdout()
          .split('\n')
          .flatMap((line) => (line.startsWith('{"event"') ? [JSON.parse(line)] : []));
      const until = (event: string, last?: number) =>
        waitUntil(
          () => events().some((one) => one.event === event && (last === undefined || one.last >= last)),
          `There is no event ${event}.`,
        );
      await until('seal_failed');
      const failed = events().find(({ event }) => event === 'seal_failed');
      assert.equal(failed.error.code, 'seal_undelivered');
      assert.match(failed.error.why, /POST to 127\.0\.0\.1:\d+ was answered with 503/);
      await paid(gate);
      await until('sealed', 2);
      await gate.refund();
      serving.child.kill('SIGTERM');
      const { status, stderr } = await serving.ended;
      assert.equal(status, 0, stderr);
    } finally {
      serving.child.kill('SIGKILL');
    }
    const { seals, broken } = json(assertExit(await svc('approvals', 'verify', '--json')));
    assert.deepEqual([broken, seals.problems, seals.unsealed], [[], [], 0]);
    const taken = receiver.received.slice(1).map(({ body, headers }) => {
      new Webhook(WEBHOOK_SECRET).verify(body, headers as Record<string, string>);
      return { body, id: headers['webhook-id'] };
    });
    const lines = read('audit/seals.jsonl').trimEnd().split('\n');
    assert.deepEqual(
      taken.map(({ body }) => body),
      lines,
    );
    assert.deepEqual(
      taken.map(({ id }) => String(id).split('-').slice(0, 4).join('-')),
      lines.map((_, index) => `seal-shop-dev-${index + 1}`),
    );
  },
  {
    key: KEY,
    every: '1s',
    sinks: { ...FILE, hook: { type: 'webhook', url: receiver.url, secrets: [WEBHOOK_SECRET] } },
  },
);

test('a process that seals is killed at any moment: nothing that svc stored is reported, and nothing is left out', async ({
  gate,
  svc,
  root,
}) => {
  let isDone = false;
  const working = (async () => {
    while (!isDone) {
      await paid(gate);
      await gate.refund();
    }
  })();
  try {
    const { child, ended, stderr } = startCli(['approvals', 'seal'], root);
    const started = performance.now();
    await ended;
    const usual = performance.now() - started;
    assert.equal(child.exitCode, 0, stderr());
    for (let round = 0; round < 12; round += 1) {
      const killed = startCli(['approvals', 'seal'], root);
      // Any moment will do.
      await pause(randomInt(Math.ceil(usual)));
      killed.child.kill('SIGKILL');
      await killed.ended;
    }
  } finally {
    isDone = true;
    await working;
  }
  assertExit(await svc('approvals', 'seal'));
  const { seals, broken, checked } = json(assertExit(await svc('approvals', 'verify', '--json')));
  assert.deepEqual([broken, seals.problems, seals.unsealed], [[], [], 0]);
  assert.ok(checked > 10);
});

import * as assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startServer } from '../cli/approvals/server.ts';
import type { ApprovalsConfig } from '../config/define.ts';
import { svc as run, startCli } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { Browser, CLI_CLIENT, CLIENT, startProvider } from './kit/oidc.ts';
import { assertExit, json, LONG } from './kit/project.ts';
import { terminal } from './kit/terminal.ts';
import { test } from './kit/test.ts';
import { type GateUnderTest, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';

// Who decides is elsewhere: without a configuration, a store or its password, in a folder that is empty.

const SERVER: ApprovalsConfig = { roles: { deciders: ['group:finance'] }, server: { role: 'deciders' } };

type Change = (answer: Record<string, unknown>) => unknown;

interface Served extends GateUnderTest {
  readonly server: string;
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  tokenOf(id: string, ...groups: string[]): Promise<string>;
  /** Runs a command in an empty folder. */
  here(
    args: readonly string[],
    more?: { stdin?: string; env?: Readonly<Record<string, string>> },
  ): ReturnType<typeof run>;
}

async function withServer(body: (served: Served) => Promise<void>, approvals = SERVER): Promise<void> {
  await withGate({ approvals }, async (gate) => {
    const handler = gate.svc.approvals.handler();
    const server = await startServer({ host: '127.0.0.1', port: 0, handler, isReady: async () => true });
    const root = folder({});
    const env = { XDG_CONFIG_HOME: join(root, 'home') };
    try {
      await body({
        ...gate,
        root,
        env,
        server: server.url,
        tokenOf: async (id, ...groups) =>
          (await gate.svc.people.createToken({ id, groups }, { validForMs: 600_000 })).token,
        here: (args, { stdin, env: more } = {}) =>
          run(args, { cwd: root, env: { ...env, ...more }, ...(stdin !== undefined && { stdin }) }),
      });
    } finally {
      await server.close();
    }
  });
}

test(
  'svc login, then list, show and approve on a server, then svc logout',
  () =>
    withServer(async ({ server, root, here, tokenOf, refund, refunds }) => {
      const token = await tokenOf('ann@acme.example', 'finance');
      const login = assertExit(await here(['login', `${server}/`], { stdin: `${token}\n` }));
      assert.equal(login.stdout, `Logged in to ${server} as ann@acme.example (finance)\n`);
      assert.match(login.stderr, /It decides for shop \(dev\)\.\nThe token ends at \S+\.\nIt is kept in \S+\.\n/);
      assert.match(login.stderr, new RegExp(`svc approvals list --server ${server}$`, 'm'));
      assert.ok(!`${login.stdout}${login.stderr}`.includes(token));
      const [file = ''] = readdirSync(join(root, 'home/svc/logins'));
      const path = join(root, 'home/svc/logins', file);
      assert.equal(statSync(path).mode & 0o777, 0o600);
      assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
      assert.ok(readFileSync(path, 'utf8').includes(token));

      const { request, outcome } = await refund();
      const { requestId } = request;
      const listed = assertExit(await here(['approvals', 'list', '--server', server]));
      assert.match(listed.stdout, new RegExp(requestId));
      const shown = assertExit(await here(['approvals', 'show', requestId, '--server', server]));
      assert.match(shown.stdout, /refund/);
      assert.match(shown.stdout, /shop.*dev|dev.*shop/s);
      const { request: record, nextActions } = json(
        assertExit(await here(['approvals', 'show', requestId, '--server', server, '--json'])),
      );
      assert.deepEqual(
        nextActions[0],
        `svc approvals approve --server ${server} ${requestId} --review-token ${record.reviewToken} --yes`,
      );
      const flags = ['--set', 'amount=7', '--review-token', record.reviewToken, '--yes', '--server', server];
      const approved = assertExit(await here(['approvals', 'approve', requestId, ...flags]));
      assert.match(approved.stdout, new RegExp(`^${requestId} is approved, decided at \\S+\n$`));
      assert.equal((await outcome).status, 'completed');
      assert.deepEqual(JSON.parse(JSON.stringify(refunds)), [{ orderId: '1234', amount: 7 }]);

      const out = json(assertExit(await here(['logout', server, '--json'])));
      assert.deepEqual([out.server, out.removed], [server, true]);
      assert.deepEqual(readdirSync(join(root, 'home/svc/logins')), []);
      const after = json(assertExit(await here(['approvals', 'list', '--server', server, '--json']), 2));
      assert.deepEqual(
        [after.code, after.nextActions[0]],
        ['token_invalid', `svc login ${server}    stores your token`],
      );
      assert.match(assertExit(await here(['logout', server])).stdout, /^Nobody was logged in/);
    }),
  LONG,
);

test(
  'svc people delegate on a server: the vote of another person, until the one who delegated ends it',
  () =>
    withServer(
      async ({ server, here, tokenOf, refund, svc }) => {
        const SVC_TOKEN = await tokenOf('ann', 'finance');
        const as = (token: string, ...args: string[]) =>
          here([...args, '--server', server], { env: { SVC_TOKEN: token } });
        const until = new Date(Date.now() + 172_800_000).toISOString().slice(0, 10);
        const made = await as(SVC_TOKEN, 'people', 'delegate', '--to', 'bo', '--until', until);
        assertExit(made);
        assert.match(made.stdout, /^bo decides for ann until /);
        assert.match(made.stderr, /^Your token ends then/m);
        const [, id = ''] = /svc people delegation revoke --server \S+ (\S+) {4}ends it/.exec(made.stderr) ?? [];
        const bo = await tokenOf('bo', 'guests');
        const { request } = await refund();
        const reviewToken = (await svc.approvals.get(request.requestId)).reviewToken ?? '';
        const approve = ['approvals', 'approve', request.requestId, '--yes', '--review-token', reviewToken];
        assertExit(await as(bo, ...approve));
        assert.equal((await svc.approvals.get(request.requestId)).decidedBy, 'bo for ann');
        const list = ['people', 'delegation', 'list'];
        assert.match(assertExit(await as(bo, ...list)).stdout, new RegExp(`^${id} {2}bo for ann {2}until `));
        const others = await as(bo, 'people', 'delegation', 'revoke', id);
        assert.match(others.stderr, /delegation_unknown.*svc people delegation list --server \S+ {4}lists/s);
        assertExit(await as(SVC_TOKEN, 'people', 'delegation', 'revoke', id));
        assert.match(assertExit(await as(bo, ...list)).stdout, / revoked /);
        const agent = ['people', 'delegate', '--to', 'bo', '--until', until, '--server', server];
        assert.match((await here(agent, { env: { SVC_TOKEN, CLAUDECODE: '1' } })).stderr, /agent_may_not_decide/);
      },
      {
        roles: { finance: ['group:finance'], deciders: ['group:finance', 'group:guests'] },
        rules: [{ approve: [{ role: 'finance' }] }],
        server: { role: 'deciders' },
      },
    ),
  LONG,
);

test(
  'svc approvals allow on a server: later calls run, until the rule for them is revoked',
  () =>
    withServer(
      async ({ server, here, tokenOf, refund, gate, svc }) => {
        const [ann, hal] = [await tokenOf('ann', 'finance'), await tokenOf('hal', 'heads')];
        const as = (token: string, ...args: string[]) =>
          here(['approvals', ...args, '--server', server], { env: { SVC_TOKEN: token } });
        const { request, outcome } = await refund();
        const { requestId } = request;
        const reviewToken = (await svc.approvals.get(requestId)).reviewToken ?? '';
        assertExit(await as(ann, 'approve', requestId, '--yes', '--review-token', reviewToken));
        await outcome;
        const until = new Date(Date.now() + 172_800_000).toISOString().slice(0, 10);
        const allow = ['allow', requestId, '--uses', '2', '--until', until, '--at-most', 'amount=7'];
        const refused = await as(ann, ...allow);
        assert.match(refused.stderr, /decision_refused/);
        assert.match(
          (await as(hal, ...allow, '--at-most', 'amount=70000')).stderr,
          /atMost\.amount is not a number from 0 to 20.*value_invalid/,
        );
        const made = assertExit(await as(hal, ...allow));
        assert.match(made.stdout, / payouts → refund {2}.*amount≤7.* by hal {2}used 0 of 2 {2}until /);
        const [, id = ''] = /svc approvals standing revoke --server \S+ (\S+) {4}ends it/.exec(made.stderr) ?? [];
        const parameters = { orderId: '1234', amount: 5 };
        assert.equal((await gate.run({ tool: 'refund', parameters })).status, 'completed');
        assert.match(assertExit(await as(ann, 'standing', 'list')).stdout, new RegExp(`^${id} .* used 1 of 2 `));
        const unknown = await as(hal, 'standing', 'revoke', 'std_1');
        assert.match(unknown.stderr, /standing_unknown.*svc approvals standing list --server \S+ {4}lists/s);
        assert.match((await as(ann, 'standing', 'revoke', id)).stderr, /decision_refused/);
        assert.match(
          assertExit(await as(hal, 'standing', 'revoke', id)).stdout,
          /is revoked. It was used 1 of 2 times/,
        );
        const agent = await here(['approvals', ...allow, '--server', server], {
          env: { SVC_TOKEN: hal, CLAUDECODE: '1' },
        });
        assert.match(agent.stderr, /agent_may_not_decide/);
        assert.equal(json(assertExit(await as(hal, 'standing', 'list', '--json'))).standingRules.length, 1);
      },
      {
        roles: { deciders: ['group:finance', 'group:heads'], heads: ['group:heads'] },
        rules: [{ approve: [{ role: 'deciders' }], standing: 'heads' }],
        server: { role: 'deciders' },
      },
    ),
  LONG,
);

test(
  'on a terminal: the token is not shown, a request is chosen, shown whole with its sensitive parameters, and approved',
  () =>
    withServer(async ({ server, root, env, tokenOf, refund, svc }) => {
      const token = await tokenOf('ann@acme.example', 'finance');
      const login = terminal(['login', server], { cwd: root, env });
      await login.until('Token:');
      login.type(`${token}\r`);
      assert.equal(await login.ended, 0, login.shown());
      assert.ok(!login.shown().includes(token));
      const { request, outcome } = await refund({ orderId: '1', amount: 5, card: '4111-secret' });
      const approve = terminal(['approvals', 'approve', '--server', server], { cwd: root, env });
      await approve.until('Which request?');
      approve.type('\r');
      await approve.until('(y/N)');
      assert.match(approve.shown(), /4111-secret/);
      approve.type('y\r');
      assert.equal(await approve.ended, 0, approve.shown());
      assert.equal((await outcome).status, 'completed');
      const { events, decidedBy } = await svc.approvals.get(request.requestId);
      assert.deepEqual(
        events.filter(({ type }) => type === 'revealed' || type === 'approved').map(({ type, by }) => [type, by]),
        [
          ['revealed', 'ann@acme.example'],
          ['approved', 'ann@acme.example'],
        ],
      );
      assert.equal(decidedBy, 'ann@acme.example');
    }),
  LONG,
);

test(
  'who may not decide is refused with the reason, and nothing is stored or decided',
  () =>
    withServer(async ({ server, root, here, tokenOf, refund, svc, refunds }) => {
      const stranger = await tokenOf('dee', 'ops');
      const code = async (args: readonly string[], more: Parameters<Served['here']>[1], status = 2) => {
        const ran = json(assertExit(await here([...args, '--json'], more), status));
        return [ran.code, ran.message, ran.why].filter((text) => text !== null).join(' ');
      };
      const { request } = await refund();
      const approve = ['approvals', 'approve', request.requestId, '--yes', '--review-token', 'x', '--server', server];
      assert.match(await code(['login', server], { stdin: stranger }), /^access_refused /);
      assert.match(await code(['login', server], { stdin: `svcp_${'a'.repeat(61)}` }), /^token_invalid /);
      assert.match(await code(['login', server], { stdin: ' \n' }), /^usage The token is missing/);
      assert.match(await code(['login', server], { stdin: 'a b' }), /^usage The token is not one word/);
      assert.match(await code(['login', 'http://approvals.acme.example'], { stdin: 'x' }), /^usage .* is not https/);
      assert.match(await code(['login', 'https://a:b@acme.example'], { stdin: 'x' }), /^usage .* contains credentials/);
      assert.deepEqual(readdirSync(root), []);
      const env = { SVC_TOKEN: stranger };
      assert.match(await code(approve, { env }), /^access_refused /);
      assert.match(await code(['approvals', 'list', '--server', server, '--env', 'prd'], { env }), /^usage .*--env/);
      assert.match(await code([...approve, '--config', 'x.json'], { env }), /^usage .*--config/);
      const good = await tokenOf('ann', 'finance');
      const agent = { SVC_TOKEN: good, CLAUDECODE: '1' };
      assert.match(await code(approve, { env: agent }), /^agent_may_not_decide /);
      assert.match(
        await code(['login', server], { env: agent, stdin: good }),
        /^agent_may_not_decide An agent may not log in/,
      );
      assert.match(await code(['login', server, '--env', 'prd'], { stdin: good }), /^usage --env does not go/);
      // Neither of two lines, nor of two bytes for each letter.
      for (const text of ['svcp_SECRET\nmore', 's\0v\0c\0p\0_SECRET']) {
        const refused = await here(['login', server, '--json'], { stdin: text });
        assert.match(json(assertExit(refused, 2)).message, /^The token is not one word/);
        assert.ok(!`${refused.stdout}${refused.stderr}`.includes('SECRET'));
      }
      const env2 = { SVC_TOKEN: 'svcp_SECRET\nmore' };
      const listed = await here(['approvals', 'list', '--server', server], { env: env2 });
      assert.ok(!`${listed.stdout}${listed.stderr}`.includes('SECRET'), listed.stderr);
      assert.match(assertExit(listed, 2).stderr, /Correct SVC_TOKEN, or unset it/);
      assert.match(await code(approve, { env: { SVC_TOKEN: good } }, 2), /^approval_unseen /);
      const shown = ['approvals', 'show', '--server', server];
      assert.match(await code([...shown, 'me'], { env: { SVC_TOKEN: good } }), /^approval_unknown /);
      assert.match(await code([...shown, '../me'], { env: { SVC_TOKEN: good } }), /^approval_unknown /);
      assert.equal((await svc.approvals.get(request.requestId)).status, 'waiting');
      assert.deepEqual(refunds, []);
    }),
  LONG,
);

test(
  'a stored login that others can read is not used; SVC_TOKEN goes first',
  () =>
    withServer(async ({ server, root, here, tokenOf }) => {
      assertExit(await here(['login', server], { stdin: await tokenOf('ann', 'finance') }));
      const list = ['approvals', 'list', '--server', server, '--json'];
      const other = json(assertExit(await here(list, { env: { SVC_TOKEN: await tokenOf('dee') } }), 2));
      assert.equal(other.code, 'access_refused');
      const [file = ''] = readdirSync(join(root, 'home/svc/logins'));
      chmodSync(join(root, 'home/svc/logins', file), 0o640);
      const open = json(assertExit(await here(list), 2));
      assert.deepEqual([open.code, open.why], ['file_invalid', 'Its mode is 640: others may have read the token.']);
      assertExit(await here(['logout', server]));
      assertExit(await here(['login', server], { stdin: await tokenOf('ann', 'finance') }));
      assertExit(await here(list));
    }),
  LONG,
);

test(
  'a server that is down, redirects, or serves something else: the token goes nowhere else',
  () =>
    withServer(async ({ server, here, tokenOf, refund }) => {
      const env = { SVC_TOKEN: await tokenOf('ann', 'finance') };
      const seen: (string | undefined)[] = [];
      const elsewhere = await listen((request, response) => {
        seen.push(request.headers.authorization);
        response.end('{}');
      });
      const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
        '/moved': (response) => response.writeHead(302, { location: elsewhere.url }).end(),
        '/page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello'),
        '/empty': (response) => response.writeHead(200).end('{}'),
        '/none': (response) => response.writeHead(404).end('no'),
        '/busy': (response) => response.writeHead(503).end('{"error":"store_unavailable","message":"Later."}'),
        '/limited': (response) => response.writeHead(429).end('{"error":"too_many_requests","message":"Too many."}'),
      };
      const strange = await listen((request, response) => {
        answers[(request.url ?? '').split('/api/')[0] ?? '']?.(response);
      });
      try {
        const whyOf = async (address: string) => {
          const ran = json(assertExit(await here(['approvals', 'list', '--server', address, '--json'], { env }), 1));
          assert.deepEqual([ran.code, ran.state], ['server_failed', 'Nothing was changed.'], address);
          return ran.why;
        };
        assert.equal(await whyOf(`${strange.url}/moved`), 'It answers with 302: redirects are not followed.');
        assert.deepEqual(seen, []);
        assert.equal(await whyOf(`${strange.url}/page`), 'Its answer is not that of a server for approvals.');
        assert.equal(await whyOf(`${strange.url}/empty`), 'Its answer is not that of a server for approvals.');
        assert.match(await whyOf(`${strange.url}/none`), /no `approvals.server`/);
        assert.equal(await whyOf(`${strange.url}/busy`), '503: Later.');
        assert.equal(await whyOf(`${strange.url}/limited`), '429: Too many.');
        await refund();
        assert.equal(
          json(assertExit(await here(['approvals', 'list', '--server', server, '--json'], { env }))).records.length,
          1,
        );
        await strange.close();
        assert.match(await whyOf(`${strange.url}/moved`), /ECONNREFUSED/);
      } finally {
        await elsewhere.close();
        await strange.close();
      }
    }),
  LONG,
);

test(
  'watch prints what is requested and decided on a server, also after it was down for a while',
  () =>
    withServer(async ({ server, root, env, tokenOf, refund, svc }) => {
      const SVC_TOKEN = await tokenOf('ann', 'finance');
      let isDown = false;
      const between = await forwarding(server, (answer) => (isDown ? 'down' : answer));
      const args = ['approvals', 'watch', '--server', between.url, '--json'];
      const watching = startCli(args, root, [], { ...env, SVC_TOKEN });
      try {
        const { request, outcome } = await refund();
        const { requestId } = request;
        await waitUntil(() => watching.stdout().includes('"event":"requested"'), 'the request was not printed');
        isDown = true;
        await watching.untilStderr('Trying again until it does.');
        await svc.approvals.signal({ signal: 'reject', payload: { requestId } });
        assert.equal((await outcome).status, 'rejected');
        isDown = false;
        await waitUntil(() => watching.stdout().includes('"event":"decided"'), 'the decision was not printed');
        watching.child.kill('SIGTERM');
        assert.equal((await watching.ended).status, 0);
        const events = watching
          .stdout()
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line));
        assert.deepEqual(
          events.map(({ event, request: { requestId: id } }) => [event, id]),
          [
            ['requested', requestId],
            ['decided', requestId],
          ],
        );
      } finally {
        watching.child.kill('SIGKILL');
        await between.close();
      }
    }),
  LONG,
);

/** A server that forwards calls to another one, and changes its answers: a text is the whole body. */
function forwarding(server: string, change: Change) {
  return listen(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const headers = { authorization: String(incoming.headers.authorization), 'content-type': 'application/json' };
    const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {};
    const answered = await fetch(`${server}${incoming.url}`, { method: incoming.method ?? 'GET', headers, ...body });
    const answer = change((await answered.json()) as Record<string, unknown>);
    response.writeHead(answered.status).end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
}

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

test(
  'an answer that is not one of a server for approvals never reaches the terminal, and a decision is never reported as not made',
  () =>
    withServer(async ({ server, here, tokenOf, refund, svc }) => {
      const env = { SVC_TOKEN: await tokenOf('ann', 'finance') };
      const { request } = await refund();
      const { requestId } = request;
      const { reviewToken = '' } = await svc.approvals.get(requestId);
      let change: Change = (answer) => answer;
      const altered = await forwarding(server, (answer) => change(answer));
      try {
        const ESCAPE = '\x1b[2Jx';
        const show = ['approvals', 'show', requestId, '--server', altered.url];
        const withFields =
          (fields: object): Change =>
          ({ request: found, ...rest }) =>
            found ? { ...rest, request: { ...(found as object), ...fields } } : rest;
        const spoiled: Change[] = [
          withFields({ digest: ESCAPE }),
          withFields({ timestamp: ESCAPE }),
          withFields({ reviewToken: 'x; rm -r #' }),
          withFields({ events: [{ at: ESCAPE }] }),
          withFields({ status: 'open' }),
          withFields({ deliveries: 'none' }),
          ({ principal, ...rest }) => (principal ? { ...rest, principal: { id: 'x' } } : rest),
        ];
        for (change of spoiled) {
          const ran = assertExit(await here(show, { env }), 1);
          assert.match(ran.stderr, /server_failed/, change.toString());
          assert.ok(!`${ran.stdout}${ran.stderr}`.includes('\x1b[2J') && !ran.stderr.includes('rm -r'));
        }
        change = ({ error, ...answer }) => (answer.principal ? answer : { error: 'interrupted', message: ESCAPE });
        const refused = assertExit(
          await here(['approvals', 'show', `${requestId.slice(0, -1)}0`, '--server', altered.url], { env }),
          1,
        );
        assert.ok(!refused.stderr.includes('\x1b[2J'));
        change = (answer) => (answer.decidedAt && answer.executionId && !answer.request ? '{"cut' : answer);
        const decide = [
          'approvals',
          'approve',
          requestId,
          '--yes',
          '--review-token',
          reviewToken,
          '--server',
          altered.url,
        ];
        const cut = json(assertExit(await here([...decide, '--json'], { env }), 1));
        assert.deepEqual(
          [cut.code, cut.state, cut.nextActions[0]],
          [
            'server_failed',
            'The decision may have been stored.',
            `svc approvals show --server ${altered.url} ${requestId}    shows whether it was`,
          ],
        );
        change = (answer) => answer;
        const stored = json(assertExit(await here([...show, '--json'], { env })));
        assert.equal(stored.request.status, 'approved');
        // The same decision again has the same answer.
        assertExit(await here(decide, { env }));
      } finally {
        await altered.close();
      }
    }),
  LONG,
);

test(
  'svc login signs a person in at the provider of the server',
  async () => {
    const provider = await startProvider('https://shop.example/svc/approvals/signed-in');
    const oidc = {
      issuer: provider.issuer,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      cliClientId: CLI_CLIENT,
      groups: 'groups',
      scopes: ['email', 'groups'],
    };
    try {
      await withServer(
        async ({ server, root, env, here, refund, svc }) => {
          const login = terminal(['login', server], { cwd: root, env: { ...env, PATH: '' }, cols: 2_000 });
          await login.until('could not be opened');
          const [, url = ''] = /Sign in at (\S+)/.exec(login.shown()) ?? [];
          const browser = new Browser();
          await browser.open(url);
          await browser.logIn('ann');
          assert.match(browser.page.text, /You are signed in/);
          assert.equal(await login.ended, 0, login.shown());
          assert.match(login.shown(), /Logged in to \S+ as ann@acme\.example \(finance\)/);
          const { request, outcome } = await refund();
          const { reviewToken = '' } = await svc.approvals.get(request.requestId);
          const approve = ['approvals', 'approve', request.requestId, '--yes', '--review-token', reviewToken];
          assertExit(await here([...approve, '--server', server]));
          assert.equal((await outcome).status, 'completed');
          const { deciders } = await svc.approvals.get(request.requestId);
          assert.deepEqual(deciders, [{ id: 'ann@acme.example', groups: ['finance'], verifiedBy: 'oidc' }]);
          // With --token, it prompts for a token of the store.
          const typed = terminal(['login', server, '--token'], { cwd: root, env });
          await typed.until('Token:');
          typed.type('svcp_wrong\r');
          assert.equal(await typed.ended, 2, typed.shown());
        },
        { ...SERVER, oidc },
      );
    } finally {
      provider.close();
    }
  },
  LONG,
);

import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startCli, svc as svcCommand } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { assertDocumentedOutput } from './kit/json-output.ts';
import { Browser } from './kit/oidc.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from './kit/postgresql.ts';
import { assertExit, json, LONG, type Project, project, tagOf, users, withAge } from './kit/project.ts';
import { test as declare } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

const missing = await unavailable();
const callbackKey = Buffer.alloc(32, 7).toString('base64');
const approvals = { store: { database: 'main' }, roles: { dba: ['group:dba'] }, callbackKey, server: { role: 'dba' } };
const ASKING = { prd: { approval: { role: 'dba' } } };

/** Declares a test with a project in the environment prd, whose first migration is applied and whose second drops a field. */
function test(name: string, body: Body, environments: object = ASKING): void {
  if (missing !== undefined) {
    declare.skip(name, missing);
    return;
  }
  declare(
    name,
    async () => {
      const database = await freshDatabase();
      const { url, drop } = database;
      try {
        const shop = project({ main: url }, { env: 'prd', environments, approvals });
        shop.schema(withAge);
        assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'first'));
        assertExit(await shop.svc('db', 'migrate', '--yes'));
        shop.schema(users);
        assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'second'));
        await body(shop, (env, ...args) => svcCommand(args, { cwd: shop.root, env }), database);
      } finally {
        await drop();
      }
    },
    LONG,
  );
}

type Body = (shop: Project, run: Run, database: PostgresqlTestDatabase) => Promise<void>;
type Run = (env: Readonly<Record<string, string>>, ...args: readonly string[]) => ReturnType<Project['svc']>;

/** A token; the second of those who approve is created with the first. */
async function tokenOf(run: Run, principal: string, group: string, by?: string): Promise<string> {
  const env = by === undefined ? {} : { SVC_TOKEN: by };
  const created = await run(env, 'people', 'token', 'create', principal, '--group', group, '--expires', '1d');
  return assertExit(created).stdout.trim();
}

async function decide(shop: Project, run: Run, token: string, decision: 'approve' | 'reject', requestId: string) {
  const { request } = json(assertExit(await shop.svc('approvals', 'show', requestId, '--json')));
  const more = decision === 'approve' ? ['--review-token', request.reviewToken] : ['--reason', 'keep the ages'];
  return run({ SVC_TOKEN: token }, 'approvals', decision, requestId, '--yes', ...more);
}

test('the page of a plan, and the command line, show its statements and what is lost as text', async (shop) => {
  const { requestId } = json(assertExit(await shop.svc('db', 'migrate', '--json'), 9)).details;
  const { stdout } = assertExit(await shop.svc('approvals', 'show', requestId));
  assert.match(stdout, /lost {7}\S+_second: ALTER TABLE "users" DROP COLUMN "age"/);
  assert.match(stdout, /migration {2}\S+_second\n {11}ALTER TABLE "users" DROP COLUMN "age"\nrollback {3}the schema/);
  const inbox = startCli(['approvals', 'inbox', '--no-open'], shop.root);
  try {
    await inbox.untilStderr('/inbox?link=');
    const browser = new Browser();
    await browser.open(/http:\S+/.exec(inbox.stderr())?.[0] ?? '');
    assert.match(browser.page.text, /migrate main \(prd\): ALTER TABLE &quot;users&quot; DROP COLUMN/);
    await browser.follow('svc_db_migrate');
    const page = browser.page.text;
    assert.match(
      page,
      /<h2>What is lost<\/h2>\s*<ul><li>\S+_second: ALTER TABLE &quot;users&quot; DROP COLUMN &quot;age&quot;/,
    );
    assert.match(page, /<h3>\S+_second<\/h3>\s*<pre>ALTER TABLE &quot;users&quot; DROP COLUMN &quot;age&quot;<\/pre>/);
    assert.match(page, /Rollback: the schema comes back, the data does not/);
  } finally {
    inbox.child.kill('SIGTERM');
  }
  assertExit(await inbox.ended);
});

test('svc db migrate: a destructive plan ends with 9, is shown, approved and run', async (shop, run) => {
  const waiting = assertExit(await shop.svc('db', 'migrate', '--yes', '--allow-destructive', '--json'), 9);
  const { code, details, state } = json(waiting);
  assert.equal(code, 'approval_pending');
  assert.match(state, /^Nothing was changed\./);
  const { requestId } = details;
  assert.equal(json(assertExit(await shop.svc('db', 'migrate', '--json'), 9)).details.requestId, requestId);

  const shown = assertExit(await shop.svc('approvals', 'show', requestId)).stdout;
  for (const text of [
    'svc_db_migrate',
    'DROP COLUMN',
    'Values of users.age cannot be restored',
    'users has 0 rows',
    'SVC204',
    'the schema comes back, the data does not',
  ])
    assert.ok(
      shown
        .replace(/\s+(↪ +)?/g, ' ')
        .replaceAll('\\"', '"')
        .includes(text),
      `${text} in ${shown}`,
    );

  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  assertExit(await decide(shop, run, await tokenOf(run, 'bo@acme.example', 'sales'), 'approve', requestId), 1);
  const approved = assertExit(await decide(shop, run, token, 'approve', requestId));
  assert.match(approved.stderr, /Nobody is waiting .* Once approved, run svc db migrate again: it applies the plan\./);
  assertExit(await shop.svc('db', 'migrate'));
  assert.match(
    assertExit(await shop.svc('approvals', 'show', requestId)).stdout,
    /approved by ann@acme\.example, run: done/,
  );
  assert.match(assertExit(await shop.svc('db', 'migrate')).stdout, /Nothing to do/);
});

test('--count-rows counts all rows, and the values of a dropped field', async (shop, _run, { query }) => {
  await query(`INSERT INTO users (email, age) SELECT 'u' || n, nullif(n % 2, 0) FROM generate_series(1, 10003) AS n`);
  const counted = assertExit(await shop.svc('db', 'migrate', '--dry-run')).stdout;
  assert.match(counted, /"users" \(more than 10,000 rows[,)]/);
  const all = assertExit(await shop.svc('db', 'migrate', '--dry-run', '--count-rows')).stdout;
  assert.match(all, /"users" \(10,003 rows, 5,002 with a value\)/);
  const { databases } = json(assertExit(await shop.svc('db', 'migrate', '--dry-run', '--count-rows', '--json')));
  assert.deepEqual(databases[0].plan[0].statements[0].loses, { table: 'users', rows: 10_003, values: 5002 });
  const { why } = json(assertExit(await shop.svc('db', 'migrate', '--count-rows', '--json'), 9));
  assert.match(why, /users has 10,003 rows, 5,002 with a value/);
});

test('svc db migrate: who asks does not approve; a rejection ends with 3; --ask-again asks again', async (shop, run) => {
  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  const other = await tokenOf(run, 'cy@acme.example', 'dba', token);
  const asked = json(assertExit(await run({ SVC_TOKEN: token }, 'db', 'migrate', '--json'), 9)).details.requestId;
  assert.match(assertExit(await decide(shop, run, token, 'approve', asked), 1).stderr, /decision_refused/);
  assertExit(await decide(shop, run, other, 'reject', asked));
  const rejected = assertExit(await shop.svc('db', 'migrate'), 3).stderr;
  assert.match(rejected, /rejected by cy@acme\.example[\s\S]*keep the ages[\s\S]*--ask-again/);
  const again = json(assertExit(await shop.svc('db', 'migrate', '--ask-again', '--json'), 9)).details.requestId;
  assert.notEqual(again, asked);
  assertExit(await decide(shop, run, other, 'approve', again));
  assertExit(await shop.svc('db', 'migrate'));
});

test('svc db migrate --wait: waits for the decision, and runs', async (shop, run) => {
  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  const migrating = shop.svc('db', 'migrate', '--wait', '90s');
  let requestId: string | undefined;
  while (requestId === undefined) {
    const { records } = json(assertExit(await shop.svc('approvals', 'list', '--json')));
    requestId = records[0]?.requestId;
  }
  assertExit(await decide(shop, run, token, 'approve', requestId));
  const ran = assertExit(await migrating);
  assert.match(ran.stderr, new RegExp(`Waiting for approval of ${requestId}`));
  assert.match(ran.stdout, /1 migration/);
});

test('who approves is changed by a person who does', async (shop, run) => {
  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  const config = JSON.parse(shop.read('svc.config.json'));
  const roles = { dba: ['group:dba', 'user:di@acme.example'] };
  shop.write('svc.config.json', { ...config, approvals: { ...approvals, roles } });
  assert.match(
    assertExit(await shop.svc('db', 'migrate'), 2).stderr,
    /approver_required[\s\S]*group:dba[\s\S]*di@acme/,
  );
  assertExit(await run({ SVC_TOKEN: token }, 'db', 'migrate'), 9);
  const { requestId } = json(assertExit(await shop.svc('db', 'migrate', '--json'), 9)).details;
  const di = await tokenOf(run, 'di@acme.example', 'ops', token);
  assertExit(await decide(shop, run, di, 'approve', requestId));
  assertExit(await shop.svc('db', 'migrate'));
});

test('when nobody who approves has a token, the rows that the error names make room for the first one again', async (shop, run, database) => {
  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  assertExit(await run({ SVC_TOKEN: token }, 'db', 'migrate'), 9);
  const { tokens } = json(assertExit(await shop.svc('people', 'token', 'list', '--json')));
  assertExit(await shop.svc('people', 'token', 'revoke', tokens[0].tokenId));
  const create = ['people', 'token', 'create', 'bo@acme.example', '--group', 'dba', '--expires', '1d'];
  const { nextActions } = json(assertExit(await shop.svc(...create, '--json'), 2));
  const [, ids = ''] =
    /delete the rows of their tokens from _svc_approval_tokens .*: ([\w, ]+)\./.exec(nextActions.join('\n')) ?? [];
  assert.equal(ids, tokens[0].tokenId);
  await database.query(`DELETE FROM _svc_approval_tokens WHERE "tokenId" = '${ids}'`);
  const bo = await tokenOf(run, 'bo@acme.example', 'dba');
  const { requestId } = json(assertExit(await shop.svc('db', 'migrate', '--json'), 9)).details;
  assertExit(await decide(shop, run, bo, 'approve', requestId));
  assertExit(await shop.svc('db', 'migrate'));
});

test('a database that remembers its approval is changed by no configuration without', async (shop) => {
  const config = JSON.parse(shop.read('svc.config.json'));
  shop.write('svc.config.json', { ...config, environments: {} });
  assert.match(assertExit(await shop.svc('db', 'migrate', '--allow-destructive'), 2).stderr, /approvers_changed/);
  assertExit(await shop.svc('db', 'migrate', 'status'));
  assert.match((await shop.svc('doctor')).stdout, /remembers that people approve its changes/);
  shop.write('svc.config.json', config);
  assertExit(await shop.svc('db', 'migrate'), 9);
});

const AGENT = { CLAUDECODE: '1' };

test(
  'an agent destroys nothing without a person, in an environment that is not local',
  async (shop, run) => {
    const [, file = ''] = shop.files();
    const second = `svc/database/migrations/main/${file}`;
    const permitted = { ...JSON.parse(shop.read(second)), allow: ['destructive'] };
    shop.write(second, permitted);
    const flags = ['--yes', '--allow-destructive'];
    const refused = assertExit(await run(AGENT, 'db', 'migrate', ...flags), 2).stderr;
    assert.match(refused, /agent_needs_approval[\s\S]*CLAUDECODE/);
    assertExit(await run(AGENT, 'db', 'migrate', 'rollback', ...flags), 2);
    assertExit(
      await run(AGENT, 'db', 'migrate', 'resolve', file.replace('.json', ''), '--forget', ...flags.slice(0, 1)),
      2,
    );
    assertExit(
      await run(AGENT, 'people', 'token', 'create', 'ann@acme.example', '--group', 'dba', '--expires', '1d'),
      2,
    );
    assert.match(assertExit(await run(AGENT, 'doctor')).stdout, /agent: CLAUDECODE is set/);
    // What destroys nothing is as free as for anybody.
    assertExit(await run(AGENT, 'db', 'migrate', '--dry-run'));
    assertExit(await shop.svc('db', 'migrate', ...flags));
  },
  {},
);

test('an agent may ask for approval, and not give it', async (_shop, run) => {
  const { requestId } = json(assertExit(await run(AGENT, 'db', 'migrate', '--allow-destructive', '--json'), 9)).details;
  const { request } = json(assertExit(await run(AGENT, 'approvals', 'show', requestId, '--json')));
  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  for (const SVC_TOKEN of [token, '']) {
    const env = SVC_TOKEN === '' ? AGENT : { ...AGENT, SVC_TOKEN };
    const approving = await run(env, 'approvals', 'approve', requestId, '--yes', '--review-token', request.reviewToken);
    assert.match(assertExit(approving, 2).stderr, /agent_may_not_decide/);
  }
  // Without its marker, it is still nobody who was verified.
  assertExit(await run({}, 'approvals', 'approve', requestId, '--yes', '--review-token', request.reviewToken), 1);
  assertExit(await run(AGENT, 'db', 'migrate'), 9);
});

test(
  'an agent is free in an environment that is local',
  async (_shop, run) => {
    assertExit(await run(AGENT, 'db', 'migrate', '--allow-destructive'));
  },
  { prd: { local: true } },
);

test('svc db migrate: a plan that is too large to be read is run in parts', async (shop) => {
  const [, second = ''] = shop.files();
  const large = (tag: string) => {
    const statement = `DELETE FROM users WHERE email = '${'x'.repeat(200_000)}'`;
    const up = [{ type: 'raw', dialect: 'postgresql', statement }];
    shop.write(`svc/database/migrations/main/${tag}.json`, {
      tag,
      name: tag,
      up,
      down: [],
      irreversible: 'It deletes.',
    });
  };
  large('99990101_000000_large');
  large('99990102_000000_larger');
  assert.match(assertExit(await shop.svc('db', 'migrate'), 2).stderr, /migration_too_large[\s\S]*--to <tag>/);
  assertExit(await shop.svc('db', 'migrate', '--to', second.replace('.json', '')), 9);
});

/** Starts a process that applies what is approved, and stops it at the end. */
async function withRunner(
  shop: Project,
  body: (runner: ReturnType<typeof startCli>) => Promise<void>,
  ...flags: readonly string[]
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const args = ['approvals', 'serve', '--migrate', '--port', '0', ...flags];
  const runner = startCli(args, shop.root);
  try {
    await body(runner);
    runner.child.kill('SIGTERM');
    const ended = assertExit(await runner.ended);
    if (flags.includes('--json')) assertDocumentedOutput(args, ended.stdout);
    return ended;
  } finally {
    runner.child.kill('SIGKILL');
  }
}

const requestIn = (stderr: string): string => [...stderr.matchAll(/apr_[0-9a-f-]{36}/g)].at(-1)?.[0] ?? '';

const columnsOf = async ({ query }: PostgresqlTestDatabase): Promise<readonly string[]> =>
  (
    (await query(`SELECT column_name FROM information_schema.columns WHERE table_name = 'users'`)) as {
      column_name: string;
    }[]
  )
    .map(({ column_name }) => column_name)
    .sort();

test('serve --migrate applies a plan once a person without the password approves it, and what needs no approval at once', async (shop, run, database) => {
  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  const asked = await withRunner(shop, (runner) => runner.untilStderr('main (prd): waiting for approval of'));
  assert.deepEqual(await columnsOf(database), ['age', 'email', 'id']);
  const requestId = requestIn(asked.stderr);
  await withRunner(shop, async (runner) => {
    await runner.untilStderr(`waiting for approval of ${requestId}`);
    const [, server = ''] = /Listening on (\S+)/.exec(runner.stderr()) ?? [];
    const elsewhere = { cwd: folder({}), env: { SVC_TOKEN: token } };
    const shown = await svcCommand(['approvals', 'show', requestId, '--server', server, '--json'], elsewhere);
    const reviewed = ['--review-token', json(assertExit(shown)).request.reviewToken, '--yes', '--server', server];
    assertExit(await svcCommand(['approvals', 'approve', requestId, ...reviewed], elsewhere));
    await runner.untilStderr('main (prd): applied');
    assert.deepEqual(await columnsOf(database), ['email', 'id']);
    shop.schema({ users: { ...users.users, city: 'String' } });
    assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'third'));
    await runner.untilStderr(tagOf(shop.files()[2]));
  });
  assert.deepEqual(await columnsOf(database), ['city', 'email', 'id']);
  assert.match(assertExit(await shop.svc('approvals', 'show', requestId)).stdout, /run: done/);
});

test('serve --migrate reports a rejection and a failure once, and tries again when a file changes', async (shop, run, database) => {
  const token = await tokenOf(run, 'ann@acme.example', 'dba');
  const { query } = database;
  await query("INSERT INTO users (email, age) VALUES ('a', 7), ('b', 7)");
  const second = `svc/database/migrations/main/${shop.files()[1]}`;
  const failing = { db: 'main', tables: { users: { ...withAge.users, age: { type: 'Integer', unique: true } } } };
  const { stdout } = await withRunner(
    shop,
    async (runner) => {
      const waiting = async () => json(assertExit(await shop.svc('approvals', 'list', '--json'))).records;
      await waitUntil(async () => (await waiting()).length > 0, 'no request');
      const [{ requestId }] = await waiting();
      assertExit(await decide(shop, run, token, 'reject', requestId));
      // In its place, one that destroys nothing, and fails because of what is stored.
      rmSync(join(shop.root, second));
      shop.schema([failing]);
      assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'unique'));
      await waitUntil(() => runner.stdout().includes('data_violates'), 'it never failed');
      await query("DELETE FROM users WHERE email = 'b'");
      shop.schema([{ ...failing, tables: { users: { ...failing.tables.users, city: 'String' } } }]);
      assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'city'));
      await waitUntil(async () => (await columnsOf(database)).includes('city'), 'it was not applied');
    },
    '--json',
  );
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    events.map(({ event, error }) => error?.code ?? event),
    ['listening', 'waiting', 'approval_rejected', 'data_violates', 'migrated', 'stopped'],
  );
});

test(
  'serve --migrate needs people who approve',
  async (shop) => {
    const refused = assertExit(await shop.svc('approvals', 'serve', '--migrate', '--port', '0'), 2).stderr;
    assert.match(refused, /config_invalid[\s\S]*environments\.prd\.approval/);
  },
  {},
);

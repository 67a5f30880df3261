import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startCli, svc as svcCommand } from './kit/cli.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { assertDocumentedOutput } from './kit/json-output.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from './kit/postgresql.ts';
import { assertExit, json, LONG, type Project, project, tagOf, users, withAge } from './kit/project.ts';
import { test as declare } from './kit/test.ts';
import { find } from './servers/find.ts';

// The command line of `--keep`, on PostgreSQL.

const missing = await unavailable();
const callbackKey = Buffer.alloc(32, 7).toString('base64');
const ASKING = { prd: { approval: { role: 'dba' } } };

type Body = (shop: Project, database: PostgresqlTestDatabase) => Promise<void>;

/** A project in prd with a row; its second migration drops a field. */
function test(name: string, config: object, body: Body): void {
  if (missing !== undefined) {
    declare.skip(name, missing);
    return;
  }
  declare(
    name,
    async () => {
      const database = await freshDatabase();
      try {
        const shop = project({ main: database.url }, { env: 'prd', ...config });
        shop.schema(withAge);
        assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'first'));
        assertExit(await shop.svc('db', 'migrate', '--yes'));
        await database.query("INSERT INTO users (email, age) VALUES ('ann@acme.example', 41)");
        shop.schema(users);
        assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'second'));
        await body(shop, database);
      } finally {
        await database.drop();
      }
    },
    LONG,
  );
}

const documented = (path: string, output: string) => assertDocumentedOutput(path.split(' '), output);

/** The terminal wraps long lines anywhere. */
const assertSays = (shown: string, text: string) => assert.ok(shown.includes(text.replaceAll(' ', '')), shown);

test('svc db migrate --keep: kept, shown, rolled back, purged', {}, async (shop, database) => {
  const dry = assertExit(await shop.svc('db', 'migrate', '--keep', '30d', '--dry-run'));
  assert.match(dry.stdout, /^-- keeps it for 30 days: "users" \(1 row\):$/m);
  assert.doesNotMatch(dry.stdout, /destroys data|cannot be restored/);
  const planned = assertExit(await shop.svc('db', 'migrate', '--keep', '30d', '--dry-run', '--json'));
  documented('db migrate', planned.stdout);
  assert.deepEqual(json(planned).databases[0].needs, []);
  // Nothing is destroyed, so --allow-destructive is not needed.
  assertExit(await shop.svc('db', 'migrate', '--keep', '30d', '--yes'));
  assertExit(await shop.svc('db', 'schema', 'check', '--strict'));

  const [, second] = shop.files().map(tagOf);
  const status = assertExit(await shop.svc('db', 'migrate', 'status'));
  assert.ok(status.stdout.includes(`[k] users.age, dropped by ${second}, kept until 20`), status.stdout);
  documented('db migrate status', assertExit(await shop.svc('db', 'migrate', 'status', '--json')).stdout);
  assert.match(assertExit(await shop.svc('db', 'migrate', 'purge')).stdout, /^Nothing to purge in main \(prd\)\.$/m);
  assertExit(await shop.svc('db', 'migrate', 'rollback', '--yes'));
  assert.deepEqual(await database.query('SELECT age FROM users'), [{ age: 41 }]);

  assertExit(await shop.svc('db', 'migrate', '--keep', '12h', '--yes'));
  assert.match(assertExit(await shop.svc('db', 'migrate', 'purge', '--all'), 2).stderr, /protected_env/);
  const refused = assertExit(await shop.svc('db', 'migrate', 'purge', '--all', '--yes'), 8);
  assert.match(refused.stderr, /The field "users\.age", which .*_second dropped, was to be kept until 20/);
  const shown = assertExit(await shop.svc('db', 'migrate', 'purge', '--all', '--dry-run', '--json'));
  documented('db migrate purge', shown.stdout);
  assert.equal(json(shown).databases[0].kept.length, 1);
  const purged = assertExit(
    await shop.svc('db', 'migrate', 'purge', '--all', '--yes', '--allow-destructive', '--json'),
  );
  documented('db migrate purge', purged.stdout);
  assert.equal(json(purged).databases[0].purged[0].field, 'age');
  const back = assertExit(await shop.svc('db', 'migrate', 'rollback', '--yes'));
  assert.match(back.stderr, /"users\.age" was purged on 20.*: it comes back without its data\./);
  assert.deepEqual(await database.query('SELECT age FROM users'), [{ age: null }]);
});

test(
  'svc db migrate --keep: the approval says what is kept, and is for that plan only',
  {
    environments: ASKING,
    approvals: { store: { database: 'main' }, roles: { dba: ['group:dba'] } },
  },
  async (shop, database) => {
    const run = (env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
      svcCommand(args, { cwd: shop.root, env });
    const requestOf = async (...args: readonly string[]): Promise<string> =>
      json(assertExit(await shop.svc('db', 'migrate', ...args, '--json'), 9)).details.requestId;
    const token = assertExit(
      await run({}, 'people', 'token', 'create', 'ann@acme.example', '--group', 'dba', '--expires', '1d'),
    ).stdout.trim();
    const approve = async (requestId: string) => {
      const { request } = json(assertExit(await shop.svc('approvals', 'show', requestId, '--json')));
      const decide = ['approvals', 'approve', requestId, '--yes', '--review-token', request.reviewToken];
      assertExit(await run({ SVC_TOKEN: token }, ...decide));
    };
    const requestId = await requestOf('--keep', '30d');
    const shown = assertExit(await shop.svc('approvals', 'show', requestId)).stdout.replace(/\s+(↪ +)?/g, '');
    assertSays(shown, '(users has 1 row, kept for 30 days)');
    assertSays(shown, 'what is kept comes back with its data, for 30 days after the run');
    assert.doesNotMatch(shown, /cannotberestored/);
    await approve(requestId);
    // Another plan: without --keep, and for another time.
    assert.notEqual(await requestOf(), requestId);
    assert.notEqual(await requestOf('--keep', '29d'), requestId);
    assertExit(await shop.svc('db', 'migrate', '--keep', '30d'));

    const purge = ['db', 'migrate', 'purge', '--all', '--yes', '--allow-destructive'];
    const asked = json(assertExit(await shop.svc(...purge, '--json'), 9)).details.requestId;
    const purgeShown = assertExit(await shop.svc('approvals', 'show', asked)).stdout.replace(/\s+(↪ +)?/g, '');
    assertSays(purgeShown, 'was to be kept until');
    await approve(asked);
    assertExit(await shop.svc(...purge));
    assert.equal((await database.query("SELECT 1 FROM pg_attribute WHERE attname LIKE '\\_svc\\_kept\\_%'")).length, 0);
  },
);

test(
  'serve --migrate keeps what the approved request keeps',
  {
    environments: ASKING,
    approvals: { store: { database: 'main' }, roles: { dba: ['group:dba'] }, callbackKey },
  },
  async (shop, database) => {
    const create = ['people', 'token', 'create', 'ann@acme.example', '--group', 'dba', '--expires', '1d'];
    const SVC_TOKEN = assertExit(await shop.svc(...create)).stdout.trim();
    const asked = assertExit(await shop.svc('db', 'migrate', '--keep', '3d', '--json'), 9);
    const { requestId } = json(asked).details;
    const runner = startCli(['approvals', 'serve', '--migrate', '--port', '0'], shop.root);
    try {
      await runner.untilStderr(`main (prd): waiting for approval of ${requestId}`);
      const { request } = json(assertExit(await shop.svc('approvals', 'show', requestId, '--json')));
      const decide = ['approvals', 'approve', requestId, '--yes', '--review-token', request.reviewToken];
      assertExit(await svcCommand(decide, { cwd: shop.root, env: { SVC_TOKEN } }));
      await runner.untilStderr('main (prd): applied');
    } finally {
      runner.child.kill('SIGTERM');
      await runner.ended;
    }
    const [kept] = (await database.query('SELECT (kept_until - kept_at)::text AS time FROM _svc_kept')) as {
      time: unknown;
    }[];
    assert.equal(kept?.time, '3 days');
    assertExit(await shop.svc('db', 'migrate', 'purge'));
  },
);

test('svc db migrate --keep: a duration is checked', {}, async (shop) => {
  const bad = assertExit(await shop.svc('db', 'migrate', '--keep', '30'), 2);
  assert.match(bad.stderr, /--keep must be a duration such as 12h, 90d or 4w, not "30"/);
  rmSync(join(shop.root, 'svc'), { recursive: true });
});

const dynamodb = await find('dynamodb');
if ('missing' in dynamodb) declare.skip('svc db migrate --keep is refused elsewhere', dynamodb.missing);
else
  declare('svc db migrate --keep is refused elsewhere, with the reason', async () => {
    const { url, drop } = await freshPrefix(Number(new URL(dynamodb.url).port));
    try {
      const shop = project({ main: url });
      shop.schema({ notes: { id: { type: 'String', primaryKey: true } } });
      assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'first'));
      const refused = assertExit(await shop.svc('db', 'migrate', '--keep', '30d'), 2);
      assert.match(refused.stderr, /--keep is not possible with the dialect "dynamodb"/);
      assert.match(refused.stderr, /cannot rename a table or a field in place/);
      assertExit(await shop.svc('db', 'migrate'));
    } finally {
      await drop();
    }
  });

import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { hiddenEffect } from '../core/migration/hidden-effects.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { MigrationOperation } from '../core/schema/operation.ts';
import { definedInCode } from './kit/migrations.ts';
import { approvalConfig, requestOf, withClient } from './kit/plan-approval.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { test } from './kit/test.ts';

const withDefault = (expression: string): MigrationOperation => ({
  type: 'addField',
  collection: 'users',
  field: { name: 'n', type: 'integer', default: { $expression: expression } },
});
const effectOf = (operation: MigrationOperation): string | undefined => hiddenEffect(operation, [operation]);

test('expressions of an engine need nobody, and those that call a function of the database do', () => {
  const harmless: readonly MigrationOperation[] = [
    withDefault("date_trunc('day', now()) + interval '1 day'"),
    withDefault("(nextval('public.users_id_seq'::regclass))::text || pg_catalog.lower('A purge() is a text')"),
    {
      type: 'addConstraint',
      collection: 'users',
      constraint: {
        name: 'c',
        type: 'check',
        columns: ['n'],
        expression: "n IN (1, 2) AND (n > 0 OR length('x') > 2)",
      },
    },
    {
      type: 'createIndex',
      collection: 'users',
      index: 'i',
      columns: [],
      native: "USING gin (to_tsvector('english', note)) WHERE (n IS NOT NULL)",
    },
    { type: 'addField', collection: 'users', field: { name: 'p', type: 'text', native: 'geometry(Point,4326)' } },
    { type: 'addField', collection: 'users', field: { name: 'p', type: 'text', default: 'purge()' } },
  ];
  for (const operation of harmless) assert.equal(effectOf(operation), undefined, JSON.stringify(operation));
  for (const call of ['purge()', 'app.purge (1)', '"Purge"()', 'coalesce(purge(), 1)', "lower('it''s') || purge()"])
    assert.match(String(effectOf(withDefault(call))), /^it calls \S*purge"?: svc does not know/i, call);
  for (const call of [String.raw`'\' || purge() || '\'`, 'app . purge ()', 'lower(\'a\')||app\n.\n"purge" ()'])
    assert.match(String(effectOf(withDefault(call))), /purge/, call);
  assert.match(String(effectOf(withDefault('\u00fclower(n)'))), /it calls \u00fclower/);
  const unread = [
    ["$$'$$ || purge() || $$'$$", 'a text in dollars'],
    ["$a$'$a$ || purge() || $a$'$a$", 'a text in dollars'],
    [String.raw`e'\'' || purge() || E'\''`, 'a text with escapes'],
    ['purge/* */()', 'a comment'],
    ["1 -- '\n + purge() -- '", 'a comment'],
  ] as const;
  for (const [text, what] of unread)
    assert.ok(effectOf(withDefault(text))?.startsWith(`it has ${what}`), `${text}: ${effectOf(withDefault(text))}`);
  assert.equal(effectOf(withDefault("'a -- /* $$ b' || name$$ || type'e -- '")), undefined);
  const check = { name: 'c', type: 'check', columns: ['n'], expression: 'purge(n)' } as const;
  assert.match(String(effectOf({ type: 'addConstraint', collection: 'users', constraint: check })), /purge/);
  const index = { type: 'createIndex', collection: 'users', index: 'i', columns: [], native: '(purge(n))' } as const;
  assert.match(String(effectOf(index)), /purge/);
  const computed = { name: 'n', type: 'integer', native: 'integer GENERATED ALWAYS AS (purge(id)) STORED' } as const;
  assert.match(String(effectOf({ type: 'addField', collection: 'users', field: computed })), /purge/);
});

const missing = await unavailable();
const name = 'a default that calls a function of the database waits for a person';
if (missing) test.skip(name, missing);
else
  test(name, async () => {
    const database = await freshDatabase();
    try {
      const key = { name: 'id', type: 'integer', primaryKey: true } as const;
      const users = migration('20260101_000000_users')
        .createCollection('users', [key])
        .createCollection('logs', [key])
        .build();
      const wrong = {
        ...{ tag: '20260102_000000_wrong', name: 'wrong', up: [withDefault('purge()')], down: [] },
        irreversible: 'It is not needed.',
      };
      await withClient(approvalConfig('postgresql', database.url), async (svc, target) => {
        await migrate(target, [definedInCode(users)]);
        await database.query(`CREATE FUNCTION purge() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN DELETE FROM logs; RETURN 1; END $$;
          INSERT INTO users VALUES (1); INSERT INTO logs VALUES (1)`);
        const requestId = await requestOf(migrate(target, [users, wrong].map(definedInCode)));
        const { parameters } = await svc.approvals.get(requestId);
        assert.match(String(parameters.losses), /it calls purge: svc does not know what that does/);
        assert.deepEqual(await database.query('SELECT id FROM logs'), [{ id: 1 }]);
      });
    } finally {
      await database.drop();
    }
  });

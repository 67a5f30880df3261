import * as assert from 'node:assert/strict';
import type { Document } from 'mongodb';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { type ProxiedCommand, type ProxyAction, startMongoProxy } from './kit/mongodb-proxy.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// What a change of a collection leaves to the application at the same time.

const DOCUMENTS = 500;
const REJECTED = 121;

const tables = migration('20260101_000000_tables')
  .createCollection('users', [
    { name: 'n', type: 'integer' },
    { name: 'code', type: 'string' },
  ])
  .build();

interface Fixture {
  readonly url: string;
  readonly users: ReturnType<ReturnType<import('mongodb').MongoClient['db']>['collection']>;
  /** Applies these migrations through the proxy of this test. */
  apply(...migrations: readonly Migration[]): Promise<unknown>;
}

/** The collection `users` with its documents. */
async function withDocuments(
  decide: (command: ProxiedCommand) => ProxyAction | undefined,
  body: (fixture: Fixture) => Promise<void>,
  answered?: (command: ProxiedCommand) => void,
): Promise<void> {
  const fresh = await freshMongo();
  const direct = await connectTarget(mongodb, fresh.url);
  await migrate(direct, [definedInCode(tables)]);
  await direct.connection.close();
  await fresh.on(async (client, name) => {
    const users = client.db(name).collection('users');
    await users.insertMany(Array.from({ length: DOCUMENTS }, (_, n) => ({ n, code: `c${n}` })));
    const proxy = await startMongoProxy(fresh.url, decide, answered);
    const target = await connectTarget(mongodb, proxy.url, { batchSize: 100 });
    try {
      const apply = (...migrations: readonly Migration[]) =>
        migrate(target, [tables, ...migrations].map(definedInCode), { allowDestructive: true });
      await body({ url: fresh.url, users, apply });
    } finally {
      await target.connection.close();
      await proxy.close();
    }
  });
  await fresh.drop();
}

const codeOf = (write: Promise<unknown>): Promise<unknown> =>
  write.then(
    () => 'accepted',
    (error: { code?: unknown }) => error.code,
  );

if (missing) test.skip('changes of a busy collection of MongoDB', missing);
else {
  test('a document that does not fit the new validator may be updated until it does', async () => {
    let validators = 0;
    await withDocuments(
      // The server rejects the last validator at first.
      ({ name }) => (name === 'collMod' && ++validators === 2 ? { code: 13 } : 'pass'),
      async ({ url, users, apply }) => {
        const text = migration('20260102_000000_text')
          .modifyField('users', 'n', { type: 'string', length: 3 }, { was: { type: 'integer' } })
          .build();
        await expectError(apply(text), 'migration_half_done');
        // Written by the application during the change.
        await users.insertOne({ n: 12_345 as never, code: 'late' });
        const again = await connectTarget(mongodb, url);
        const error = await expectError(resolveMigration(again, text.tag, 'retry'), 'migration_half_done');
        assert.match(error.why ?? '', /that is not a valid string\(3\): _id /);
        assert.equal(await codeOf(users.updateOne({ code: 'late' }, { $set: { code: 'later' } })), 'accepted');
        assert.equal(await codeOf(users.insertOne({ n: 12_346, code: 'new' })), REJECTED);
        await users.updateOne({ code: 'later' }, { $set: { n: '123' } });
        await resolveMigration(again, text.tag, 'retry');
        // Now it is strict.
        const bad = { n: 5, code: 'bad' };
        await users.insertOne(bad, { bypassDocumentValidation: true });
        assert.equal(await codeOf(users.updateOne({ code: 'bad' }, { $set: { code: 'x' } })), REJECTED);
        await again.connection.close();
      },
    );
  });

  test('a fill writes few documents at once where they take long, and rests between', async () => {
    const batches: { readonly size: number; readonly sentAt: number; answeredAt: number }[] = [];
    const isBatch = ({ name, command }: ProxiedCommand) => name === 'update' && command.update === 'users';
    await withDocuments(
      (one) => {
        if (!isBatch(one)) return 'pass';
        const ids = (one.command.updates[0].q.$and[0]._id as Document).$in as readonly unknown[];
        batches.push({ size: ids.length, sentAt: performance.now(), answeredAt: 0 });
        return 'pass';
      },
      async ({ users, apply }) => {
        const slow = JSON.stringify({ $size: { $range: [0, { $add: ['$n', 20_000] }] } });
        const filled = migration('20260102_000000_filled')
          .addField('users', { name: 'size', type: 'integer', default: { $expression: slow }, required: true })
          .build();
        await apply(filled);
        assert.equal(await users.countDocuments({ $expr: { $eq: ['$size', { $add: ['$n', 20_000] }] } }), DOCUMENTS);
      },
      (one) => {
        const last = batches.at(-1);
        if (last && isBatch(one)) last.answeredAt = performance.now();
      },
    );
    assert.equal(batches[0]?.size, 100);
    assert.equal(
      batches.reduce((sum, { size }) => sum + size, 0),
      DOCUMENTS,
    );
    for (const [at, { size, sentAt, answeredAt }] of batches.slice(0, -2).entries()) {
      const next = batches[at + 1];
      assert.ok(next);
      // On any machine: svc waits for its answer at least as long as the proxy does.
      const tookMs = answeredAt - sentAt;
      assert.ok(next.sentAt - answeredAt >= tookMs / 4 - 2, `${next.sentAt - answeredAt} ms after ${tookMs} ms`);
      assert.ok(next.size <= Math.max(1, (size * 100) / tookMs), `${next.size} after ${size} in ${tookMs} ms`);
    }
  });

  test('duplicates refuse a unique constraint and a unique index before anything changes', async () => {
    let changes = 0;
    await withDocuments(
      ({ name }) => {
        if (['collMod', 'createIndexes', 'dropIndexes'].includes(name)) changes += 1;
        return 'pass';
      },
      async ({ users, apply }) => {
        await users.insertOne({ n: -1, code: 'c7' });
        changes = 0;
        const constraint = migration('20260102_000000_constraint')
          .addConstraint('users', { name: 'users_code', type: 'unique', columns: ['code'] })
          .build();
        const field = migration('20260102_000000_field').modifyField('users', 'code', { unique: true }).build();
        for (const change of [constraint, field]) {
          const error = await expectError(apply(change), 'data_violates');
          assert.match(error.why ?? '', /1 have the same "code" as another document: _id /);
        }
        assert.equal(changes, 0);
      },
    );
  });
}

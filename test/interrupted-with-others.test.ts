import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { RunEvent } from '../core/migration/preview.ts';
import { previewMigrate, previewRollback } from '../core/migration/preview.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import { cutConnection } from './kit/cut-connection.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// How migrate and rollback treat an interrupted migration: they show it, finish it if it went in their direction, and
// neither apply nor roll back anything else.

const id = { name: 'id', type: 'integer', primaryKey: true } as const;
const table = (tag: string, name: string): Migration => migration(tag).createCollection(name, [id]).build();
const one = table('20260101_000000_one', 'one');
const two = table('20260102_000000_two', 'two');

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: an interrupted migration`, engine.missing);
    continue;
  }
  const on = (name: string, body: (adapter: Target, again: () => Promise<Target>) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () =>
      engine.withDatabase(async (adapter, again) => {
        await adapter.connection.query('CREATE TABLE gate (way varchar(9))');
        await body(adapter, again);
      }));
  /** A statement outside a transaction, on every engine. */
  const insertOutsideTransaction = (way: string) =>
    ({
      type: 'raw',
      dialect: engine.dialect.name,
      statement: `INSERT INTO gate VALUES ('${way}')`,
      check: `SELECT 1 FROM gate WHERE way = '${way}'`,
      transaction: false,
    }) as const;
  const three: Migration = {
    tag: '20260103_000000_three',
    name: 'three',
    up: [
      { type: 'createCollection', name: 'three', fields: [id] },
      insertOutsideTransaction('up'),
      { type: 'createCollection', name: 'last', fields: [id] },
    ],
    down: [
      { type: 'dropCollection', collection: 'last' },
      insertOutsideTransaction('down'),
      { type: 'dropCollection', collection: 'three' },
    ],
  };
  const four = migration('20260104_000000_four').addField('last', { name: 'a', type: 'integer' }).build();
  const defined = [one, two, three].map(definedInCode);
  const more = [...defined, definedInCode(four)];

  const { transactionalDdl } = engine.dialect.capabilities;
  /** Loses the connection after that statement, which is in the third migration, if the run starts at `from`. */
  const losingConnection = (adapter: Target, from: Migration = three): Target => {
    const statementsBefore = transactionalDdl ? 1 : from === one ? 4 : 2;
    return { ...adapter, connection: cutConnection(adapter.connection, 2 * statementsBefore) };
  };
  const tables = async ({ connection }: Target) =>
    [...(await connection.introspect()).keys()].filter((name) => name !== 'gate').sort();
  const states = async (adapter: Target) => (await status(adapter, more)).entries.map(({ state }) => state);
  const tags = ({ migrations }: Awaited<ReturnType<typeof rollback>>) =>
    migrations.map((done) => [done.tag, done.status]);
  const interruptRollback = async (adapter: Target): Promise<void> => {
    await migrate(adapter, defined);
    const { next } = await expectError(rollback(losingConnection(adapter)), 'connection_lost');
    assert.match(next.join('\n'), new RegExp(`svc db migrate rollback --to ${two.tag}`));
    assert.deepEqual(await states(adapter), ['completed', 'completed', 'interrupted', 'pending']);
  };

  on('the migration of a live process is running, and interrupted once the lock is free', async (adapter, again) => {
    await interruptRollback(adapter);
    const other = await again();
    await other.connection.withLock(async () => {
      const { state, entries } = await status(adapter, defined);
      assert.equal(state, 'PENDING');
      assert.deepEqual([entries[2]?.state, entries[2]?.rollingBack], ['running', true]);
    });
    const { state, entries } = await status(adapter, defined);
    assert.equal(state, 'FAILED');
    assert.deepEqual([entries[2]?.state, entries[2]?.rollingBack], ['interrupted', true]);
  });

  on('the same command shows and finishes an interrupted rollback', async (adapter) => {
    await interruptRollback(adapter);
    const shown: string[] = [];
    assert.deepEqual(
      tags(
        await rollback(adapter, {
          confirm: async (planned) => {
            for (const { tag, direction, statements } of planned) {
              shown.push(`${direction} ${tag}`);
              assert.ok(statements.some(({ text }) => /DROP TABLE.*three/.test(text)));
            }
          },
        }),
      ),
      [[three.tag, 'rolled_back']],
    );
    assert.deepEqual(shown, [`down ${three.tag}`]);
    assert.deepEqual(await tables(adapter), ['one', 'two']);
  });

  on('after an interrupted rollback a count is rejected, --to is accepted', async (adapter) => {
    await interruptRollback(adapter);
    const before = await tables(adapter);
    const { next } = await expectError(rollback(adapter, { count: 2 }), 'migration_half_done');
    assert.match(next.join(), /rollback --to <tag>/);
    assert.deepEqual(await tables(adapter), before);
    const planned = await previewRollback(adapter, { to: one.tag });
    assert.deepEqual(
      planned.map(({ tag }) => tag),
      [three.tag, two.tag],
    );
    assert.deepEqual(tags(await rollback(adapter, { to: one.tag })), [
      [three.tag, 'rolled_back'],
      [two.tag, 'rolled_back'],
    ]);
    assert.deepEqual(await tables(adapter), ['one']);
  });

  on('a rollback does not resume an interrupted migration', async (adapter, again) => {
    await expectError(migrate(losingConnection(adapter, one), defined), 'connection_lost');
    const before = await tables(adapter);
    const directions = [
      () => rollback(adapter),
      () => previewRollback(adapter),
      () => rollback(adapter, { to: one.tag }),
    ];
    for (const way of directions) {
      const { state } = await expectError(way(), 'migration_half_done');
      assert.match(state ?? '', /^Nothing was changed; \d of 3 of its steps are committed\.$/);
    }
    assert.deepEqual(await tables(adapter), before);
    assert.deepEqual(tags(await migrate(adapter, defined)), [[three.tag, 'completed']]);

    // Nor where it was interrupted between the question and the lock.
    const other = await again();
    await expectError(
      rollback(adapter, {
        confirm: async () => {
          await rollback(other);
          await expectError(migrate(losingConnection(other), defined), 'connection_lost');
        },
      }),
      'migration_half_done',
    );
    assert.deepEqual((await states(adapter)).slice(0, 3), ['completed', 'completed', 'interrupted']);
  });

  on('migrate finishes an interrupted rollback, and the next migrate applies the migration again', async (adapter) => {
    await interruptRollback(adapter);
    assert.deepEqual(
      (await previewMigrate(adapter, more)).map(({ tag, direction }) => [tag, direction]),
      [[three.tag, 'down']],
    );
    const events: RunEvent[] = [];
    const run = await migrate(adapter, more, { onEvent: (event) => events.push(event), confirm: async () => {} });
    assert.deepEqual(tags(run), [[three.tag, 'rolled_back']]);
    assert.match(
      events.map((event) => (event.type === 'notice' ? event.message : '')).join(''),
      /The interrupted rollback of "20260103_000000_three" is finished/,
    );
    assert.deepEqual(await states(adapter), ['completed', 'completed', 'pending', 'pending']);
    assert.deepEqual(tags(await migrate(adapter, more)), [
      [three.tag, 'completed'],
      [four.tag, 'completed'],
    ]);
  });

  on('an interrupted migration is shown first, and those that depend on it can follow', async (adapter) => {
    await migrate(adapter, defined.slice(0, 2));
    await expectError(migrate(losingConnection(adapter), defined), 'connection_lost');
    const wrongDirection = migration('20260105_000000_astray')
      .addField('nowhere', { name: 'a', type: 'integer' })
      .build();
    const { state } = await expectError(
      migrate(adapter, [...more, definedInCode(wrongDirection)]),
      'collection_unknown',
    );
    assert.match(
      state ?? '',
      /^The interrupted migrations are finished: 20260103_000000_three\. Nothing else was changed\.$/,
    );
    await rollback(adapter);
    await adapter.connection.query('DELETE FROM gate');
    await expectError(migrate(losingConnection(adapter), defined), 'connection_lost');
    const planned = await previewMigrate(adapter, more);
    assert.deepEqual(
      planned.map(({ tag, direction }) => [tag, direction]),
      [
        [three.tag, 'up'],
        [four.tag, 'up'],
      ],
    );
    assert.ok(planned[0]?.statements.every(({ text }) => !/CREATE TABLE.*three/s.test(text)));
    const run = await migrate(adapter, more, { confirm: async () => {} });
    assert.deepEqual(tags(run), [
      [three.tag, 'completed'],
      [four.tag, 'completed'],
    ]);
    assert.deepEqual(await tables(adapter), ['last', 'one', 'three', 'two']);
  });
}

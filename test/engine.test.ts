import * as assert from 'node:assert/strict';
import type { Connection } from '../core/dialect.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { SvcError } from '../core/errors.ts';
import type { Kernel } from '../core/kernel.ts';
import { baseline } from '../core/migration/baseline.ts';
import { migration } from '../core/migration/builder.ts';
import { historyModel } from '../core/migration/history.ts';
import { auditTable } from '../core/migration/history-table.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { previewMigrate, previewRollback } from '../core/migration/preview.ts';
import { RESOLUTIONS, type Resolution, resolveMigration } from '../core/migration/resolve.ts';
import { status } from '../core/migration/status.ts';
import type { Target } from '../core/migration/target.ts';
import { committingEngines, sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { tablesOf } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { waitUntil } from './suites/wait-until.ts';

const users = migration('20260101_000000_create_users')
  .createCollection('users', [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'email', type: 'string', length: 100, required: true, unique: true },
  ])
  .build();
const age = migration('20260102_000000_add_age').addField('users', { name: 'age', type: 'integer' }).build();
const orders = migration('20260103_000000_create_orders')
  .createCollection('orders', [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'user_id', type: 'integer' },
  ])
  .addConstraint('orders', {
    name: 'orders_user_id_fkey',
    type: 'foreignKey',
    columns: ['user_id'],
    references: { table: 'users', columns: ['id'] },
  })
  .createIndex('orders', 'orders_user', [{ name: 'user_id' }])
  .build();
const all = [users, age, orders];
const files = (...migrations: Migration[]) => migrations.map(definedInCode);

/** As a person could by hand. */
const markAsFailed = ({ connection }: Target, tag: string) =>
  connection.query(`UPDATE _svc_migrations SET status = 'failed' WHERE tag = '${tag}'`);

/** Two branches change one field, and the newer migration is applied before the older one is merged. */
const branches = [
  migration('20260101_000000_base').createCollection('u', [
    { name: 'id', type: 'integer', primaryKey: true },
    { name: 'f', type: 'string', length: 40 },
  ]),
  migration('20260102_000000_older').modifyField('u', 'f', { length: 100 }, { was: { length: 40 } }),
  migration('20260103_000000_newer').modifyField('u', 'f', { length: 200 }, { was: { length: 40 } }),
  migration('20260104_000000_settled').modifyField('u', 'f', { length: 200 }, { was: { length: 200 } }),
].map((built) => built.build()) as [Migration, Migration, Migration, Migration];

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: migrations`, engine.missing);
    continue;
  }
  const { quote, syntaxError } = engine.sql;
  const dialect = engine.dialect.name;
  const on = (name: string, body: (adapter: Target, again: () => Promise<Target>, kernel: Kernel) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () => engine.withDatabase(body));

  on('up, again up, down, down again', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    const first = await runner.up(users);
    assert.equal(first.status, 'completed');
    assert.equal(first.tag, users.tag);
    assert.ok(first.durationMs >= 0 && first.statements.length >= 1);
    assert.equal((await runner.up(users)).status, 'skipped');
    assert.deepEqual(await tablesOf(adapter), ['users']);
    assert.equal((await runner.down(users)).status, 'rolled_back');
    assert.deepEqual(await tablesOf(adapter), []);
    await expectError(runner.down(users), 'migration_not_applied');
    assert.equal((await runner.up(users)).status, 'completed');
  });

  on('the history lists the applied migrations, in the order of application', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    assert.deepEqual(await runner.getHistory(), []);
    for (const one of all) await runner.up(one);
    await runner.down(orders);
    const history = await runner.getHistory();
    assert.deepEqual(
      history.map(({ tag, seq, name, origin }) => [tag, seq, name, origin]),
      [
        [users.tag, 1, 'create_users', 'engine'],
        [age.tag, 2, 'add_age', 'engine'],
      ],
    );
    assert.deepEqual(history[0]?.migration, users);
    assert.match(history[0]?.checksum ?? '', /^[0-9a-f]{64}$/);
    assert.ok(Math.abs(Date.now() - (history[0]?.appliedAt?.getTime() ?? 0)) < 120_000);
    assert.deepEqual(
      (await runner.getHistory({ all: true })).map((row) => row.status),
      ['completed', 'completed', 'rolled_back'],
    );
    const where = await runner.getStatus({ definedMigrations: all });
    assert.deepEqual([where.total, where.completed, where.pending, where.lastApplied?.name], [3, 2, 1, 'add_age']);
    assert.deepEqual(
      where.pendingMigrations.map(({ name }) => name),
      ['create_orders'],
    );
    await runner.up(orders);
    assert.deepEqual(
      (await runner.getHistory()).map(({ seq }) => seq),
      [1, 2, 4].slice(0, 2).concat((await runner.getHistory())[2]?.seq ?? 0),
    );
  });

  on(
    'down of a migration that is not the last one works if it fits the later ones, and is rejected otherwise',
    async (adapter) => {
      const runner = new MigrationEngine(adapter);
      for (const one of all) await runner.up(one);
      assert.equal((await runner.down(age)).status, 'rolled_back');
      const refusal = await expectError(runner.down(users), 'not_reversible_now');
      assert.match(refusal.why ?? '', /orders_user_id_fkey/);
      assert.deepEqual(await tablesOf(adapter), ['orders', 'users']);
    },
  );

  on(
    'down of a migration that is not the last one is rejected if it would drop what a later one created',
    async (adapter) => {
      const runner = new MigrationEngine(adapter);
      const id = { name: 'id', type: 'integer', primaryKey: true } as const;
      const x = { name: 'x', type: 'string', length: 20 } as const;
      const numbered = [
        (tag: string) => migration(tag).createCollection('t', [id]),
        (tag: string) => migration(tag).renameCollection('t', 'archive'),
        (tag: string) => migration(tag).createCollection('t', [id, x]),
        (tag: string) => migration(tag).modifyField('t', 'x', { length: 40 }, { was: { length: 20 } }),
        (tag: string) => migration(tag).modifyField('t', 'x', { length: 60 }, { was: { length: 40 } }),
        (tag: string) => migration(tag).addField('archive', x),
        (tag: string) => migration(tag).renameField('archive', 'x', 'y'),
        (tag: string) => migration(tag).addField('archive', x),
      ].map((make, index) => make(`2026010${index + 1}_000000_one`).build());
      for (const one of numbered) await runner.up(one);
      const before = await adapter.connection.introspect();
      for (const [index, words] of [
        [0, /table t is missing/],
        [3, /length is 20, expected 60/],
        [5, /"archive\.x" does not exist/],
      ] as const) {
        const { why, next } = await expectError(runner.down(numbered[index] as Migration), 'not_reversible_now');
        assert.match(why ?? '', words);
        assert.match(next[0] ?? '', new RegExp(`rollback -n ${7 - index}$`));
      }
      assert.deepEqual(await adapter.connection.introspect(), before);
      assert.equal((await runner.getHistory()).length, numbered.length);
    },
  );

  on(
    'down of a migration that is not the last one includes later changes to a table not created by svc',
    async (adapter) => {
      const runner = new MigrationEngine(adapter);
      await adapter.connection.query('CREATE TABLE legacy (id integer primary key)');
      const [one, renamed, again, other] = [
        (tag: string) => migration(tag).addField('legacy', { name: 'x', type: 'integer' }),
        (tag: string) => migration(tag).renameField('legacy', 'x', 'y'),
        (tag: string) => migration(tag).addField('legacy', { name: 'x', type: 'integer' }),
        (tag: string) => migration(tag).addField('legacy', { name: 'z', type: 'integer' }),
      ].map((make, index) => make(`2026010${index + 1}_000000_one`).build()) as [
        Migration,
        Migration,
        Migration,
        Migration,
      ];
      for (const migration of [one, renamed, again, other]) await runner.up(migration);
      const { why } = await expectError(runner.down(one), 'not_reversible_now');
      assert.match(why ?? '', /20260102_000000_one.*20260103_000000_one/);
      assert.equal((await runner.down(again)).status, 'rolled_back');
    },
  );

  on('a different migration with an applied tag is rejected', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    await runner.up(users);
    await expectError(runner.up({ ...users, up: [] }), 'migration_edited');
    await expectError(runner.down({ ...users, down: [] }), 'migration_edited');
  });

  on('creating an existing table is rejected, whether svc created it or not', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    await runner.up(users);
    const twice = migration('20260109_000000_again')
      .createCollection('users', [{ name: 'id', type: 'integer', primaryKey: true }])
      .build();
    assert.match((await expectError(runner.up(twice), 'collection_exists')).message, /already exists/);
    await adapter.connection.query('CREATE TABLE foreign_one (id integer primary key)');
    const created = migration('20260109_000001_other')
      .createCollection('foreign_one', [{ name: 'id', type: 'integer', primaryKey: true }])
      .build();
    assert.match((await expectError(runner.up(created), 'collection_exists')).message, /already exists/);
    assert.deepEqual(
      (await runner.getHistory()).map(({ tag }) => tag),
      [users.tag],
    );
  });

  on('a migration that fails at its third step of five reports the step and what remains of it', async (adapter) => {
    const failing = migration('20260104_000000_bad')
      .createCollection('a', [{ name: 'id', type: 'integer', primaryKey: true }])
      .createCollection('b', [{ name: 'id', type: 'integer', primaryKey: true }])
      .raw(dialect, 'SELEC 1', { down: 'SELECT 1' })
      .createCollection('c', [{ name: 'id', type: 'integer', primaryKey: true }])
      .createCollection('d', [{ name: 'id', type: 'integer', primaryKey: true }])
      .build();
    const whole = engine.dialect.capabilities.transactionalDdl;
    const error = await expectError(
      migrate(adapter, files(...all, failing)),
      whole ? 'migration_failed' : 'migration_half_done',
    );
    assert.match(error.where ?? '', /step 3 of 5: SELEC 1/);
    assert.match(error.why ?? '', syntaxError);
    assert.match(error.state ?? '', whole ? /None of it took effect; 3 of 4/ : /2 of 5 steps are committed/);
    assert.deepEqual(await tablesOf(adapter), whole ? ['orders', 'users'] : ['a', 'b', 'orders', 'users']);
    const report = await status(adapter, files(...all, failing));
    assert.deepEqual([report.state, report.completed], [whole ? 'PENDING' : 'FAILED', 3]);
  });

  on('only an interrupted migration is marked as failed by a person', async (adapter) => {
    await migrate(adapter, files(users));
    const refused = () => expectError(resolveMigration(adapter, users.tag, 'failed'), 'check_failed');
    assert.match((await refused()).why ?? '', /completed/);
    await rollback(adapter);
    assert.match((await refused()).why ?? '', /rolled_back/);
    assert.deepEqual(
      (await status(adapter, files(users))).entries.map(({ state }) => state),
      ['pending'],
    );
  });

  on('a decision that cannot be stored is not carried out', async (adapter) => {
    const runner = new MigrationEngine(adapter);
    await runner.up(users);
    await markAsFailed(adapter, users.tag);
    const before = await runner.getHistory({ all: true });
    const { connection } = adapter;
    const error = new SvcError('connection_lost', 'The audit is out of reach.');
    const run: Connection['run'] = async (segments, ...rest) =>
      segments.some(({ writes }) => writes.some(({ definition }) => definition.collection === auditTable.collection))
        ? { committed: 0, written: [], failure: { statement: undefined, error } }
        : connection.run(segments, ...rest);
    const otherCodes: Partial<Record<Resolution, ErrorCode>> = { retry: 'check_failed', 'rolled-back': 'drift' };
    for (const action of RESOLUTIONS) {
      const code = otherCodes[action] ?? 'connection_lost';
      await expectError(resolveMigration({ ...adapter, connection: { ...connection, run } }, users.tag, action), code);
    }
    const records: Connection['records'] = (definition) => ({
      ...connection.records(definition),
      remove: async () => 'stale',
    });
    const moved = { ...adapter, connection: { ...connection, records } };
    await expectError(resolveMigration(moved, users.tag, 'forget'), 'lock_lost');
    assert.deepEqual(await runner.getHistory({ all: true }), before);
    assert.equal((await resolveMigration(adapter, users.tag, 'forget')).status, 'forgotten');
  });

  on(
    'a migration that later ones depend on stays in the history, and an error about a missing one explains what to do',
    async (adapter) => {
      const runner = new MigrationEngine(adapter);
      const renamed = migration('20260103_000000_years').renameField('users', 'age', 'years').build();
      for (const one of [users, age, renamed]) await runner.up(one);
      for (const action of ['forget', 'rolled-back'] as const) {
        const { message, next } = await expectError(resolveMigration(adapter, age.tag, action), 'not_reversible_now');
        assert.match(message, /"20260103_000000_years" depends on it/);
        assert.deepEqual(next, [`Resolve that one first: svc db migrate resolve ${renamed.tag} --${action}`]);
        const creator = await expectError(resolveMigration(adapter, users.tag, action), 'not_reversible_now');
        assert.deepEqual(creator.details, { tag: users.tag, dependent: age.tag });
      }
      assert.ok((await historyModel(adapter)).get('users')?.fields.has('years'));
      await adapter.connection.query(`DELETE FROM _svc_migrations WHERE tag = '${age.tag}'`);
      const { next, where } = await expectError(rollback(adapter), 'field_unknown');
      assert.equal(where, `${renamed.tag} up[0]`);
      assert.match(next[0] ?? '', new RegExp(`^svc db migrate resolve ${renamed.tag} --forget`));
      await resolveMigration(adapter, renamed.tag, 'forget');
      assert.deepEqual((await baseline(adapter, files(users, age, renamed))).tags, [age.tag, renamed.tag]);
    },
  );

  if (!committingEngines.includes(engine))
    on(
      'raw text outside a transaction that the server rejects before running it does not interrupt the migration',
      async (adapter) => {
        const outsideTransaction = (statement: string) =>
          migration('20260104_000000_alone').raw(dialect, statement, { down: 'SELECT 1', transaction: false }).build();
        for (const [text, code] of [
          ['CREATE INDEX CONCURRENTLY i ON nothere (a)', 'collection_unknown'],
          ['SELEC 1', 'migration_failed'],
          ['CREATE TABLE x (); VACUUM', 'migration_failed'],
        ] as const) {
          const error = await expectError(migrate(adapter, files(users, outsideTransaction(text))), code);
          assert.match(error.state ?? '', /^None of it took effect/, text);
        }
        assert.deepEqual(await tablesOf(adapter), ['users']);
        assert.equal((await status(adapter, files(users, outsideTransaction('SELECT 1')))).state, 'PENDING');
        const committed = outsideTransaction(
          'DO $$ BEGIN CREATE TABLE kept (); COMMIT; PERFORM 1 FROM nothere; END $$',
        );
        await expectError(migrate(adapter, files(users, committed)), 'migration_half_done');
        assert.deepEqual(await tablesOf(adapter), ['kept', 'users']);
      },
    );

  if (!committingEngines.includes(engine))
    on(
      'a rollback that rows prevent can be done by hand, and recorded once the catalog confirms it',
      async (adapter) => {
        const { connection } = adapter;
        const b = { name: 'b', type: 'integer', required: true } as const;
        const created = migration('20260101_000000_p')
          .createCollection('p', [{ name: 'id', type: 'integer', primaryKey: true }, b])
          .build();
        const dropped = migration('20260102_000000_drop').dropField('p', 'b', { was: b }).build();
        await migrate(adapter, files(created, dropped), { allowDestructive: true });
        await connection.query('INSERT INTO p VALUES (1)');
        const { next } = await expectError(rollback(adapter), 'data_violates');
        assert.ok(
          next.some((line) => line.endsWith(`svc db migrate resolve ${dropped.tag} --rolled-back`)),
          next.join(),
        );
        assert.ok(!next.some((line) => /default/.test(line)));
        const driftError = await expectError(resolveMigration(adapter, dropped.tag, 'rolled-back'), 'drift');
        assert.match(driftError.why ?? '', /p\.b is missing/);
        await connection.query('ALTER TABLE p ADD b integer');
        await connection.query('UPDATE p SET b = 7');
        await connection.query('ALTER TABLE p ALTER b SET NOT NULL');
        assert.equal((await resolveMigration(adapter, dropped.tag, 'rolled-back')).status, 'rolled_back');
        assert.deepEqual((await status(adapter, files(created, dropped))).completed, 1);
        assert.equal((await rollback(adapter)).migrations[0]?.tag, created.tag);
      },
    );

  on('the error for a finished migration that was marked as failed does not suggest resuming it', async (adapter) => {
    await migrate(adapter, files(users));
    await markAsFailed(adapter, users.tag);
    for (const work of [migrate(adapter, files(users)), resolveMigration(adapter, users.tag, 'retry')]) {
      const error = await work.then(
        () => assert.fail('not refused'),
        (hookError: SvcError) => hookError,
      );
      assert.deepEqual(
        error.next.map((line) => / --\S+/.exec(line)?.[0]),
        [' --applied', ' --rolled-back'],
      );
    }
    await resolveMigration(adapter, users.tag, 'applied');
  });

  on('migrate applies what is pending, in tag order, once', async (adapter) => {
    const events: string[] = [];
    const report = await migrate(adapter, files(orders, users, age), {
      onEvent: (event) => events.push('tag' in event ? `${event.type} ${event.tag}` : event.type),
    });
    assert.deepEqual(
      report.migrations.map(({ tag }) => tag),
      all.map(({ tag }) => tag),
    );
    assert.equal(events[0], 'planned');
    assert.equal(events.filter((event) => event.startsWith('finished')).length, 3);
    const again = await migrate(adapter, files(...all));
    assert.deepEqual(again.migrations, []);
    assert.deepEqual((await status(adapter, files(...all))).state, 'OK');
  });

  on(
    'a migration that would produce a different schema after a newer one is rejected, and a migration after both resolves it',
    async (adapter) => {
      const [base, older, newer, settled] = branches;
      await migrate(adapter, files(base, newer));
      for (const call of [migrate, previewMigrate]) {
        const error = await expectError(call(adapter, files(base, older, newer)), 'order_conflict');
        assert.match(error.why ?? '', /u\.f: length is 100, expected 200/);
        assert.ok(
          error.next.some((line) => line.includes(`rollback --to ${base.tag}`)),
          error.next.join(),
        );
      }
      const harmless = migration(older.tag).addField('u', { name: 'g', type: 'integer' }).build();
      await migrate(adapter, files(base, harmless, newer));
      await rollback(adapter);
      await migrate(adapter, files(base, older, newer, settled), { allowDestructive: true });
      assert.equal((await status(adapter, files(base, older, newer, settled))).state, 'OK');
      const error = await expectError(rollback(adapter), 'not_reversible_now');
      assert.match(error.why ?? '', /length is 200, expected 100/);
      assert.match(error.next[0] ?? '', new RegExp(`rollback --to ${base.tag}$`));
      await rollback(adapter, { to: base.tag });
      assert.equal((await historyModel(adapter)).get('u')?.fields.get('f')?.length, 40);
    },
  );

  on('an older file that only fits before a newer one is reported as out of order', async (adapter) => {
    const [base, older] = branches;
    const renamed = migration('20260103_000000_renamed').renameField('u', 'f', 'g').build();
    await migrate(adapter, files(base, renamed));
    const error = await expectError(migrate(adapter, files(base, older, renamed)), 'order_conflict');
    assert.match(error.why ?? '', /fit only in tag order: .* "u\.f" does not exist\.$/);
    assert.equal(error.next.length, 2);
    assert.match(error.next[0] ?? '', /newer tag/);
    const wrong = migration(older.tag).modifyField('u', 'nope', { length: 9 }).build();
    await expectError(migrate(adapter, files(base, wrong, renamed)), 'field_unknown');
  });

  on('--to stops at a tag, and an unknown tag is rejected', async (adapter) => {
    await migrate(adapter, files(...all), { to: age.tag });
    assert.equal((await status(adapter, files(...all))).completed, 2);
    await expectError(migrate(adapter, files(...all), { to: 'nope' }), 'migration_unknown');
  });

  on('planning writes nothing, not even on first use', async (adapter) => {
    const planned = await previewMigrate(adapter, files(...all));
    assert.equal(planned.length, 3);
    assert.equal((await status(adapter, files(...all))).pending, 3);
    for (const table of ['_svc_migrations', '_svc_meta', '_svc_lock'])
      await expectError(adapter.connection.query(`SELECT 1 FROM ${table}`), 'collection_unknown');
  });

  on('edited and missing files stop the run before any step', async (adapter) => {
    await migrate(adapter, files(users, age));
    await expectError(migrate(adapter, files({ ...users, up: [] }, age, orders)), 'migration_edited');
    await expectError(migrate(adapter, files(age, orders)), 'migration_missing');
    assert.deepEqual(await tablesOf(adapter), ['users']);
    const report = await status(adapter, files({ ...users, up: [] }, orders));
    assert.deepEqual(
      report.entries.map(({ tag, state }) => [tag, state]),
      [
        [users.tag, 'edited'],
        [age.tag, 'missing'],
        [orders.tag, 'pending'],
      ],
    );
    assert.equal(report.state, 'FAILED');
  });

  on('a migration older than the applied ones runs after a branch merge, with a notice', async (adapter) => {
    await migrate(adapter, files(users, orders));
    const notices: string[] = [];
    await migrate(adapter, files(...all), {
      onEvent: (event) => event.type === 'notice' && notices.push(event.message),
    });
    assert.match(notices.join(), /Older than "20260103/);
    assert.deepEqual(
      (await new MigrationEngine(adapter).getHistory()).map(({ tag }) => tag),
      [users.tag, orders.tag, age.tag],
    );
  });

  on('rollback reverts the last migrations, or all after a tag', async (adapter) => {
    await migrate(adapter, files(...all));
    assert.deepEqual(
      (await previewRollback(adapter)).map(({ tag }) => tag),
      [orders.tag],
    );
    assert.deepEqual(
      (await rollback(adapter, { count: 2 })).migrations.map(({ tag, status: outcome }) => [tag, outcome]),
      [
        [orders.tag, 'rolled_back'],
        [age.tag, 'rolled_back'],
      ],
    );
    await migrate(adapter, files(...all));
    await rollback(adapter, { to: users.tag });
    assert.deepEqual(
      (await new MigrationEngine(adapter).getHistory()).map(({ tag }) => tag),
      [users.tag],
    );
    await expectError(rollback(adapter, { to: orders.tag }), 'migration_unknown');
    await rollback(adapter);
    assert.deepEqual(await tablesOf(adapter), []);
    assert.deepEqual((await rollback(adapter)).migrations, []);
  });

  on(
    'a rollback that stops names the remaining migration, and a repeated one reverts no more than that',
    async (adapter) => {
      const blocked = migration('20260102_000000_gated')
        .raw(dialect, 'INSERT INTO gate VALUES (1)', { down: 'DELETE FROM gate' })
        .build();
      const [one, two, three] = ['one', 'two', 'three'].map((name, index) =>
        migration(`2026010${[1, 3, 4][index]}_000000_${name}`)
          .createCollection(name, [{ name: 'id', type: 'integer', primaryKey: true }])
          .build(),
      );
      assert.ok(one && two && three);
      await adapter.connection.query('CREATE TABLE gate (i integer)');
      await migrate(adapter, files(one, blocked, two, three));
      await adapter.connection.query('DROP TABLE gate');
      const { state, next } = await expectError(rollback(adapter, { count: 3 }), 'collection_unknown');
      assert.match(state ?? '', /2 of 3 migrations are rolled back/);
      assert.deepEqual(
        next.filter((line) => /again|rollback/.test(line)),
        [`Remove the cause, then run svc db migrate rollback --to ${one.tag}`],
      );
      await adapter.connection.query('CREATE TABLE gate (i integer)');
      for (const taken of [[blocked.tag], []]) {
        const { migrations } = await rollback(adapter, { to: one.tag });
        assert.deepEqual(
          migrations.map(({ tag }) => tag),
          taken,
        );
      }
      assert.deepEqual(await tablesOf(adapter), ['gate', 'one']);
    },
  );

  on('two concurrent rollbacks of one migration roll back one', async (adapter, again) => {
    await migrate(adapter, files(...all));
    const other = await again();
    let first = true;
    const { migrations } = await rollback(adapter, {
      confirm: async () => {
        if (first) await rollback(other);
        first = false;
      },
    });
    assert.deepEqual(migrations, []);
    assert.deepEqual(await tablesOf(adapter), ['users']);
  });

  const perhaps = { sqlOptions: { ifNotExists: true } };
  const there = migration('20260104_000000_there')
    .createCollection('customers', [{ name: 'id', type: 'integer', primaryKey: true }], perhaps)
    .build();
  const mixed = migration('20260105_000000_mixed')
    .createCollection('made', [{ name: 'id', type: 'integer', primaryKey: true }], perhaps)
    .createCollection('customers', [{ name: 'id', type: 'integer', primaryKey: true }], perhaps)
    .createCollection('other', [{ name: 'id', type: 'integer', primaryKey: true }])
    .build();

  on('the rollback of a migration with ifNotExists keeps a table that existed before', async (adapter) => {
    await adapter.connection.query('CREATE TABLE customers (id integer, CONSTRAINT customers_pkey PRIMARY KEY (id))');
    await adapter.connection.query('INSERT INTO customers VALUES (1)');
    await migrate(adapter, files(there, mixed));
    assert.deepEqual(await tablesOf(adapter), ['customers', 'made', 'other']);
    await rollback(adapter);
    assert.deepEqual(await tablesOf(adapter), ['customers']);
    const runner = new MigrationEngine(adapter);
    await runner.down(there);
    assert.deepEqual(await adapter.connection.query('SELECT id FROM customers'), [{ id: 1 }]);

    // Also if another migration created it, or an earlier step of the same one.
    await adapter.connection.query('DROP TABLE customers');
    await migrate(adapter, files(there, mixed));
    await rollback(adapter);
    assert.deepEqual(await tablesOf(adapter), ['customers']);
    await rollback(adapter);
    assert.deepEqual(await tablesOf(adapter), []);
  });

  on(
    'the effect of ifNotExists, which older versions did not record, is derived from the history, or the rollback is rejected',
    async (adapter) => {
      await adapter.connection.query('CREATE TABLE customers (id integer, CONSTRAINT customers_pkey PRIMARY KEY (id))');
      await migrate(adapter, files(there, mixed));
      await adapter.connection.query('ALTER TABLE _svc_migrations DROP COLUMN found');
      await adapter.connection.query(`UPDATE _svc_meta SET ${quote('version')} = 2`);
      assert.match((await expectError(previewRollback(adapter), 'irreversible')).message, /"customers"/);
      assert.match((await expectError(rollback(adapter), 'irreversible')).message, /"customers"/);
      // Taking the lock adds the new column.
      await migrate(adapter, files(there, mixed, users));
      await expectError(rollback(adapter, { to: there.tag }), 'irreversible');
      await resolveMigration(adapter, users.tag, 'forget');
      await resolveMigration(adapter, mixed.tag, 'forget');
      await rollback(adapter);
      assert.deepEqual(await tablesOf(adapter), ['customers', 'made', 'other', 'users']);
    },
  );

  on('an empty migration is not applied, because it could not be edited afterwards', async (adapter) => {
    await expectError(
      migrate(adapter, files(users, { tag: '20260110_000000_todo', name: 'todo', up: [], down: [] })),
      'migration_invalid',
    );
    assert.deepEqual(await tablesOf(adapter), []);
  });

  on('an irreversible migration is not rolled back', async (adapter) => {
    const oneWay = migration('20260105_000000_one_way').raw(dialect, 'CREATE TABLE one_way (id int)').build();
    await migrate(adapter, files(oneWay));
    await expectError(rollback(adapter), 'irreversible');
  });

  on('destructive steps need to be allowed', async (adapter) => {
    await migrate(adapter, files(users, age));
    const drop = migration('20260106_000000_drop')
      .dropField('users', 'age', { was: { type: 'integer' } })
      .build();
    await expectError(migrate(adapter, files(users, age, drop)), 'destructive');
    assert.equal((await status(adapter, files(users, age, drop))).pending, 1);
    await migrate(adapter, files(users, age, drop), { allowDestructive: true });
    assert.equal((await status(adapter, files(users, age, drop))).pending, 0);
  });

  on('dropping a table that the same run creates is not destructive', async (adapter, again) => {
    const drop = migration('20260106_000000_drop')
      .renameCollection('users', 'people')
      .dropField('people', 'age', { was: { type: 'integer' } })
      .build();
    const history = files(users, age, drop);
    const lost = async (defined: typeof history) =>
      (await previewMigrate(adapter, defined, { allowDestructive: true })).flatMap(({ statements }) =>
        statements.filter(({ destructive }) => destructive),
      ).length;
    assert.equal(await lost(history), 0);
    const named = migration('20260105_000000_raw').raw(dialect, 'INSERT INTO users VALUES (1, NULL, 7)').build();
    assert.equal(await lost(files(users, age, named, drop)), 1, 'rows may have come from elsewhere');
    const other = await again();
    const between = async () => void (await migrate(other, files(users, age)));
    await expectError(migrate(adapter, history, { confirm: between }), 'check_failed');
    await expectError(migrate(adapter, history), 'destructive');
    await new MigrationEngine(adapter).down(age);
    await new MigrationEngine(adapter).down(users);
    await migrate(adapter, history);
    assert.deepEqual(await tablesOf(adapter), ['people']);
    await other.connection.close();
  });

  on('a declined confirmation changes nothing', async (adapter) => {
    await assert.rejects(migrate(adapter, files(users), { confirm: () => Promise.reject(new Error('no')) }), /no/);
    assert.deepEqual(await tablesOf(adapter), []);
  });

  on('a tap on migration:up can stop a run before the migration, not after', async (adapter, _again, kernel) => {
    const seen: string[] = [];
    kernel.hooks['migration:up'].tapPromise('test', async (step) => {
      seen.push(`${step.direction} ${step.migration.tag}`);
      if (step.migration.tag === age.tag) throw new Error('not on a Friday');
    });
    const refusal = await expectError(migrate(adapter, files(...all)), 'hook_refused');
    assert.match(refusal.why ?? '', /not on a Friday/);
    assert.deepEqual(seen, [`up ${users.tag}`, `up ${age.tag}`]);
    assert.deepEqual(await tablesOf(adapter), ['users']);
  });

  on(
    'a hook that migrates its own database is rejected instead of waiting for itself',
    async (adapter, _again, kernel) => {
      kernel.hooks['migration:up'].tapPromise('test', async () => {
        await new MigrationEngine(adapter).up(age);
      });
      const refusal = await expectError(migrate(adapter, files(users)), 'hook_refused');
      assert.match(refusal.why ?? '', /inside another one/);
      assert.deepEqual(await tablesOf(adapter), []);
    },
  );

  on('a database of another product is rejected, and taken over on request', async (adapter, again) => {
    await migrate(adapter, files(users));
    const other = { ...(await again()), product: 'bank' };
    await expectError(status(other, []), 'database_foreign');
    await expectError(migrate(other, files(users)), 'database_foreign');
    await migrate(other, files(users), { adopt: true });
    assert.equal((await status(other, files(users))).state, 'OK');
  });

  on('a history of a newer version is rejected', async (adapter) => {
    await migrate(adapter, files(users));
    await adapter.connection.query(`UPDATE _svc_meta SET ${quote('version')} = ${quote('version')}`);
    const store = adapter.connection.records((await import('../core/migration/history-table.ts')).metaTable);
    const found = await store.get('meta');
    assert.ok(found);
    await store.replace('meta', found.version, { ...found.record, version: 99 } as never);
    await expectError(status(adapter, []), 'history_newer');
    await expectError(migrate(adapter, files(users, age)), 'history_newer');
  });

  on('baseline records migrations whose tables exist, and rejects others', async (adapter) => {
    await expectError(baseline(adapter, files(users)), 'drift');
    await adapter.connection.query(
      'CREATE TABLE users (id integer, email varchar(100) NOT NULL, CONSTRAINT users_pkey PRIMARY KEY (id), CONSTRAINT users_email_key UNIQUE (email))',
    );
    assert.deepEqual((await baseline(adapter, files(users, age), { to: users.tag })).tags, [users.tag]);
    assert.equal((await status(adapter, files(users, age))).completed, 1);
    await migrate(adapter, files(users, age));
    await rollback(adapter);
    const refusal = await expectError(rollback(adapter), 'irreversible');
    assert.match(refusal.message, /never run/);
    assert.deepEqual(await tablesOf(adapter), ['users']);
  });

  on('a table not created by svc can be changed, and its changes are replayed', async (adapter) => {
    await adapter.connection.query('CREATE TABLE legacy (id integer, CONSTRAINT legacy_pkey PRIMARY KEY (id))');
    const change = migration('20260107_000000_legacy').addField('legacy', { name: 'note', type: 'text' }).build();
    await migrate(adapter, files(change));
    const more = migration('20260108_000000_legacy').addField('legacy', { name: 'more', type: 'text' }).build();
    await migrate(adapter, files(change, more));
    assert.deepEqual(
      [...((await adapter.connection.introspect()).get('legacy')?.fields.keys() ?? [])],
      ['id', 'note', 'more'],
    );
    await rollback(adapter, { count: 2 });
    assert.deepEqual([...((await adapter.connection.introspect()).get('legacy')?.fields.keys() ?? [])], ['id']);
  });

  on('a table changed before its adoption is recorded with the changes', async (adapter, again) => {
    await adapter.connection.query('CREATE TABLE legacy (id integer, CONSTRAINT legacy_pkey PRIMARY KEY (id))');
    const add = (tag: string, name: string) => migration(tag).addField('legacy', { name, type: 'text' }).build();
    const adopt = (...names: string[]) =>
      migration('20260109_000000_adopt')
        .createCollection('legacy', [
          { name: 'id', type: 'integer', primaryKey: true },
          ...names.map((name) => ({ name, type: 'text' as const })),
        ])
        .build();
    await new MigrationEngine(adapter).up(add('20260107_000000_note', 'note'));
    await expectError(baseline(adapter, files(adopt('note', 'none'))), 'drift');
    await expectError(baseline(adapter, files(adopt())), 'drift');
    await baseline(adapter, files(adopt('note')));
    await migrate(await again(), files(adopt('note'), add('20260110_000000_more', 'more')));
    const replayed = (await historyModel(await again())).get('legacy');
    assert.deepEqual([...(replayed?.fields.keys() ?? [])], ['id', 'note', 'more']);
    await rollback(adapter);
    await expectError(rollback(adapter), 'irreversible');
  });

  on('a migration recorded but never run is not rolled back, whatever the decision', async (adapter) => {
    await adapter.connection.query(
      'CREATE TABLE users (id integer, email varchar(100) NOT NULL, CONSTRAINT users_pkey PRIMARY KEY (id), CONSTRAINT users_email_key UNIQUE (email))',
    );
    await baseline(adapter, files(users));
    await markAsFailed(adapter, users.tag);
    await resolveMigration(adapter, users.tag, 'applied');
    assert.equal((await status(adapter, files(users))).completed, 1);
    await expectError(rollback(adapter), 'irreversible');
    await migrate(adapter, files(users, age));
    await markAsFailed(adapter, age.tag);
    await resolveMigration(adapter, age.tag, 'applied');
    assert.equal((await rollback(adapter)).migrations[0]?.tag, age.tag);
    assert.deepEqual(await tablesOf(adapter), ['users']);
  });

  if (!committingEngines.includes(engine)) continue;
  on('a change of a table not created by svc resumes where it stopped', async (adapter, again) => {
    await adapter.connection.query(
      'CREATE TABLE legacy (id integer, note varchar(10), CONSTRAINT legacy_pkey PRIMARY KEY (id))',
    );
    await adapter.connection.query("INSERT INTO legacy VALUES (1, 'a')");
    const change = migration('20260107_000000_legacy')
      .addField('legacy', { name: 'more', type: 'text' })
      .raw(engine.dialect.name, "INSERT INTO legacy (id, note) VALUES (2, 'a')")
      .createIndex('legacy', 'once', [{ name: 'note' }], { unique: true })
      .build();
    await expectError(migrate(adapter, files(change)), 'migration_half_done');
    await adapter.connection.query('DELETE FROM legacy WHERE id = 2');
    const { status: outcome } = await resolveMigration(await again(), change.tag, 'retry');
    assert.equal(outcome, 'completed');
    const legacy = (await adapter.connection.introspect()).get('legacy');
    assert.deepEqual(
      [[...(legacy?.fields.keys() ?? [])], [...(legacy?.indexes.keys() ?? [])]],
      [['id', 'note', 'more'], ['once']],
    );
  });

  on('a run that is asked to stop starts no step after the current raw statement', async (adapter, again) => {
    await migrate(adapter, files(users));
    const [first, second] = ['a', 'b'].map((field, index) =>
      migration(`2026010${index + 7}_000000_${field}`)
        .addField('users', { name: field, type: 'integer' })
        .raw(dialect, 'SELECT SLEEP(1)', { transaction: false })
        .addField('users', { name: `${field}2`, type: 'integer' })
        .build(),
    ) as [Migration, Migration];
    const stop = new AbortController();
    const running = migrate(adapter, files(users, first, second), { signal: stop.signal });
    const other = await again();
    // The text of the statement is also in the row of the history.
    const sleeping = "SELECT 1 FROM information_schema.processlist WHERE state = 'User sleep' AND db = DATABASE()";
    await waitUntil(async () => (await other.connection.query(sleeping)).length > 0, 'nothing sleeps');
    stop.abort();
    await expectError(running, 'interrupted');
    const { entries } = await status(other, files(users, first, second));
    assert.deepEqual(
      entries.map(({ state, step }) => [state, step]),
      [
        ['completed', 1],
        ['interrupted', 2],
        ['pending', undefined],
      ],
    );
    await other.connection.close();
    await migrate(await again(), files(users, first, second));
  });
}

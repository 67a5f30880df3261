import * as assert from 'node:assert/strict';
import { DatabaseService } from '../config/sdk/index.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { PlannedMigration } from '../core/migration/planned-migration.ts';
import type { RunEvent } from '../core/migration/preview.ts';
import { assertNothingLost } from '../core/migration/rollback-losses.ts';
import { committingEngines, sqlEngines, type TestEngine } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { assertExit, json, LONG, type Project, project } from './kit/project.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// What a migration may copy or destroy: shown by a dry run, permitted by the run or by the migration itself.

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const table = (name: string) =>
  [
    key,
    { name: 'parent', type: 'integer' },
    { name: 'note', type: 'string', length: 20 },
    { name: name, type: 'integer' },
  ] as const;
const first = migration('20260101_000000_first')
  .createCollection('parents', [key])
  .createCollection('orders', table('a'))
  .createCollection('items', table('b'))
  .createCollection('tiny', table('c'))
  .build();
const reference = (name: string) =>
  ({ name, type: 'foreignKey', columns: ['parent'], references: { table: 'parents', columns: ['id'] } }) as const;

const write = (shop: Project, one: Migration) => shop.write(`svc/database/migrations/main/${one.tag}.json`, one);
/** MySQL limits a recursion to 1,000 rows. */
const numbers = (count: number) =>
  `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) SELECT a.i * 100 + b.i + 1 AS i FROM n a, n b WHERE a.i * 100 + b.i < ${count}`;

const testOn = (engine: TestEngine) => (name: string, body: () => Promise<void>) =>
  engine.missing === undefined
    ? test(`${engine.name}: ${name}`, body, LONG)
    : test.skip(`${engine.name}: ${name}`, engine.missing);

for (const engine of sqlEngines.filter(({ name }) => name !== 'pglite')) {
  testOn(engine)('rows that arrive while a rollback waits for the lock are not destroyed without permission', () =>
    engine.withUrl(async (_url, connect) => {
      const target = await connect();
      const { connection } = await connect();
      await migrate(target, [definedInCode(first)]);
      let attempt: Promise<unknown> = Promise.resolve();
      await connection.withLock(async () => {
        await new Promise<void>((resolve) => {
          const check = (plan: readonly PlannedMigration[]) => assertNothingLost(target, plan);
          const onEvent = ({ type }: RunEvent) => type === 'waiting' && resolve();
          attempt = rollback(target, { confirm: check, assertAllowed: check, onEvent });
          attempt.then(
            () => resolve(),
            () => resolve(),
          );
        });
        await connection.query('INSERT INTO parents (id) VALUES (1)');
      });
      await expectError(attempt, 'destructive');
      assert.equal(await connection.count('parents', 2), 1);
    }),
  );
}

for (const engine of committingEngines) {
  const it = testOn(engine);

  it('a dry run shows every table that is copied, and the file permits it', () =>
    engine.withUrl(async (url, connect) => {
      const { connection } = await connect();
      const shop = project({ main: url });
      write(shop, first);
      assertExit(await shop.svc('db', 'migrate'));
      for (const [name, count] of [
        ['orders', 1500],
        ['items', 2000],
        ['tiny', 20],
      ] as const)
        await connection.query(`INSERT INTO ${name} (id) ${numbers(count)}`);

      const copying = (tag: string) =>
        migration(tag)
          .addConstraint('orders', reference('orders_parent'))
          .modifyField('items', 'note', { type: 'text' }, { was: { type: 'string', length: 20 } })
          .modifyField('tiny', 'note', { type: 'text' }, { was: { type: 'string', length: 20 } });
      const second = copying('20260102_000000_second').build();
      write(shop, second);
      const before = await connection.introspect();
      const { stdout } = assertExit(await shop.svc('db', 'migrate', '--dry-run'));
      assert.match(
        stdout,
        /^-- copies tables, which blocks writes to them: "orders" \(1,500 rows\), "items" \(2,000 rows\)\n-- {3}needs --allow-copy, or "allow": \["copy"\] in the migration$/m,
      );
      assert.match(stdout, /^-- copies "tiny" \(20 rows\), which blocks writes to it:$/m);
      const [database] = json(assertExit(await shop.svc('db', 'migrate', '--dry-run', '--json'))).databases;
      assert.deepEqual(database.needs, ['copy']);
      assert.deepEqual(
        database.plan[0].statements.map(({ copies }: { copies: object }) => copies),
        [
          { table: 'orders', rows: 1500, permitted: false },
          { table: 'items', rows: 2000, permitted: false },
          { table: 'tiny', rows: 20, permitted: true },
        ],
      );
      assert.deepEqual(await connection.introspect(), before);

      const refused = json(assertExit(await shop.svc('db', 'migrate', '--json'), 2));
      assert.equal(refused.code, 'copy_required');
      assert.match(refused.message, /^2 tables .*"orders" \(1,500 rows\), "items" \(2,000 rows\)/);
      assert.deepEqual(refused.details.tables, [
        { table: 'orders', rows: 1500 },
        { table: 'items', rows: 2000 },
      ]);
      assert.match(refused.nextActions.join('\n'), /in "20260102_000000_second": "allow": \["copy"\]/);

      write(shop, { ...second, allow: ['copy'] });
      assert.doesNotMatch(assertExit(await shop.svc('db', 'migrate', '--dry-run')).stdout, /needs --allow-copy/);
      assertExit(await shop.svc('db', 'migrate'));
      // A rollback copies the tables again.
      assertExit(await shop.svc('db', 'migrate', 'rollback', '--allow-destructive'));
      assert.deepEqual(await connection.introspect(), before);
    }));

  it('a dry run shows rows that will be rejected', () =>
    engine.withUrl(async (url, connect) => {
      const { connection } = await connect();
      const shop = project({ main: url });
      write(shop, first);
      assertExit(await shop.svc('db', 'migrate'));
      await connection.query('INSERT INTO tiny (id) VALUES (1), (2)');
      write(shop, migration('20260102_000000_second').modifyField('tiny', 'note', { required: true }).build());
      const { stdout } = assertExit(await shop.svc('db', 'migrate', '--dry-run'));
      assert.match(stdout, /^-- will fail: data_violates: .*note would be required.* 2 such rows/m);
      const [database] = json(assertExit(await shop.svc('db', 'migrate', '--dry-run', '--json'))).databases;
      assert.equal(database.plan[0].statements[0].fails.code, 'data_violates');
    }));

  it('the schema API changes small tables, and names its own option for large ones', () =>
    engine.withUrl(async (url, connect) => {
      const { connection } = await connect();
      const shop = project({ main: url });
      const services: DatabaseService[] = [];
      const connectShop = (options = {}) => {
        const service = new DatabaseService({ configFile: `${shop.root}/svc.config.json` });
        services.push(service);
        return service.connect({ database: 'main', options });
      };
      const db = await connectShop();
      for (const name of ['parents', 'orders'])
        await db.schema.create(name, { id: { type: 'integer', primaryKey: true }, parent: 'integer', note: 'string' });
      await connection.query(`INSERT INTO orders (id) ${numbers(20)}`);
      await db.schema.addConstraint('orders', reference('orders_parent'));
      await db.schema.modifyField('orders', 'note', { type: 'text' });
      await connection.query(`INSERT INTO orders (id) SELECT i + 20 FROM (${numbers(990)}) AS more`);
      const refused = await expectError(
        db.schema.modifyField('orders', 'note', { type: 'string', length: 50 }),
        'copy_required',
      );
      assert.match(refused.message, /"orders".* its 1,010 rows/);
      assert.match(refused.next[0] ?? '', /options: \{ allowCopy: true \}/);
      assert.doesNotMatch(refused.next.join('\n'), /--allow-copy/);
      const asking = new MigrationEngine(db.getAdapter());
      const change = migration('20990101_000000_change').modifyField('orders', 'note', { type: 'string', length: 50 });
      assert.match((await expectError(asking.up(change.build()), 'copy_required')).next[0] ?? '', /allow: \['copy'\]/);
      await asking.up(change.allow('copy').build());
      const allowing = await connectShop({ allowCopy: true });
      await allowing.schema.modifyField('orders', 'note', { type: 'text' });
      for (const service of services) await service.close();
    }));
}

for (const engine of sqlEngines) {
  const it = testOn(engine);

  it('a dry run shows the rows that are lost, and the file permits it, but not its rollback', () =>
    engine.withUrl(async (url, connect) => {
      const shop = project({ main: url });
      write(shop, first);
      assertExit(await shop.svc('db', 'migrate'));
      const fill = await connect();
      await fill.connection.query(`INSERT INTO orders (id) ${numbers(12)}`);
      await fill.connection.query('INSERT INTO tiny (id) VALUES (1)');
      await fill.connection.close();
      const second = migration('20260102_000000_second')
        .renameCollection('orders', 'bills')
        .dropCollection('bills')
        .dropField('tiny', 'note')
        .createCollection('logs', [key])
        .build();
      write(shop, second);
      const { stdout } = assertExit(await shop.svc('db', 'migrate', '--dry-run'));
      assert.match(
        stdout,
        /^-- destroys data: "orders" \(12 rows\), "tiny" \(1 row\)\n-- {3}needs --allow-destructive, or "allow": \["destructive"\] in the migration$/m,
      );
      assert.match(stdout, /^-- destroys data: "orders" \(12 rows\):\n(-- not in a transaction:\n)?DROP TABLE/m);
      const [database] = json(assertExit(await shop.svc('db', 'migrate', '--dry-run', '--json'))).databases;
      assert.deepEqual(database.needs, ['destructive']);
      assert.deepEqual(
        database.plan[0].statements.flatMap(({ loses }: { loses?: object }) => loses ?? []),
        [
          { table: 'orders', rows: 12 },
          { table: 'tiny', rows: 1 },
        ],
      );
      const refused = json(assertExit(await shop.svc('db', 'migrate', '--json'), 8));
      assert.match(refused.nextActions.join('\n'), /"allow": \["destructive"\]/);
      write(shop, { ...second, allow: ['destructive'] });
      assert.doesNotMatch(assertExit(await shop.svc('db', 'migrate', '--dry-run')).stdout, /needs --allow-destructive/);
      assertExit(await shop.svc('db', 'migrate'));
      const third = migration('20260103_000000_third')
        .addField('logs', { name: 'word', type: 'string' })
        .allow('destructive')
        .build();
      write(shop, third);
      assertExit(await shop.svc('db', 'migrate'));
      const again = await connect();
      await again.connection.query('INSERT INTO logs (id) VALUES (1)');
      await again.connection.close();
      assertExit(await shop.svc('db', 'migrate', 'rollback'), 8);
    }));
}

test('a migration can permit only what exists', async () => {
  const other = migration('20260101_000000_x')
    .createCollection('x', [key])
    .allow('copies' as 'copy');
  assert.match(
    (
      await expectError(
        Promise.resolve().then(() => other.build()),
        'migration_invalid',
      )
    ).why ?? '',
    /allow: .*"copy" and "destructive"/,
  );
});

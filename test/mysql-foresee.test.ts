import * as assert from 'node:assert/strict';
import type { Adapter } from '../core/database/adapter.ts';
import { migration } from '../core/migration/builder.ts';
import { MigrationEngine } from '../core/migration/engine.ts';
import type { Migration } from '../core/migration/migration.ts';
import { resolve } from '../core/migration/resolve.ts';
import { migrate } from '../core/migration/run.ts';
import { replay } from '../core/schema/apply.ts';
import type { Operation } from '../core/schema/operation.ts';
import { mysql } from '../plugins/dialects/mysql/dialect.ts';
import { foresee } from '../plugins/dialects/mysql/foresee.ts';
import { mysqlTraits } from '../plugins/dialects/mysql/mysql-traits.ts';
import { connectAdapter } from './kit/adapter.ts';
import { definedInCode } from './kit/defined.ts';
import { committingEngines } from './kit/engines.ts';
import { refused } from './kit/refusal.ts';
import { test } from './kit/test.ts';

// What is refused before the first step of a run, because nothing would take back what stands before it.

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const first = migration('20260101_000000_first')
  .createCollection('big', [key, { name: 's', type: 'string', length: 20 }, { name: 'n', type: 'integer' }])
  .createCollection('parents', [key])
  .build();
/** Behind a step that nobody would miss if it were refused. */
const second = () => migration('20260102_000000_second').addField('parents', { name: 'a', type: 'integer' });

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: what is foreseen`, engine.missing);
    continue;
  }
  const on = (name: string, body: (adapter: Adapter, url: string) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () =>
      engine.withUrl(async (url, connect) => {
        const adapter = await connect();
        await migrate(adapter, [first].map(definedInCode));
        await adapter.connection.query('INSERT INTO big (id) VALUES (1), (2), (3)');
        await body(adapter, url);
      }));
  const all = (...migrations: Migration[]) => [first, ...migrations].map(definedInCode);
  const fields = async ({ connection }: Adapter, table: string) => [
    ...((await connection.introspect()).get(table)?.fields.keys() ?? []),
  ];
  const foreignKey = {
    name: 'f',
    type: 'foreignKey',
    columns: ['n'],
    references: { table: 'parents', columns: ['id'] },
  } as const;

  on('a copy that stands behind other steps is refused before any of them', async (adapter) => {
    const copies = [
      second().addConstraint('big', foreignKey),
      second().modifyField('big', 's', { type: 'text' }),
      // Whatever it is called by then.
      second().renameCollection('big', 'huge').renameField('huge', 's', 'v').modifyField('huge', 'v', { type: 'text' }),
    ].map((one) => one.build());
    for (const one of copies) {
      const refusal = await refused(migrate(adapter, all(one)), 'copy_required');
      assert.match(refusal.message, /"big".* its 3 rows/);
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.match(refusal.where ?? '', /^20260102_000000_second, step \d of \d/);
    }
    assert.deepEqual(await fields(adapter, 'parents'), ['id']);
    const third = migration('20260103_000000_third').modifyField('big', 's', { type: 'text' }).build();
    await refused(migrate(adapter, all(second().build(), third)), 'copy_required');
    assert.equal((await new MigrationEngine(adapter).getHistory()).length, 1);
    const left = await adapter.connection.query(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%rehearsal%'",
    );
    assert.deepEqual(left, []);
  });

  on('a check that the run drops hides nothing that stands behind it', async (adapter) => {
    const positive = { name: 'c', type: 'check', expression: 'n > 0', columns: ['n'] } as const;
    const checked = migration('20260102_000000_checked')
      .createCollection('checked', [key, { name: 'n', type: 'integer' }])
      .addConstraint('checked', positive)
      .build();
    await migrate(adapter, all(checked));
    await adapter.connection.query('INSERT INTO checked VALUES (1, 1), (2, 2)');
    const drop = (tag: string) => migration(tag).dropConstraint('checked', 'c');
    for (const copy of [
      drop('20260103_000000_copy').modifyField('checked', 'n', { type: 'bigint' }),
      drop('20260103_000000_copy').renameField('checked', 'n', 'm').modifyField('checked', 'm', { type: 'bigint' }),
    ]) {
      const refusal = await refused(migrate(adapter, all(checked, copy.build())), 'copy_required');
      assert.match(refusal.message, /"checked".* its 2 rows/);
      assert.equal(refusal.state, 'Nothing was changed.');
    }
    assert.ok((await adapter.connection.introspect()).get('checked')?.constraints.has('c'));
    await migrate(adapter, all(checked, drop('20260103_000000_rename').renameField('checked', 'n', 'm').build()));
    assert.deepEqual(await fields(adapter, 'checked'), ['id', 'm']);
  });

  on('what nobody could foresee is told at its step, with what it takes to go on', async (adapter, url) => {
    const late = second()
      .raw(engine.dialect.name, 'INSERT INTO parents (id) VALUES (1)')
      .modifyField('parents', 'a', { type: 'text' })
      .build();
    const refusal = await refused(migrate(adapter, all(late), { allowDestructive: true }), 'migration_half_done');
    assert.match(
      refusal.why ?? '',
      /^step 3 of 3: .*"parents" would have to be copied, with its 1 row\..*Nobody could/s,
    );
    assert.match(refusal.next[0] ?? '', /--allow-copy/);
    assert.match(refusal.next.join('\n'), new RegExp(`resolve ${late.tag} --retry`));
    const allowing = await connectAdapter(engine.dialect, url, { allowCopy: true });
    try {
      assert.equal((await resolve(allowing, late.tag, 'retry')).status, 'completed');
    } finally {
      await allowing.connection.close();
    }
  });

  on('rows that a required field without a default would meet are told before any step', async (adapter) => {
    const demand = second().addField('big', { name: 'r', type: 'integer', required: true }).build();
    const refusal = await refused(migrate(adapter, all(demand)), 'data_violates');
    assert.equal(refusal.state, 'Nothing was changed.');
    assert.deepEqual(await fields(adapter, 'parents'), ['id']);
  });

  on('values that the new type does not take are told before any step', async (adapter, url) => {
    await adapter.connection.query('UPDATE big SET n = id');
    const change = (one: string[]) => ({ type: 'enum' as const, enumValues: one });
    const allowing = await connectAdapter(engine.dialect, url, { allowCopy: true });
    try {
      const demand = second()
        .modifyField('big', 'n', change(['1', '2']))
        .build();
      const refusal = await refused(migrate(allowing, all(demand), { allowDestructive: true }), 'data_violates');
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.deepEqual(await fields(adapter, 'parents'), ['id']);
      // Rows that the run itself corrects before it are none of its business.
      const corrected = second()
        .raw(engine.dialect.name, 'UPDATE big SET n = 2 WHERE n = 3')
        .modifyField('big', 'n', change(['1', '2']))
        .build();
      await migrate(allowing, all(corrected), { allowDestructive: true });
    } finally {
      await allowing.connection.close();
    }
  });

  on('a table at which another database points is not dropped behind other steps', async (adapter) => {
    const { connection } = adapter;
    const [row] = await connection.query('SELECT DATABASE() AS name');
    const other = `${row?.name}_o`;
    await connection.query('ALTER TABLE big ADD CONSTRAINT near FOREIGN KEY (n) REFERENCES parents (id)');
    await connection.query(`CREATE DATABASE ${other}`);
    try {
      await connection.query(
        `CREATE TABLE ${other}.pointing (id int PRIMARY KEY, p int, CONSTRAINT far FOREIGN KEY (p) REFERENCES ${row?.name}.parents (id))`,
      );
      const dropping = (from = migration('20260102_000000_second')) =>
        from.renameCollection('parents', 'elders').dropCollection('elders', { cascade: true }).build();
      const refusal = await refused(
        migrate(adapter, all(dropping()), { allowDestructive: true }),
        'collection_referenced',
      );
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.match(refusal.why ?? '', new RegExp(`far.* of .*${other}.*pointing`));
      assert.deepEqual([...((await connection.introspect()).get('big')?.constraints.keys() ?? [])], ['near']);
      // What a user does before it in the run nobody can tell.
      const freed = migration('20260102_000000_second').raw(
        engine.dialect.name,
        `ALTER TABLE ${other}.pointing DROP FOREIGN KEY far`,
      );
      await migrate(adapter, all(dropping(freed)), { allowDestructive: true });
      assert.deepEqual([...(await connection.introspect()).keys()], ['big']);
    } finally {
      await connection.query(`DROP DATABASE ${other}`);
    }
  });

  on('nothing is refused of what would have passed', async (adapter, url) => {
    const copying = (tag: string) => migration(tag).modifyField('big', 's', { type: 'text' });
    // Empty by then, made anew by then, or allowed.
    const emptied = second().raw(engine.dialect.name, 'DELETE FROM big').build();
    await migrate(adapter, all(emptied, copying('20260103_000000_third').build()));
    await adapter.connection.query('INSERT INTO big (id) VALUES (1)');
    const anew = migration('20260104_000000_anew')
      .dropCollection('big')
      .createCollection('big', [key, { name: 's', type: 'string', length: 20 }])
      .modifyField('big', 's', { type: 'text' })
      .build();
    const defined = all(emptied, copying('20260103_000000_third').build(), anew);
    await migrate(adapter, defined, { allowDestructive: true });
    await adapter.connection.query('INSERT INTO big (id) VALUES (1)');
    const back = migration('20260105_000000_back')
      .addField('parents', { name: 'b', type: 'integer' })
      .modifyField('big', 's', { type: 'string', length: 30 })
      .build();
    await refused(migrate(adapter, [...defined, definedInCode(back)], { allowDestructive: true }), 'copy_required');
    const allowing = await connectAdapter(engine.dialect, url, { allowCopy: true });
    try {
      await migrate(allowing, [...defined, definedInCode(back)], { allowDestructive: true });
    } finally {
      await allowing.connection.close();
    }
    assert.deepEqual(await fields(adapter, 'parents'), ['id', 'a', 'b']);
  });
}

test('a server that tells no tables apart by case is given names in lower case only', async () => {
  const asking = { traits: mysqlTraits, version: [8, 4, 0], allowCopy: false, foldsTables: true } as const;
  const never = () => Promise.reject(new Error('nothing has to be asked'));
  const model = replay([{ type: 'createCollection', name: 'people', fields: [key] }]);
  const told = (...operations: Operation[]) =>
    foresee(
      { ...asking, exec: never },
      operations.flatMap((operation) => mysql.compile(operation, model)),
    );
  const lower: Operation = { type: 'createCollection', name: 'orders', fields: [key] };
  assert.equal(await told(lower), undefined);
  for (const operation of [
    { type: 'createCollection', name: 'Orders', fields: [key] },
    { type: 'renameCollection', collection: 'people', to: 'Persons' },
  ] as const) {
    const refusal = (await told(lower, operation))?.error as Error & { code?: string };
    assert.equal(refusal.code, 'name_invalid');
    assert.match(refusal.message, /"Orders"|"Persons"/);
  }
});

import * as assert from 'node:assert/strict';
import type { ErrorCode } from '../core/error-codes.ts';
import type { SvcError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { resolveMigration } from '../core/migration/resolve.ts';
import type { Target } from '../core/migration/target.ts';
import { applyAll } from '../core/schema/apply.ts';
import type { FieldType } from '../core/schema/model.ts';
import type { FieldChanges, NamedFieldDefinition, Operation } from '../core/schema/operation.ts';
import { mysql, mysqlTraits } from '../plugins/dialects/mysql/dialect.ts';
import { preflight } from '../plugins/dialects/mysql/run/preflight.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// Failures that are reported before the first step of a run, because earlier steps are not rolled back.

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const first = migration('20260101_000000_first')
  .createCollection('big', [key, { name: 's', type: 'string', length: 20 }, { name: 'n', type: 'integer' }])
  .createCollection('parents', [key])
  .build();
/** A migration that starts with a harmless step. */
const second = () => migration('20260102_000000_second').addField('parents', { name: 'a', type: 'integer' });

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: preflight`, engine.missing);
    continue;
  }
  const on = (name: string, body: (adapter: Target, url: string) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () =>
      engine.withUrl(async (url, connect) => {
        // Every table with a row is too large to be copied without permission.
        const adapter = await connect(undefined, { copyRows: 0 });
        await migrate(adapter, [first].map(definedInCode));
        await adapter.connection.query('INSERT INTO big (id) VALUES (1), (2), (3)');
        await body(adapter, url);
      }));
  const all = (...migrations: Migration[]) => [first, ...migrations].map(definedInCode);
  const fields = async ({ connection }: Target, table: string) => [
    ...((await connection.introspect()).get(table)?.fields.keys() ?? []),
  ];
  const foreignKey = {
    name: 'f',
    type: 'foreignKey',
    columns: ['n'],
    references: { table: 'parents', columns: ['id'] },
  } as const;

  on(
    'a rollback that creates a referenced table without its rows runs nothing while rows reference it',
    async (adapter, url) => {
      const one = await connectTarget(engine.dialect, url, { allowCopy: true });
      const refers = migration('20260102_000000_refers').addConstraint('big', foreignKey).build();
      const dropped: readonly Operation[] = [
        { type: 'dropConstraint', collection: 'big', constraint: 'f' },
        { type: 'dropCollection', collection: 'parents' },
      ];
      const create: Operation = { type: 'createCollection', name: 'parents', fields: [key] };
      const add: Operation = { type: 'addConstraint', collection: 'big', constraint: foreignKey };
      const files = all(refers, { tag: '20260103_000000_drops', name: 'drops', up: dropped, down: [create, add] });
      await adapter.connection.query('INSERT INTO parents VALUES (7)');
      await adapter.connection.query('UPDATE big SET n = 7 WHERE id < 3');
      await migrate(one, files, { allowDestructive: true });
      const error = await expectError(rollback(one, { allowDestructive: true }), 'data_violates');
      assert.match(error.why ?? '', /"parents" is created first, without rows\. "big" has 2 such rows/);
      assert.deepEqual(await fields(one, 'parents'), []);
      await adapter.connection.query('UPDATE big SET n = NULL');
      const { migrations } = await rollback(one, { allowDestructive: true });
      assert.equal(migrations.length, 1);
      assert.ok((await one.connection.introspect()).get('big')?.constraints.has('f'));
      await one.connection.close();
    },
  );

  on('a foreign key of a new field is judged by the default of the field', async (_, url) => {
    const target = await connectTarget(engine.dialect, url, { allowCopy: true });
    const { connection } = target;
    const parent = { name: 'p', type: 'integer', default: 5 } as const;
    const refers = (table: string) => ({ ...foreignKey, columns: ['q'], references: { table, columns: ['id'] } });
    const change = (definition: NamedFieldDefinition, table = 'owners') =>
      second()
        .createCollection('owners', [key])
        .addField('big', definition)
        .renameField('big', definition.name, 'q')
        .addConstraint('big', refers(table))
        .build();
    for (const [one, why] of [
      [change(parent), /"owners" is created first, without rows\. "big" has 3 such rows/],
      [change({ ...parent, required: true }), /"owners" is created first/],
      [change(parent, 'parents'), /Values of q reference no row of "parents"\. "big" has 3 such rows/],
      [
        second()
          .addField('big', parent)
          .addConstraint('big', { name: 'u', type: 'unique', columns: ['p'] })
          .build(),
        /Values of p occur more than once/,
      ],
    ] as const) {
      const error = await expectError(migrate(target, all(one)), 'data_violates');
      assert.match(error.why ?? '', why);
      assert.equal(error.state, 'Nothing was changed.');
      assert.deepEqual(await fields(target, 'parents'), ['id']);
    }
    await connection.query('INSERT INTO parents VALUES (5)');
    await migrate(target, all(change(parent, 'parents')));
    assert.deepEqual(await connection.query('SELECT DISTINCT q FROM big'), [{ q: 5 }]);
    const third = migration('20260103_000000_third')
      .createCollection('others', [key])
      .addField('big', { name: 'o', type: 'integer' })
      .addConstraint('big', { ...refers('others'), name: 'g', columns: ['o'] })
      .build();
    await migrate(target, all(change(parent, 'parents'), third));
    assert.ok((await connection.introspect()).get('big')?.constraints.has('g'));
    await connection.close();
  });

  on('a field or table that a view or a trigger reads is neither renamed nor dropped', async (adapter) => {
    const query = (text: string) => adapter.connection.query(text);
    await query('CREATE VIEW sums AS SELECT b.s AS text, p.id FROM big b JOIN parents p ON p.id = b.n');
    await query("CREATE VIEW others AS SELECT id, 'b.`n`' AS n FROM parents");
    await query('CREATE TRIGGER lower_s BEFORE INSERT ON big FOR EACH ROW SET NEW.`s` = LOWER(NEW.s)');
    await query(
      'CREATE TRIGGER count_n AFTER INSERT ON parents FOR EACH ROW UPDATE big SET n = n + 1 WHERE id = NEW.id',
    );
    const change = () => migration('20260102_000000_second');
    const number = { name: 'n', type: 'integer' } as const;
    for (const [one, reader] of [
      [change().renameField('big', 's', 'v'), /"big\.s" cannot be renamed: the view "sums" reads it/],
      [second().renameField('big', 's', 'v'), /the view "sums" reads it/],
      [change().dropField('big', 'n', { was: number }), /"big\.n" cannot be dropped: the view "sums" reads it/],
      [change().renameCollection('big', 'huge'), /The table "big" cannot be renamed: the view "sums" reads it/],
      [change().renameCollection('big', 'huge').renameField('huge', 's', 'v'), /the view "sums" reads it/],
    ] as const) {
      const error = await expectError(
        migrate(adapter, all(one.build()), { allowDestructive: true }),
        'collection_referenced',
      );
      assert.match(error.message, reader);
      assert.equal(error.state, 'Nothing was changed.');
    }
    // As the error advises.
    const around = change()
      .raw(engine.name, 'DROP VIEW `sums`')
      .renameField('big', 's', 'v')
      .raw(engine.name, 'CREATE VIEW sums AS SELECT v FROM big')
      .renameField('big', 'v', 's')
      .raw(engine.name, 'DROP VIEW sums');
    await migrate(adapter, all({ ...around.build(), allow: ['destructive'] }));
    await query('DELETE FROM _svc_migrations WHERE seq > 1');
    for (const [one, reader] of [
      [change().renameField('big', 's', 'v'), /the trigger "lower_s" reads it/],
      [change().renameField('big', 'n', 'm'), /the trigger "count_n" reads it/],
      [change().renameCollection('big', 'huge'), /the trigger "count_n" reads it/],
    ] as const) {
      assert.match((await expectError(migrate(adapter, all(one.build())), 'collection_referenced')).message, reader);
    }
    await query('DROP TRIGGER count_n');
    await query('DROP TRIGGER lower_s');
    const last = change()
      .renameCollection('big', 'huge')
      .renameField('huge', 's', 'v')
      .dropField('huge', 'n', { was: number })
      .build();
    await migrate(adapter, all(last), { allowDestructive: true });
    assert.deepEqual(await fields(adapter, 'huge'), ['id', 'v']);
    assert.equal((await query('SELECT n FROM others')).length, 0);
  });

  on('what a run renames is judged under the name that it has now', async (adapter) => {
    const query = (text: string) => adapter.connection.query(text);
    await query("UPDATE big SET s = 'x', n = 7 WHERE id > 1");
    const unique = { name: 'u', type: 'unique', columns: ['s'] } as const;
    const number = { name: 'm', type: 'integer' } as const;
    const refused = async (one: ReturnType<typeof second>, code: ErrorCode, expected: RegExp) => {
      const migrations = all(one.build());
      const refusal = await expectError(migrate(adapter, migrations, { allowDestructive: true }), code);
      assert.match(`${refusal.message} ${refusal.why}`, expected);
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.deepEqual(await fields(adapter, 'parents'), ['id']);
    };
    await refused(
      second().renameField('big', 's', 'v').renameField('big', 'v', 'w').modifyField('big', 'w', { required: true }),
      'data_violates',
      /w would be required/,
    );
    await refused(
      second()
        .renameField('big', 's', 'v')
        .addConstraint('big', { ...unique, columns: ['v'] }),
      'data_violates',
      /has 2 such rows/,
    );
    await refused(
      second()
        .renameField('big', 'n', 'm')
        .renameCollection('parents', 'elders')
        .addConstraint('big', {
          name: 'f',
          type: 'foreignKey',
          columns: ['m'],
          references: { table: 'elders', columns: ['id'] },
        }),
      'data_violates',
      /reference no row of "elders"\. .*has 2 such rows/,
    );
    // Two tables that change names.
    await refused(
      second()
        .renameCollection('big', 'other')
        .renameCollection('parents', 'big')
        .renameCollection('other', 'parents')
        .addConstraint('parents', unique),
      'data_violates',
      /has 2 such rows/,
    );
    await query('UPDATE big SET n = NULL');
    await query('ALTER TABLE big ADD CONSTRAINT by_hand FOREIGN KEY (n) REFERENCES parents (id)');
    const drop = second().renameField('big', 'n', 'm').dropField('big', 'm', { was: number });
    await refused(drop, 'field_in_use', /"big\.n" cannot be dropped.*by_hand/);
  });

  on('a field that a generated field or a check made by hand reads is neither dropped nor renamed', async (adapter) => {
    const query = (text: string) => adapter.connection.query(text);
    const number = { name: 'n', type: 'integer' } as const;
    await query('DELETE FROM big');
    await query('ALTER TABLE big ADD g int GENERATED ALWAYS AS (`n` + 1) VIRTUAL');
    const dropped = () => second().dropField('big', 'n', { was: number });
    const renamed = () => second().renameField('big', 'n', 'm');
    const refused = async (one: ReturnType<typeof second>, reader: RegExp) => {
      const refusal = await expectError(migrate(adapter, all(one.build()), { allowDestructive: true }), 'field_in_use');
      assert.match(refusal.message, reader);
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.deepEqual(await fields(adapter, 'parents'), ['id']);
    };
    await refused(dropped(), /"big\.n" cannot be dropped: the generated field "g" reads it/);
    const [advice = ''] = (
      await expectError(migrate(adapter, all(dropped().build()), { allowDestructive: true }), 'field_in_use')
    ).next;
    const followsRenames = engine.name === 'mariadb';
    if (!followsRenames) await refused(renamed(), /"big\.n" cannot be renamed: the generated field "g" reads it/);
    await query(advice.slice(advice.indexOf('ALTER')));
    await query('ALTER TABLE big ADD CONSTRAINT alone CHECK (n > 0), ADD CONSTRAINT by_hand CHECK (n > id)');
    await refused(dropped(), /"big\.n" cannot be dropped: the check "by_hand" reads it/);
    if (!followsRenames) await refused(renamed(), /"big\.n" cannot be renamed: the check "\w+" reads it/);
    await query(`ALTER TABLE big ${followsRenames ? 'DROP CONSTRAINT' : 'DROP CHECK'} by_hand`);
    // The server drops a check with the only field that it reads.
    await migrate(adapter, all(dropped().build()), { allowDestructive: true });
    assert.deepEqual(await fields(adapter, 'big'), ['id', 's']);
  });

  on('a field that a routine or an event made by hand reads is neither dropped nor renamed', async (adapter) => {
    const query = (text: string) => adapter.connection.query(text);
    const number = { name: 'n', type: 'integer' } as const;
    const text = (column: string) =>
      `CREATE FUNCTION biggest() RETURNS int READS SQL DATA RETURN (SELECT MAX(${column}) FROM big)`;
    await query("CREATE PROCEDURE unrelated() SELECT 'n of big' /* n of big */ FROM parents");
    for (const [create, drop, reader] of [
      [text('n'), 'DROP FUNCTION biggest', 'function "biggest"'],
      ['CREATE PROCEDURE reset() UPDATE big SET `n` = 0', 'DROP PROCEDURE reset', 'procedure "reset"'],
      ['CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY DO UPDATE big SET n = 0', 'DROP EVENT nightly', 'event "nightly"'],
    ] as const) {
      await query(create);
      for (const one of [
        second().renameField('big', 'n', 'm'),
        second().dropField('big', 'n', { was: number }),
        second().renameCollection('big', 'huge'),
      ]) {
        const refusal = await expectError(
          migrate(adapter, all(one.build()), { allowDestructive: true }),
          'collection_referenced',
        );
        assert.ok(refusal.message.includes(`: the ${reader} reads it.`), refusal.message);
        assert.equal(refusal.state, 'Nothing was changed.');
      }
      await query(drop);
    }
    // Moved aside, and created again with a text that is no longer valid.
    const view = (column: string) => `CREATE VIEW seen AS SELECT ${column}, 'n' AS t FROM big`;
    const trigger = (column: string) => `CREATE TRIGGER t BEFORE INSERT ON big FOR EACH ROW SET NEW.${column} = 1`;
    const objects = migration('20260101_000002_objects')
      .createObject('view', 'seen', view('n'))
      .createObject('trigger', 'big.t', trigger('n'))
      .build();
    const aside = (after: string) =>
      second()
        .dropObject('trigger', 'big.t', { was: trigger('n') })
        .dropObject('view', 'seen', { was: view('n') })
        .renameField('big', 'n', 'm')
        .createObject('view', 'seen', view(after))
        .createObject('trigger', 'big.t', trigger('m'))
        .build();
    await migrate(adapter, all(objects));
    const invalid = await expectError(migrate(adapter, all(objects, aside('n'))), 'collection_referenced');
    assert.match(`${invalid.message} ${invalid.why}`, /view "seen" cannot be created again.*reads "big\.n".* renames/);
    assert.equal(invalid.state, 'Nothing was changed.');
    await migrate(adapter, all(objects, aside('m')));
    await rollback(adapter, { count: 2 });
    // The run itself replaces it after the rename.
    const made = migration('20260101_000001_made').createObject('function', 'biggest', text('n')).build();
    await migrate(adapter, all(made));
    const followed = second()
      .renameField('big', 'n', 'm')
      .replaceObject('function', 'biggest', text('m'), { was: text('n') })
      .build();
    await migrate(adapter, all(made, followed));
    assert.deepEqual(await fields(adapter, 'big'), ['id', 's', 'm']);
    assert.equal((await query('SELECT biggest() AS b')).length, 1);
  });

  on('a table copy in a later step is rejected before any step', async (adapter) => {
    const copies = [
      second().addConstraint('big', foreignKey),
      second().modifyField('big', 's', { type: 'text' }),
      // Even after a rename.
      second().renameCollection('big', 'huge').renameField('huge', 's', 'v').modifyField('huge', 'v', { type: 'text' }),
    ].map((one) => one.build());
    for (const one of copies) {
      const refusal = await expectError(migrate(adapter, all(one)), 'copy_required');
      assert.match(refusal.message, /"big".* its 3 rows/);
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.match(refusal.where ?? '', /^20260102_000000_second, step \d of \d/);
    }
    assert.deepEqual(await fields(adapter, 'parents'), ['id']);
    const words = { type: 'enum', enumValues: ['a'] } as const;
    for (const [changes, who] of [
      [{ type: 'text' }, /cannot be written until.* MODIFY COLUMN `s` longtext/],
      [words, /cannot be read or written until.* MODIFY COLUMN `s` enum/],
    ] as const) {
      const onlyChange = migration('20260102_000000_second').modifyField('big', 's', changes).build();
      const later = second().modifyField('big', 's', changes).build();
      for (const one of [onlyChange, later])
        assert.match((await expectError(migrate(adapter, all(one)), 'copy_required')).why ?? '', who);
    }
    const third = migration('20260103_000000_third').modifyField('big', 's', { type: 'text' }).build();
    await expectError(migrate(adapter, all(second().build(), third)), 'copy_required');
    assert.equal((await new MigrationEngine(adapter).getHistory()).length, 1);
    const left = await adapter.connection.query(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%rehearsal%'",
    );
    assert.deepEqual(left, []);
  });

  on('a check that the run drops does not hide a copy in a later step', async (adapter) => {
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
      const refusal = await expectError(migrate(adapter, all(checked, copy.build())), 'copy_required');
      assert.match(refusal.message, /"checked".* its 2 rows/);
      assert.equal(refusal.state, 'Nothing was changed.');
    }
    assert.ok((await adapter.connection.introspect()).get('checked')?.constraints.has('c'));
    await migrate(adapter, all(checked, drop('20260103_000000_rename').renameField('checked', 'n', 'm').build()));
    assert.deepEqual(await fields(adapter, 'checked'), ['id', 'm']);
  });

  on('an unforeseeable failure is reported at its step, with what to do next', async (adapter, url) => {
    const late = second()
      .raw(engine.dialect.name, 'INSERT INTO parents (id) VALUES (1)')
      .modifyField('parents', 'a', { type: 'text' })
      .build();
    const refusal = await expectError(migrate(adapter, all(late), { allowDestructive: true }), 'migration_half_done');
    assert.match(
      refusal.why ?? '',
      /^step 3 of 3: .*"parents" would have to be copied, with its 1 row\..*cannot be written until/s,
    );
    assert.match(refusal.next.join('\n'), /--allow-copy\n.*"allow": \["copy"\]/);
    assert.match(refusal.next.join('\n'), new RegExp(`resolve ${late.tag} --retry`));
    const allowing = await connectTarget(engine.dialect, url, { allowCopy: true });
    try {
      assert.equal((await resolveMigration(allowing, late.tag, 'retry')).status, 'completed');
    } finally {
      await allowing.connection.close();
    }
  });

  on(
    'fields that the table got or lost by hand are reported before any step, also if it has no rows',
    async (adapter) => {
      const { connection } = adapter;
      const add = (table: string, name: string) => second().addField(table, { name, type: 'integer' });
      for (const [sql, undo, bad, code] of [
        ['ADD x int', 'DROP x', add('big', 'x'), 'field_exists'],
        ['ADD X int', 'DROP X', add('big', 'w').renameField('big', 'n', 'x'), 'field_exists'],
        ['RENAME COLUMN n TO m', 'RENAME COLUMN m TO n', add('big', 'w').dropField('big', 'n'), 'field_unknown'],
        ['RENAME COLUMN n TO m', 'RENAME COLUMN m TO n', add('big', 'w').renameField('big', 'n', 'o'), 'field_unknown'],
      ] as const) {
        for (const rows of [3, 0]) {
          if (rows === 0) await connection.query('CREATE TABLE spare AS SELECT * FROM big');
          if (rows === 0) await connection.query('DELETE FROM big');
          await connection.query(`ALTER TABLE big ${sql}`);
          const migrations = all(bad.build());
          const refusal = await expectError(migrate(adapter, migrations, { allowDestructive: true }), code);
          assert.equal(refusal.state, 'Nothing was changed.');
          assert.match(refusal.where ?? '', /step \d of \d/);
          const shown = (await previewMigrate(adapter, migrations, { allowDestructive: true })).flatMap(
            ({ statements }) => statements,
          );
          assert.equal(shown.filter(({ failure }) => failure !== undefined).length, 1);
          await connection.query(`ALTER TABLE big ${undo}`);
          assert.deepEqual(await fields(adapter, 'parents'), ['id']);
        }
        await connection.query('INSERT INTO big SELECT * FROM spare');
        await connection.query('DROP TABLE spare');
      }
      // What the run itself drops or renames first is no conflict.
      await migrate(
        adapter,
        all(second().renameField('big', 'n', 'o').addField('big', { name: 'n', type: 'integer' }).build()),
      );
    },
  );

  on('existing rows for a required field without a default are reported before any step', async (adapter) => {
    const demand = second().addField('big', { name: 'r', type: 'integer', required: true }).build();
    const refusal = await expectError(migrate(adapter, all(demand)), 'data_violates');
    assert.equal(refusal.state, 'Nothing was changed.');
    assert.deepEqual(await fields(adapter, 'parents'), ['id']);
  });

  on('rows that the server rejects at a step are reported before any step', async (adapter, url) => {
    const { connection } = adapter;
    await connection.query("UPDATE big SET n = 7, s = 'long enough' WHERE id > 1");
    const allowing = await connectTarget(engine.dialect, url, { allowCopy: true });
    const check = { name: 'c', type: 'check', expression: 'n > 7', columns: ['n'] } as const;
    // A field that the table gets before it hides none of them.
    const wide = () => second().addField('big', { name: 'w', type: 'integer' });
    const raw = (text: string) => second().raw(engine.dialect.name, text);
    const unique = { name: 'u', type: 'unique', columns: ['n', 's'] } as const;
    try {
      for (const [bad, why] of [
        [wide().modifyField('big', 's', { required: true }), /s would be required.* 1 such row/],
        [wide().modifyField('big', 's', { length: 3 }), /longer than 3.* 2 such rows/],
        [wide().modifyField('big', 'n', { unique: true }), /n occur more than once.* 2 such rows/],
        [wide().createIndex('big', 'u', [{ name: 's' }], { unique: true }), /s occur more than once/],
        [wide().addConstraint('big', unique), /n, s occur more than once/],
        [wide().addConstraint('big', check), /"c" is violated.* 2 such rows/],
        [wide().addConstraint('big', foreignKey), /n reference no row of "parents".* 2 such rows/],
      ] as const) {
        const refusal = await expectError(migrate(allowing, all(bad.build())), 'data_violates');
        assert.match(refusal.why ?? '', why);
        assert.equal(refusal.state, 'Nothing was changed.');
        assert.deepEqual(await fields(adapter, 'parents'), ['id']);
        assert.deepEqual(await fields(adapter, 'big'), ['id', 's', 'n']);
      }
      // Rows that the run itself corrects first, and tables that it creates.
      const corrected = raw('INSERT INTO parents (id) VALUES (7)').addConstraint('big', foreignKey).build();
      await migrate(allowing, all(corrected));
      const renamed = migration('20260103_000000_third')
        .renameField('big', 's', 'was')
        .addField('big', { name: 's', type: 'string', default: 'x' })
        .modifyField('big', 's', { required: true, length: 3 })
        .build();
      await migrate(allowing, all(corrected, renamed));
      const own = { ...foreignKey, name: 'own', references: { table: 'big', columns: ['id'] } } as const;
      const itself = migration('20260104_000000_fourth')
        .addField('parents', { name: 'b', type: 'integer' })
        .addConstraint('big', own)
        .build();
      const orphans = await expectError(migrate(allowing, all(corrected, renamed, itself)), 'data_violates');
      assert.match(orphans.why ?? '', /reference no row of "big".* 2 such rows/);
      await connection.query('UPDATE big SET n = NULL');
      await migrate(allowing, all(corrected, renamed, itself));
    } finally {
      await allowing.connection.close();
    }
  });

  on('a foreign key between incompatible types is rejected before any step', async (adapter, url) => {
    const allowing = await connectTarget(engine.dialect, url, { allowCopy: true });
    const child = (type: FieldType, parent: string) =>
      migration('20260102_000000_second')
        .createCollection('children', [
          key,
          { name: 'p', type, required: true, ...(type === 'bigint' && { default: 7 }) },
        ])
        .addConstraint('children', {
          name: 'c',
          type: 'foreignKey',
          columns: ['p'],
          references: { table: parent, columns: ['id'] },
        });
    const refuse = async (bad: { build(): Migration }, code: ErrorCode, why: RegExp) => {
      const refusal = await expectError(migrate(allowing, all(bad.build())), code);
      assert.match(refusal.why ?? '', why);
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.deepEqual([...(await adapter.connection.introspect(['children', 'parents'])).keys()], ['parents']);
      return refusal;
    };
    /** The advised statement, which must keep everything but the type. */
    const advisedSql = ({ next }: SvcError, definition: string): string => {
      const statement = next[0]?.split('before the constraint: ')[1] ?? '';
      assert.match(statement, new RegExp(`MODIFY \`p\` ${definition}$`));
      return statement;
    };
    try {
      await refuse(child('bigint', 'parents'), 'constraint_invalid', /"children.p" is of type bigint.* integer/);
      await adapter.connection.query('CREATE TABLE users (id bigint unsigned PRIMARY KEY)');
      const refused = await refuse(
        child('bigint', 'users'),
        'constraint_invalid',
        /of type bigint, "users.id" of type bigint.* unsigned/,
      );
      if (engine.dialect.name === 'mariadb') {
        await adapter.connection.query('CREATE TABLE things (id uuid PRIMARY KEY)');
        await refuse(child('uuid', 'things'), 'constraint_invalid', /char\(36\).* of type uuid/);
      }
      const recipe = migration('20260102_000000_second')
        .createCollection('children', [key, { name: 'p', type: 'bigint', required: true, default: 7 }])
        .raw(engine.dialect.name, advisedSql(refused, 'bigint(\\(20\\))? unsigned NOT NULL DEFAULT 7'))
        .addConstraint('children', {
          name: 'c',
          type: 'foreignKey',
          columns: ['p'],
          references: { table: 'users', columns: ['id'] },
        })
        .build();
      await migrate(allowing, all(recipe));
      assert.equal(
        (await adapter.connection.introspect(['children'])).get('children')?.fields.get('p')?.required,
        true,
      );
      await adapter.connection.query(
        "CREATE TABLE older (id int PRIMARY KEY, p bigint NOT NULL DEFAULT 7 COMMENT 'the parent')",
      );
      const toUsers = { type: 'foreignKey', columns: ['p'], references: { table: 'users', columns: ['id'] } } as const;
      const later = migration('20260103_000000_later')
        .createCollection('unrelated', [key])
        .addConstraint('older', { name: 'older_p', ...toUsers })
        .build();
      const existing = await expectError(migrate(allowing, all(recipe, later)), 'constraint_invalid');
      const text = advisedSql(existing, "bigint(\\(20\\))? unsigned NOT NULL DEFAULT '?7'? COMMENT 'the parent'");
      await adapter.connection.query(text);
      await adapter.connection.query('DROP TABLE older');
      const addForeignKey = migration('20260103_000000_third').addConstraint('big', foreignKey).build();
      await migrate(allowing, all(recipe, addForeignKey));
      const widen = () => migration('20260104_000000_fourth').addField('children', { name: 'a', type: 'integer' });
      for (const [table, field] of [
        ['parents', 'id'],
        ['big', 'n'],
      ] as const) {
        const widened = widen().modifyField(table, field, { type: 'bigint' }).build();
        const refusal = await expectError(migrate(allowing, all(recipe, addForeignKey, widened)), 'field_in_use');
        assert.match(refusal.why ?? '', /The foreign key "f" of "big"/);
        assert.equal(refusal.state, 'Nothing was changed.');
      }
      const readded = widen()
        .dropConstraint('big', 'f')
        .modifyField('parents', 'id', { type: 'bigint' })
        .modifyField('big', 'n', { type: 'bigint' })
        .addConstraint('big', foreignKey)
        .build();
      await migrate(allowing, all(recipe, addForeignKey, readded));
    } finally {
      await allowing.connection.close();
    }
  });

  on('values that the new type does not have are reported before any step', async (adapter, url) => {
    await adapter.connection.query('UPDATE big SET n = id');
    const change = (one: string[]) => ({ type: 'enum' as const, enumValues: one });
    const allowing = await connectTarget(engine.dialect, url, { allowCopy: true });
    try {
      const demand = second()
        .modifyField('big', 'n', change(['1', '2']))
        .build();
      const refusal = await expectError(migrate(allowing, all(demand), { allowDestructive: true }), 'data_violates');
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.deepEqual(await fields(adapter, 'parents'), ['id']);
      // Rows that the run itself corrects first do not count.
      const corrected = second()
        .raw(engine.dialect.name, 'UPDATE big SET n = 2 WHERE n = 3')
        .modifyField('big', 'n', change(['1', '2']))
        .build();
      await migrate(allowing, all(corrected), { allowDestructive: true });
      const without = migration('20260103_000000_third')
        .addField('parents', { name: 'b', type: 'integer' })
        .modifyField('big', 'n', change(['1']))
        .build();
      assert.equal(
        (await expectError(migrate(allowing, all(corrected, without)), 'data_violates')).state,
        'Nothing was changed.',
      );
      assert.deepEqual(await fields(adapter, 'parents'), ['id', 'a']);
    } finally {
      await allowing.connection.close();
    }
  });

  on('values that do not fit a changed type are reported before any step', async (adapter, url) => {
    const fits: readonly [Omit<NamedFieldDefinition, 'name'>, bad: string, good: string, FieldChanges][] = [
      [{ type: 'bigint' }, '2147483648', '-2147483648', { type: 'integer' }],
      [{ type: 'bigint' }, '-9223372036854775808', '9999', { type: 'decimal', precision: 6, scale: 2 }],
      [{ type: 'float' }, '1e30', '1e18', { type: 'bigint' }],
      [{ type: 'decimal', precision: 10, scale: 3 }, '9999.995', '-9999.994', { precision: 6, scale: 2 }],
      [{ type: 'string' }, "'99999999999'", "'-42'", { type: 'integer' }],
      [{ type: 'string' }, "'12abc'", "'-1.5e2 '", { type: 'decimal', precision: 6, scale: 2 }],
      [{ type: 'string' }, "'2026-02-30'", "'2026-02-28'", { type: 'date' }],
      [{ type: 'string' }, "'{'", "'{}'", { type: 'json' }],
      [{ type: 'binary', length: 10 }, '0x0000000000', '0xffffffff', { length: 4 }],
      [{ type: 'blob' }, '0xff', "'é'", { type: 'text' }],
      [{ type: 'datetime' }, "'1970-01-01'", "'2037-12-31'", { type: 'timestamp' }],
      [{ type: 'datetime' }, "'2107-01-01'", "'2038-01-19 03:14:07.999'", { type: 'timestamp' }],
      [{ type: 'integer' }, '-9999', '9999', { type: 'string', length: 4 }],
      [{ type: 'enum', enumValues: ['a', 'words'] }, "'words'", "'a'", { type: 'string', length: 4 }],
      [{ type: 'date' }, "'2026-01-01'", 'NULL', { type: 'json' }],
    ];
    const names = fits.map((_, index) => `f${index}`);
    const odd = migration('20260102_000000_odd')
      .createCollection('odd', [key, ...fits.map(([field], index) => ({ name: `f${index}`, ...field }))])
      .build();
    await migrate(adapter, all(odd));
    const goods = fits.map(([, , good]) => good);
    const bads = fits.map(([, bad]) => bad);
    await adapter.connection.query(`INSERT INTO odd VALUES (1, ${goods.join(', ')}), (2, ${bads.join(', ')})`);
    const allowing = await connectTarget(engine.dialect, url, { allowCopy: true });
    const changing = (chosen: readonly number[]) =>
      chosen.reduce(
        (made, index) => made.modifyField('odd', names[index] ?? '', fits[index]?.[3] ?? {}),
        migration('20260103_000000_third').addField('parents', { name: 'b', type: 'integer' }),
      );
    try {
      for (const index of fits.keys()) {
        const attempt = migrate(allowing, all(odd, changing([index]).build()), { allowDestructive: true });
        const refusal = await expectError(attempt, 'data_violates');
        assert.match(refusal.why ?? '', new RegExp(`Values of f${index} .* 1 such row`));
        assert.equal(refusal.state, 'Nothing was changed.');
      }
      assert.deepEqual(await fields(adapter, 'parents'), ['id']);
      await adapter.connection.query('DELETE FROM odd WHERE id = 2');
      await migrate(allowing, all(odd, changing([...fits.keys()]).build()), { allowDestructive: true });
    } finally {
      await allowing.connection.close();
    }
  });

  on('a table that another database references is not dropped after other steps', async (adapter) => {
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
      const refusal = await expectError(
        migrate(adapter, all(dropping()), { allowDestructive: true }),
        'collection_referenced',
      );
      assert.equal(refusal.state, 'Nothing was changed.');
      assert.match(refusal.why ?? '', new RegExp(`far.* of .*${other}.*pointing`));
      assert.deepEqual([...((await connection.introspect()).get('big')?.constraints.keys() ?? [])], ['near']);
      // After a raw statement, the references are unknown.
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

  on('a plan shows the SQL that will be sent, so that running it by hand keeps every attribute', async (adapter) => {
    const { connection } = adapter;
    const showCreate = async () => String((await connection.query('SHOW CREATE TABLE big'))[0]?.['Create Table']);
    await connection.query("ALTER TABLE big MODIFY s varchar(20) COLLATE utf8mb4_bin COMMENT 'keep'");
    const change = second()
      .modifyField('big', 's', { length: 60 })
      .renameField('big', 'n', 'm')
      // Its definition at that point is unknown.
      .modifyField('big', 'm', { type: 'bigint' })
      .build();
    const before = await showCreate();
    const [planned] = await previewMigrate(adapter, all(change));
    const texts = planned?.statements.map(({ text }) => text) ?? [];
    assert.equal(await showCreate(), before);
    assert.equal(texts[3], 'ALTER TABLE `big` MODIFY COLUMN `m` bigint NULL');
    for (const text of texts) await connection.query(text);
    assert.match(await showCreate(), /`s` varchar\(60\) .*COLLATE utf8mb4_bin .*COMMENT 'keep'/);
  });

  on('a run that would succeed is not rejected', async (adapter, url) => {
    const copying = (tag: string) => migration(tag).modifyField('big', 's', { type: 'text' });
    // Empty by then, created again by then, or allowed.
    const emptied = second().raw(engine.dialect.name, 'DELETE FROM big').build();
    await migrate(adapter, all(emptied, copying('20260103_000000_third').build()), { allowDestructive: true });
    await adapter.connection.query('INSERT INTO big (id) VALUES (1)');
    const recreated = migration('20260104_000000_recreated')
      .dropCollection('big')
      .createCollection('big', [key, { name: 's', type: 'string', length: 20 }])
      .modifyField('big', 's', { type: 'text' })
      .build();
    const defined = all(emptied, copying('20260103_000000_third').build(), recreated);
    await migrate(adapter, defined, { allowDestructive: true });
    await adapter.connection.query('INSERT INTO big (id) VALUES (1)');
    const back = migration('20260105_000000_back')
      .addField('parents', { name: 'b', type: 'integer' })
      .modifyField('big', 's', { type: 'string', length: 30 })
      .build();
    await expectError(migrate(adapter, [...defined, definedInCode(back)], { allowDestructive: true }), 'copy_required');
    const allowing = await connectTarget(engine.dialect, url, { allowCopy: true });
    try {
      await migrate(allowing, [...defined, definedInCode(back)], { allowDestructive: true });
    } finally {
      await allowing.connection.close();
    }
    assert.deepEqual(await fields(adapter, 'parents'), ['id', 'a', 'b']);
  });
}

test('a server that ignores the case of table names only gets names in lower case', async () => {
  const asking = {
    traits: mysqlTraits,
    database: 'shop',
    version: [8, 4, 0],
    allowCopy: false,
    copyRows: 0,
    foldsTableNames: true,
  } as const;
  const never = () => Promise.reject(new Error('no query is needed'));
  const model = applyAll([{ type: 'createCollection', name: 'people', fields: [key] }]);
  const failureOf = (...operations: Operation[]) =>
    preflight(
      { ...asking, exec: never },
      operations.flatMap((operation) => mysql.compile(operation, model)),
    );
  const lower: Operation = { type: 'createCollection', name: 'orders', fields: [key] };
  assert.deepEqual(await failureOf(lower), { failures: [], copies: [] });
  for (const operation of [
    { type: 'createCollection', name: 'Orders', fields: [key] },
    { type: 'renameCollection', collection: 'people', to: 'Persons' },
  ] as const) {
    const refusal = (await failureOf(lower, operation)).failures[0]?.error as Error & { code?: string };
    assert.equal(refusal.code, 'name_invalid');
    assert.match(refusal.message, /"Orders"|"Persons"/);
  }
});

import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { engines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// What reads a field or a table is found before the first migration of a run, because earlier ones are committed.

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const number = { name: 'n', type: 'integer' } as const;
const first = migration('20260101_000000_first').createCollection('big', [key, number]).build();
const harmless = migration('20260102_000000_harmless').createCollection('other', [key]).build();
const third = () => migration('20260103_000000_third');

for (const engine of engines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: preflight`, engine.missing);
    continue;
  }
  test(`${engine.name}: a type that is the same below its domain is no copy of a table with many rows`, () =>
    engine.withDatabase(async (target) => {
      const { connection } = target;
      await connection.query(
        "CREATE DOMAIN label AS text; CREATE DOMAIN title AS label; CREATE DOMAIN filled AS text CHECK (VALUE <> ''); CREATE DOMAIN short AS varchar(9)",
      );
      const label = { name: 's', type: 'text', native: 'label' } as const;
      const start = migration('20260101_000000_first').createCollection('big', [key, label]).build();
      await migrate(target, [start].map(definedInCode));
      await connection.query("INSERT INTO big SELECT n, 'x' FROM generate_series(1, 10001) n; ANALYZE big");
      const retyped = (native: string | null) => [
        start,
        third()
          .modifyField('big', 's', { native, type: 'text' }, { was: { native: 'label' } })
          .build(),
      ];
      for (const native of ['filled', 'short'])
        await expectError(migrate(target, retyped(native).map(definedInCode)), 'copy_required');
      for (const [make, drop] of [
        ["ALTER TABLE big ADD CONSTRAINT c CHECK (s <> '')", 'ALTER TABLE big DROP CONSTRAINT c'],
        ['CREATE INDEX i ON big (lower(s))', 'DROP INDEX i'],
      ] as const) {
        await connection.query(make);
        await expectError(migrate(target, retyped('title').map(definedInCode)), 'copy_required');
        await connection.query(drop);
      }
      const file = "SELECT pg_relation_filenode('big') AS file";
      const before = await connection.query(file);
      const [planned] = await previewMigrate(target, retyped('title').map(definedInCode));
      assert.ok(planned?.statements.every(({ lock }) => lock?.work !== 'write'));
      await migrate(target, retyped('title').map(definedInCode));
      await rollback(target);
      await migrate(target, retyped(null).map(definedInCode));
      assert.deepEqual(await connection.query(file), before);
    }));
  test(`${engine.name}: online, a foreign key to a table of the run is judged before it`, () =>
    engine.withDatabase(async (target) => {
      const { connection } = target;
      await migrate(target, [first].map(definedInCode));
      await connection.query('INSERT INTO big VALUES (1, 7), (2, NULL)');
      const refers = (columns: readonly string[], table = 'owners') =>
        ({ name: 'f', type: 'foreignKey', columns, references: { table, columns: ['id'] } }) as const;
      const owned = { name: 'o', type: 'integer', default: 5 } as const;
      const uuid = { name: 'o', type: 'uuid', default: '00000000-0000-4000-8000-000000000000' } as const;
      const online = (change: ReturnType<typeof third>) =>
        [first, { ...change.build(), online: true }].map(definedInCode);
      const creates = () => third().createCollection('owners', [key]);
      const renamed = third()
        .renameField('big', 'n', 'm')
        .renameCollection('big', 'huge')
        .createCollection('parents', [key])
        .renameCollection('parents', 'owners')
        .addConstraint('huge', refers(['m']));
      for (const [change, isOfNew] of [
        [creates().addConstraint('big', refers(['n'])), true],
        [
          creates()
            .addField('big', owned)
            .addConstraint('big', refers(['o'])),
          true,
        ],
        [
          third()
            .createCollection('owners', [{ ...key, type: 'uuid' }])
            .addField('big', uuid)
            .addConstraint('big', refers(['o'])),
          true,
        ],
        [renamed, true],
        [
          creates()
            .addField('big', owned)
            .addConstraint('big', refers(['o'], 'big')),
          false,
        ],
      ] as const) {
        const error = await expectError(migrate(target, online(change)), 'data_violates');
        assert.match(
          error.why ?? '',
          isOfNew ? /"owners" is created first, without rows/ : /foreign key constraint "f"/,
        );
        assert.equal(error.state, 'Nothing was changed.');
        assert.ok(!(await connection.introspect()).has('owners'));
      }
      await connection.query('UPDATE big SET n = NULL');
      await connection.query('UPDATE big SET id = 5 WHERE id = 1');
      const fits = creates()
        .addField('big', owned)
        .addConstraint('big', refers(['o'], 'big'))
        .addConstraint('big', { ...refers(['n']), name: 'g' });
      await migrate(target, online(fits));
      assert.deepEqual([...((await connection.introspect()).get('big')?.constraints.keys() ?? [])].sort(), ['f', 'g']);
    }));
  test(`${engine.name}: what reads a field or a table is named before the first migration of a run`, () =>
    engine.withDatabase(async (target) => {
      const { connection } = target;
      const query = async (text: string) => {
        await connection.query(text);
      };
      const all = (...migrations: Migration[]) => [first, ...migrations].map(definedInCode);
      await migrate(target, all());
      const dropped = third().dropField('big', 'n', { was: number }).build();
      const renamedThenDropped = third()
        .renameField('big', 'n', 'm')
        .dropField('big', 'm', { was: { type: 'integer' } })
        .build();
      const droppedTable = third().renameCollection('big', 'huge').dropCollection('huge').build();
      const renamed = third().renameField('big', 'n', 'm').build();
      const returnsTrigger = 'RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW."n" := 1; RETURN NEW; END $$';
      await query("CREATE FUNCTION unrelated() RETURNS text LANGUAGE sql AS $$ SELECT 'n of big' /* n of big */ $$");
      await query('CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$');
      for (const [create, drop, reader, refused] of [
        ['CREATE VIEW v AS SELECT n FROM big', 'DROP VIEW v', 'view "v"', [dropped, renamedThenDropped, droppedTable]],
        [
          'CREATE MATERIALIZED VIEW mv AS SELECT n FROM big',
          'DROP MATERIALIZED VIEW mv',
          'materialized view "mv"',
          [dropped, droppedTable],
        ],
        [
          'ALTER TABLE big ADD g int GENERATED ALWAYS AS (n + 1) STORED',
          'ALTER TABLE big DROP COLUMN g',
          'generated field g',
          [dropped, renamedThenDropped],
        ],
        [
          'CREATE TRIGGER t BEFORE UPDATE OF n ON big FOR EACH ROW EXECUTE FUNCTION quiet()',
          'DROP TRIGGER t ON big',
          'trigger "big.t"',
          [dropped],
        ],
        ['CREATE POLICY p ON big USING (n > 0)', 'DROP POLICY p ON big', 'policy "big.p"', [dropped]],
        [
          'CREATE FUNCTION total() RETURNS bigint LANGUAGE sql AS $$ SELECT sum(n) FROM big $$',
          'DROP FUNCTION total()',
          'function "total"',
          [dropped, renamed, renamedThenDropped],
        ],
        [
          `CREATE FUNCTION touch() ${returnsTrigger}; CREATE TRIGGER t BEFORE INSERT ON big FOR EACH ROW EXECUTE FUNCTION touch()`,
          'DROP FUNCTION touch() CASCADE',
          'function "touch"',
          [dropped, renamed],
        ],
      ] as const) {
        await query(create);
        for (const one of refused) {
          const migrations = all(harmless, one);
          const refusal = await expectError(
            migrate(target, migrations, { allowDestructive: true }),
            'collection_referenced',
          );
          assert.ok(refusal.message.endsWith(`: the ${reader} reads it.`), refusal.message);
          assert.equal(refusal.state, 'Nothing was changed.');
          assert.ok(!(await connection.introspect()).has('other'));
          const planned = await previewMigrate(target, migrations, { allowDestructive: true });
          assert.equal(
            planned.flatMap(({ statements }) => statements.filter(({ failure }) => failure)).length > 0,
            true,
          );
        }
        if (!reader.startsWith('function'))
          assert.equal((await previewMigrate(target, all(renamed)))[0]?.statements[0]?.failure, undefined);
        await query(drop);
      }
      // What the run itself drops or replaces is not in the way.
      const view = 'CREATE VIEW v AS SELECT n FROM big';
      const text = (column: string) =>
        `CREATE FUNCTION total() RETURNS bigint LANGUAGE sql AS $$ SELECT sum(${column}) FROM big $$`;
      const made = migration('20260102_000000_made')
        .createObject('view', 'v', view)
        .createObject('function', 'total', text('n'))
        .build();
      await migrate(target, all(made));
      const around = third()
        .dropObject('view', 'v', { was: view })
        .renameField('big', 'n', 'm')
        .replaceObject('function', 'total', text('m'), { was: text('n') })
        .build();
      await migrate(target, all(made, around));
      const last = migration('20260104_000000_last')
        .dropObject('function', 'total', { was: text('m') })
        .dropField('big', 'm', { was: { type: 'integer' } })
        .build();
      await migrate(target, all(made, around, last), { allowDestructive: true });
      assert.deepEqual([...((await connection.introspect()).get('big')?.fields.keys() ?? [])], ['id']);
    }));
}

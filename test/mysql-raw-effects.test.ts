import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import type { Target } from '../core/migration/target.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// Rows that a later step rejects are found before the first step, also if the run has raw statements that cannot concern them.

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const number = { name: 'n', type: 'integer' } as const;
const first = migration('20260101_000000_first')
  .createCollection('parents', [key])
  .createCollection('children', [key, number])
  .createCollection('notes', [key, number])
  .createCollection('lines', [key, number])
  .build();
const foreignKey = {
  name: 'f',
  type: 'foreignKey',
  columns: ['n'],
  references: { table: 'parents', columns: ['id'] },
} as const;
const second = () => migration('20260102_000000_second').addField('lines', { name: 'a', type: 'integer' });

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: raw statements and the rows of tables`, engine.missing);
    continue;
  }
  const on = (name: string, setup: readonly string[], body: (target: Target) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () =>
      engine.withUrl(async (url, connect) => {
        await migrate(await connect(), [definedInCode(first)]);
        const target = await connectTarget(engine.dialect, url, { allowCopy: true });
        try {
          for (const sql of ['INSERT INTO children VALUES (1, 7)', 'INSERT INTO notes VALUES (1, 1)', ...setup])
            await target.connection.query(sql);
          await body(target);
        } finally {
          await target.connection.close();
        }
      }));
  const apply = (target: Target, ...migrations: Migration[]) =>
    migrate(target, [first, ...migrations].map(definedInCode), { allowDestructive: true });
  const raw = (builder: ReturnType<typeof second>, ...texts: readonly string[]) =>
    texts.reduce((made, text) => made.raw(engine.dialect.name, text, { destructive: false }), builder);
  const refuse = async (target: Target, bad: { build(): Migration }) => {
    const refused = await expectError(apply(target, bad.build()), 'data_violates');
    assert.match(refused.why ?? '', /n reference no row of "parents".* 1 such row/);
    assert.equal(refused.state, 'Nothing was changed.');
    assert.deepEqual([...((await target.connection.introspect()).get('lines')?.fields.keys() ?? [])], ['id', 'n']);
  };

  on(
    'raw statements about other tables leave what later steps reject to be found before the first step',
    [
      'CREATE VIEW seen AS SELECT id FROM notes',
      'CREATE TRIGGER noted BEFORE INSERT ON notes FOR EACH ROW SET NEW.n = 1',
    ],
    async (target) => {
      for (const text of [
        'SELECT 1',
        'UPDATE notes SET n = 2',
        'INSERT INTO notes VALUES (2, 2)',
        'DELETE FROM notes',
        'TRUNCATE notes',
        'ALTER TABLE notes ADD b int',
        'CREATE INDEX by_n ON notes (n)',
        'CREATE TABLE aside (id int)',
        'UPDATE seen SET id = 3',
        'DROP VIEW seen',
        'DROP TRIGGER noted',
        'CREATE VIEW shown AS SELECT id FROM notes',
        'CREATE PROCEDURE p() BEGIN DELETE FROM notes; END',
      ])
        await refuse(target, raw(second(), text).addConstraint('children', foreignKey));
      await refuse(target, raw(second().addConstraint('children', foreignKey), 'DELETE FROM children'));
      await refuse(
        target,
        second()
          .addConstraint('children', foreignKey)
          .createObject('procedure', 'emptied', 'CREATE PROCEDURE emptied() BEGIN DELETE FROM children; END'),
      );
      await refuse(
        target,
        second()
          .createObject('procedure', 'emptied', 'CREATE PROCEDURE emptied() BEGIN DELETE FROM children; END')
          .addConstraint('children', foreignKey),
      );
    },
  );

  const corrected: readonly (readonly [string, setup: readonly string[], raws: readonly string[]])[] = [
    ['its own table', [], ['UPDATE children SET n = NULL']],
    ['the referenced table', [], ['INSERT INTO parents VALUES (7)']],
    ['a view', ['CREATE VIEW seen AS SELECT n FROM children'], ['UPDATE seen SET n = NULL']],
    [
      'a view of a view',
      ['CREATE VIEW inner_one AS SELECT n FROM children', 'CREATE VIEW seen AS SELECT n FROM inner_one'],
      ['UPDATE seen SET n = NULL'],
    ],
    [
      'a trigger',
      ['CREATE TRIGGER frees AFTER UPDATE ON notes FOR EACH ROW UPDATE children SET n = NULL'],
      ['UPDATE notes SET n = 3'],
    ],
    ['a procedure', ['CREATE PROCEDURE frees() BEGIN UPDATE children SET n = NULL; END'], ['CALL frees()']],
    [
      'a function',
      ['CREATE FUNCTION frees() RETURNS int MODIFIES SQL DATA BEGIN DELETE FROM children; RETURN 1; END'],
      ['DO frees()'],
    ],
    [
      'a foreign key that deletes',
      ['ALTER TABLE children ADD CONSTRAINT down FOREIGN KEY (id) REFERENCES notes (id) ON DELETE CASCADE'],
      ['DELETE FROM notes'],
    ],
    [
      'a trigger that the run creates',
      [],
      ['CREATE TRIGGER frees AFTER UPDATE ON notes FOR EACH ROW DELETE FROM children', 'UPDATE notes SET n = 3'],
    ],
    ['a prepared text', [], ["EXECUTE IMMEDIATE CONCAT('DELETE FROM chil', 'dren')"]],
    ['no check of foreign keys', [], ['SET @text = 1', 'UPDATE children SET n = NULL']],
    ['another name', [], ['RENAME TABLE children TO old', 'CREATE TABLE children (id int PRIMARY KEY, n int)']],
  ];
  for (const [name, setup, raws] of corrected) {
    if (name === 'a prepared text' && engine.name.startsWith('mysql')) continue; // MySQL has no EXECUTE IMMEDIATE.
    on(`rows that a raw statement corrects through ${name} do not reject a run`, setup, async (target) => {
      await apply(
        target,
        raw(second(), ...raws)
          .addConstraint('children', foreignKey)
          .build(),
      );
      assert.ok((await target.connection.introspect()).get('children')?.constraints.has('f'));
    });
  }

  on('after a renamed table, raw statements may concern any table', [], async (target) => {
    const renamed = second().renameCollection('children', 'kids').renameCollection('notes', 'children');
    await apply(target, raw(renamed, 'UPDATE kids SET n = NULL').addConstraint('kids', foreignKey).build());
  });
}

import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import type { Operation } from '../core/schema/operation.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';

const key = { name: 'id', type: 'integer', primaryKey: true, autoGenerate: true } as const;
const setup = migration('20260101_000000_setup')
  .createCollection('parents', [key])
  .createCollection('things', [key, { name: 'n', type: 'integer' }, { name: 's', type: 'string', length: 20 }])
  .build();
const things = { collection: 'things' } as const;
const parent = {
  name: 'things_parent',
  type: 'foreignKey',
  columns: ['n'],
  references: { table: 'parents', columns: ['id'] },
} as const;

/** What each statement of an operation blocks, and what it does with the rows. */
const LOCKS: readonly (readonly [Operation, readonly string[]])[] = [
  [{ type: 'createIndex', ...things, index: 'things_n', columns: [{ name: 'n' }] }, ['nothing, read']],
  [
    { type: 'addConstraint', ...things, constraint: { name: 'things_s', type: 'unique', columns: ['s'] } },
    ['nothing, read'],
  ],
  [{ type: 'addConstraint', ...things, constraint: parent }, ['writes, write']],
  [{ type: 'modifyField', ...things, field: 'n', changes: { required: true } }, ['nothing, write']],
  [{ type: 'addField', ...things, field: { name: 'm', type: 'integer' } }, ['reads and writes, none']],
  [{ type: 'renameField', ...things, from: 'n', to: 'm' }, ['reads and writes, none']],
  [
    { type: 'addField', ...things, field: { name: 't', type: 'uuid', autoGenerate: true } },
    ['reads and writes, none', 'reads and writes, none', 'nothing, write'],
  ],
  [
    { type: 'addField', ...things, field: { name: 'm', type: 'integer' }, mirrors: 'n' },
    ['reads and writes, none', 'reads and writes, none', 'reads and writes, none', 'nothing, write'],
  ],
];

for (const engine of committingEngines) {
  const name = `${engine.name}: a dry run says what each statement does to others that use a large table`;
  if (engine.missing !== undefined) test.skip(name, engine.missing);
  else
    test(name, () =>
      engine.withDatabase(async (target) => {
        const { connection } = target;
        await migrate(target, [definedInCode(setup)]);
        const locksOf = async (operation: Operation) => {
          const up = { tag: '20260102_000000_next', name: 'next', up: [operation], down: [], irreversible: 'No.' };
          const [planned] = await previewMigrate(target, [setup, up].map(definedInCode));
          return planned?.statements.map(({ lock }) => lock && `${lock.blocks}, ${lock.work}`) ?? [];
        };
        for (const [operation] of LOCKS) assert.ok((await locksOf(operation)).every((lock) => lock === undefined));
        await connection.query(`INSERT INTO parents VALUES (1)`);
        await connection.query("INSERT INTO things (n, s) VALUES (1, 'a'), (1, 'b'), (1, 'c'), (1, 'd'), (1, 'e')");
        for (let rows = 5; rows <= 20_000; rows *= 2)
          await connection.query('INSERT INTO things (n, s) SELECT n, UUID_SHORT() FROM things');
        await connection.query('ANALYZE TABLE things');
        for (const [operation, locks] of LOCKS)
          assert.deepEqual(await locksOf(operation), locks, JSON.stringify(operation));
      }),
    );
}

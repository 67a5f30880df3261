import * as assert from 'node:assert/strict';
import { Database } from '../core/database/database.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { describeDifferences } from '../core/schema/diff.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';

// Foreign keys not created by svc that reference a table dropped with its dependents.

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const existing = migration('20260101_000000_made')
  .createCollection('parents', [key])
  .createCollection('children', [key, { name: 'p', type: 'integer' }])
  .build();
const dropped = migration('20260102_000000_dropped')
  .renameCollection('parents', 'elders')
  .dropCollection('elders', { cascade: true })
  .build();

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: foreign keys unknown to svc`, engine.missing);
    continue;
  }

  test(`${engine.name}: a cascade lists foreign keys that were created by hand, and drops them`, () =>
    engine.withDatabase(async (adapter) => {
      const { connection } = adapter;
      await migrate(adapter, [definedInCode(existing)]);
      await connection.query('ALTER TABLE children ADD CONSTRAINT by_hand FOREIGN KEY (p) REFERENCES parents (id)');
      await connection.query(
        'CREATE TABLE legacy (id int PRIMARY KEY, p int, CONSTRAINT of_old FOREIGN KEY (p) REFERENCES parents (id))',
      );
      const defined = [existing, dropped].map(definedInCode);
      const [planned] = await previewMigrate(adapter, defined, { allowDestructive: true });
      const texts = planned?.statements.map(({ text }) => text).join('\n') ?? '';
      for (const name of [/children.*DROP .*by_hand/, /legacy.*DROP .*of_old/]) assert.match(texts, name);
      await migrate(adapter, defined, { allowDestructive: true });
      assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['children', 'legacy']);
    }));

  test(`${engine.name}: a cascade drops a constraint once that the server renamed with its table`, () =>
    engine.withDatabase(async (adapter) => {
      const { connection } = adapter;
      const addForeignKey = migration('20260102_000000_keyed')
        .addConstraint('children', {
          name: 'children_ibfk_1',
          type: 'foreignKey',
          columns: ['p'],
          references: { table: 'parents', columns: ['id'] },
        })
        .renameCollection('children', 'kids')
        .build();
      const dropParents = migration('20260103_000000_gone').dropCollection('parents', { cascade: true }).build();
      await migrate(adapter, [existing, addForeignKey].map(definedInCode));
      const defined = [existing, addForeignKey, dropParents].map(definedInCode);
      const [planned] = await previewMigrate(adapter, defined, { allowDestructive: true });
      assert.equal(planned?.statements.length, 2, planned?.statements.map(({ text }) => text).join('\n'));
      await migrate(adapter, defined, { allowDestructive: true });
      assert.equal((await connection.introspect()).get('kids')?.constraints.size, 0);
    }));

  test(`${engine.name}: rolling back a call that drops them restores them`, () =>
    engine.withDatabase(async (adapter) => {
      const { connection } = adapter;
      const db = new Database(adapter);
      await migrate(adapter, [definedInCode(existing)]);
      await connection.query('ALTER TABLE children ADD CONSTRAINT by_hand FOREIGN KEY (p) REFERENCES parents (id)');
      const before = await connection.introspect();
      const { statements } = await db.schema.drop('parents', { cascade: true });
      assert.match(statements.join('\n'), /children.*DROP .*by_hand/);
      assert.equal((await connection.introspect()).get('children')?.constraints.size, 0);
      await rollback(adapter, { count: 1 });
      assert.deepEqual(describeDifferences(before, await connection.introspect()), []);
    }));
}

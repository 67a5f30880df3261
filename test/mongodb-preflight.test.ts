import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { previewMigrate } from '../core/migration/preview.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { definedInCode } from './kit/migrations.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// Documents that do not allow a step are reported before the first step of the run.

const first = migration('20260101_000000_first')
  .createCollection('orders', [
    { name: 'n', type: 'double' },
    { name: 's', type: 'string' },
    { name: 'code', type: 'string' },
  ])
  .createCollection('others', [{ name: 'a', type: 'string' }])
  .build();
const second = () =>
  migration('20260102_000000_second')
    .addField('others', { name: 'b', type: 'integer', default: 7 })
    .renameField('orders', 's', 'words');

if (missing === undefined)
  test('documents that do not allow a later step are reported before any step', async () => {
    const fresh = await freshMongo();
    const target = await connectTarget(mongodb, fresh.url);
    try {
      await migrate(target, [first].map(definedInCode));
      await fresh.on(async (client, name) => {
        const orders = client.db(name).collection('orders');
        await orders.insertMany([
          { n: 0.5, s: 'a', code: 'x' },
          { n: 2, s: 'b', code: 'x' },
          { n: 3, s: null, code: null },
        ]);
        await client.db(name).collection('others').insertOne({ a: 'x' });
        const documents = () => orders.find().toArray();
        const before = await documents();
        for (const [bad, why] of [
          [second().modifyField('orders', 'n', { type: 'integer' }), /^1 have a value in "n" that cannot be converted/],
          [
            second().renameCollection('orders', 'bills').modifyField('bills', 'n', { type: 'integer' }),
            /^1 have a value in "n" that cannot be converted/,
          ],
          // Under the name that a field has now.
          [second().modifyField('orders', 'words', { required: true }), /^1 have no value for "words"/],
          [
            second()
              .renameField('orders', 'n', 'x')
              .renameField('orders', 'x', 'y')
              .modifyField('orders', 'y', { type: 'integer' }),
            /^1 have a value in "y" that cannot be converted/,
          ],
          [
            second()
              .renameField('orders', 'code', 'k')
              .renameCollection('orders', 'bills')
              .createIndex('bills', 'k_u', [{ name: 'k' }], { unique: true }),
            /^1 have the same "k"/,
          ],
          [second().modifyField('orders', 'code', { required: true }), /^1 have no value for "code"/],
          [second().createIndex('orders', 'code_u', [{ name: 'code' }], { unique: true }), /^1 have the same "code"/],
        ] as const) {
          const migrations = [first, bad.build()].map(definedInCode);
          const refusal = await expectError(migrate(target, migrations), 'data_violates');
          assert.match(refusal.why ?? '', why);
          assert.equal(refusal.state, 'Nothing was changed.');
          assert.deepEqual(await documents(), before);
          const [planned] = await previewMigrate(target, migrations);
          const failures = planned?.statements.flatMap(({ failure }) => failure ?? []) ?? [];
          assert.equal(failures.length, 1);
          assert.match(String((failures[0] as { why?: string }).why), why);
        }
        // The dry run shows it for the first step too.
        const only = migration('20260102_000000_second').modifyField('orders', 'n', { type: 'integer' }).build();
        const [alone] = await previewMigrate(target, [first, only].map(definedInCode));
        assert.ok(alone?.statements[0]?.failure);
        // What the run itself corrects is judged at its step.
        const corrected = second()
          .dropField('orders', 'code')
          .addField('orders', { name: 'code', type: 'string', required: true, default: 'y' })
          .raw('mongodb', JSON.stringify({ update: 'orders', updates: [{ q: { n: 0.5 }, u: { $set: { n: 4 } } }] }))
          .modifyField('orders', 'n', { type: 'integer' });
        await migrate(target, [first, corrected.build()].map(definedInCode), { allowDestructive: true });
        assert.deepEqual(
          (await documents()).map(({ n, code }) => [n, code]),
          [
            [4, 'y'],
            [2, 'y'],
            [3, 'y'],
          ],
        );
      });
    } finally {
      await target.connection.close();
      await fresh.drop();
    }
  });
else test.skip('documents that do not allow a later step', missing);

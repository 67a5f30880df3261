import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { definedInCode } from './kit/migrations.ts';
import { prepareMigrators } from './kit/migrators.ts';
import { freshMongo, missing } from './kit/mongodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

/** SVC_TEST_DOCUMENTS=1000000 takes minutes. */
const DOCUMENTS = Number(process.env.SVC_TEST_DOCUMENTS ?? 10_000);
const BATCH = DOCUMENTS / 20;

const migrations = [
  migration('20260101_000000_tables')
    .createCollection('users', [{ name: 'n', type: 'integer' }])
    .build(),
  migration('20260102_000000_filled')
    .addField('users', { name: 'kind', type: 'text', default: 'person', required: true })
    .build(),
];

if (missing) test.skip('a backfill on MongoDB', missing);
else
  test(
    'a killed backfill reports its progress, and the next run continues from there',
    async () => {
      const database = await freshMongo();
      try {
        const defined = migrations.map(definedInCode);
        const first = await connectTarget(mongodb, database.url, { leaseMs: 2000 });
        await migrate(first, defined.slice(0, 1));
        await first.connection.close();
        await database.on(async (client, name) => {
          const users = client.db(name).collection('users');
          for (let n = 0; n < DOCUMENTS; n += BATCH) {
            await users.insertMany(Array.from({ length: BATCH }, (_, index) => ({ n: n + index })));
          }
        });
        const start = await prepareMigrators('mongodb', migrations);
        const { child, ended } = start(database.url, 0, { connect: { leaseMs: 2000, batchSize: BATCH } });
        let reported = 0;
        child.stdout?.on('data', (chunk) => {
          reported = Math.max(reported, ...[...String(chunk).matchAll(/done (\d+)/g)].map(([, done]) => Number(done)));
          if (reported >= DOCUMENTS / 3) child.kill('SIGKILL');
        });
        await ended;
        const filled = () =>
          database.on((client, name) => client.db(name).collection('users').countDocuments({ kind: 'person' }));
        const before = await filled();
        assert.ok(before >= reported && before < DOCUMENTS, `${before} of ${reported} and more`);

        const progress: number[] = [];
        let total = 0;
        const adapter = await connectTarget(mongodb, database.url, {
          leaseMs: 2000,
          batchSize: BATCH,
          onProgress: (step) => {
            progress.push(step.done);
            total = step.total ?? total;
          },
        });
        await migrate(adapter, defined);
        await adapter.connection.close();
        assert.equal(await filled(), DOCUMENTS);
        assert.equal(progress[0], before + BATCH);
        assert.equal(progress.at(-1), DOCUMENTS);
        assert.equal(total, DOCUMENTS);
        assert.deepEqual(
          progress,
          [...progress].sort((a, b) => a - b),
        );
      } finally {
        await database.drop();
      }
    },
    { timeoutMs: 600_000 },
  );

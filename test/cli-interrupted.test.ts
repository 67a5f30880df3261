import * as assert from 'node:assert/strict';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { cutConnection } from './kit/cut-connection.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { assertExit, json, LONG, project, users, withAge } from './kit/project.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// What the command line shows of a run that stopped halfway, before the next run finishes it.

for (const engine of committingEngines) {
  const name = `${engine.name}: a preview of an interrupted run says what is left of it, and asks for nothing that finishing does not need`;
  if (engine.missing !== undefined) {
    test.skip(name, engine.missing);
    continue;
  }
  test(
    name,
    () =>
      engine.withUrl(async (url) => {
        const shop = project({ main: url });
        shop.schema({ ...withAge, orders: { id: { type: 'integer', primaryKey: true } } });
        assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'first'));
        assertExit(await shop.svc('db', 'migrate'));
        shop.schema(users);
        assertExit(await shop.svc('db', 'schema', 'generate', '--name', 'second', '--drop', 'orders'));
        const files = shop.files().map((file) => JSON.parse(shop.read(`svc/database/migrations/main/${file}`)));
        const defined = (files as Migration[]).map(definedInCode);
        const target = await connectTarget(engine.dialect, url);
        const cut = { ...target, connection: cutConnection(target.connection, 2) };
        const preview = async (...args: readonly string[]) => {
          const ran = assertExit(await shop.svc('db', 'migrate', ...args, '--dry-run'));
          const data = json(assertExit(await shop.svc('db', 'migrate', ...args, '--dry-run', '--json')));
          return { text: ran.stdout, data };
        };
        try {
          await expectError(migrate(cut, defined, { allowDestructive: true }), 'connection_lost');
          const up = await preview();
          assert.match(up.text, /-- the rest of its steps, which was interrupted/);
          assert.match(up.text, /DROP/);
          assert.doesNotMatch(up.text, /needs --allow-destructive|lint/);
          assert.equal(up.data.databases[0].plan[0].interrupted, true);
          const { stderr } = assertExit(await shop.svc('db', 'migrate'));
          assert.match(stderr, /^Finishing \S+_second, which was interrupted: \d+ of \d+ steps? (is|are) done$/m);

          const again = { ...target, connection: cutConnection(target.connection, 2) };
          await expectError(rollback(again), 'connection_lost');
          const down = await preview();
          assert.match(down.text, /-- the rest of its rollback, which was interrupted/);
          assert.doesNotMatch(down.text.split('-- the rest of its rollback')[1]?.split('\n\n')[0] ?? '', /lint|DROP/);
          assert.match((await preview('rollback')).text, /-- the rest of its rollback, which was interrupted/);
        } finally {
          await target.connection.close();
        }
      }),
    LONG,
  );
}

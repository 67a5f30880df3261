import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { status } from '../core/migration/status.ts';
import { mariadbVariant } from '../plugins/dialects/mariadb/dialect.ts';
import { createDialect, mysqlVariant } from '../plugins/dialects/mysql/dialect.ts';
import type { Variant } from '../plugins/dialects/mysql/variant.ts';
import { committingEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

// A lost network reports the same codes as an unreachable one, with a different meaning.

const VARIANTS: Readonly<Record<string, Variant>> = { mysql: mysqlVariant, mariadb: mariadbVariant };
const CODES = ['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'];

/** Loses the response to the statement that contains this word. */
function withLostAnswer(variant: Variant, word: string, code: string): Dialect {
  return createDialect({
    ...variant,
    async open(address, settings) {
      const driver = await variant.open(address, settings);
      let lost: Error | undefined;
      return {
        ...driver,
        async query(text) {
          if (lost) throw lost;
          const results = await driver.query(text);
          if (!text.includes(word)) return results;
          // Negative, as in Node.
          lost = Object.assign(new Error(`read ${code}`), { code, errno: -110, syscall: 'read', fatal: true });
          driver.close();
          throw lost;
        },
      };
    },
  });
}

for (const engine of committingEngines) {
  const variant = VARIANTS[engine.name] as Variant;
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: a lost network`, engine.missing);
    continue;
  }
  const far = migration('20260101_000000_far')
    .createCollection('far', [{ name: 'id', type: 'integer', primaryKey: true }])
    .build();
  const atomic = migration('20260102_000000_atomic')
    .raw(engine.dialect.name, 'INSERT INTO far VALUES (1)', { down: 'DELETE FROM far' })
    .build();
  const all: readonly Migration[] = [far, atomic];
  const defined = all.map(definedInCode);

  test(`${engine.name}: after a lost network during a run, the next run finds out what was done`, async () => {
    for (const code of CODES) {
      for (const [word, state] of [
        ['CREATE TABLE `far`', /the next run continues from there/],
        ['INSERT INTO far', /^At least 0 of 1 migrations.*the next run determines which/],
      ] as const) {
        await engine.withUrl(async (url, connect) => {
          if (word.startsWith('INSERT')) await migrate(await connect(), defined.slice(0, 1));
          const adapter = await connectTarget(withLostAnswer(variant, word, code), url);
          const refusal = await expectError(migrate(adapter, defined), 'connection_lost');
          await adapter.connection.close();
          assert.match(refusal.state ?? '', state);
          assert.match(refusal.why ?? '', new RegExp(code));
          const again = await connect();
          await migrate(again, defined);
          assert.equal((await status(again, defined)).state, 'OK');
          assert.equal((await again.connection.query('SELECT id FROM far')).length, 1);
        });
      }
    }
  });

  test(`${engine.name}: an unreachable network is reported as such`, async () => {
    for (const code of CODES) {
      const never = createDialect({
        ...variant,
        open: () => Promise.reject(Object.assign(new Error(`connect ${code}`), { code, errno: -110 })),
      });
      await engine.withUrl(async (url) => void (await expectError(never.connect(url, {}), 'connection_failed')));
    }
  });
}

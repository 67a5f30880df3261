import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import { migration } from '../core/migration/builder.ts';
import type { Migration } from '../core/migration/migration.ts';
import { migrate } from '../core/migration/migrate.ts';
import { status } from '../core/migration/status.ts';
import { mariadbVariant } from '../plugins/dialects/mariadb/dialect.ts';
import { createDialect, mysqlVariant } from '../plugins/dialects/mysql/dialect.ts';
import type { Variant } from '../plugins/dialects/mysql/variant.ts';
import { connectAdapter } from './kit/adapter.ts';
import { definedInCode } from './kit/defined.ts';
import { committingEngines } from './kit/engines.ts';
import { expectError } from './suites/expect-error.ts';
import { test } from './kit/test.ts';

// A network that goes away under an open session says the same as one that was never there, and means something else.

const FLAVOURS: Readonly<Record<string, Variant>> = { mysql: mysqlVariant, mariadb: mariadbVariant };
const CODES = ['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'];

/** The server does what it is told with this word in it, and nobody hears that it did. */
function unheard(flavour: Variant, word: string, code: string): Dialect {
  return createDialect({
    ...flavour,
    async open(address, settings) {
      const wire = await flavour.open(address, settings);
      let lost: Error | undefined;
      return {
        ...wire,
        async query(text) {
          if (lost) throw lost;
          const results = await wire.query(text);
          if (!text.includes(word)) return results;
          // As Node has it: its number is below zero.
          lost = Object.assign(new Error(`read ${code}`), { code, errno: -110, syscall: 'read', fatal: true });
          wire.close();
          throw lost;
        },
      };
    },
  });
}

for (const engine of committingEngines) {
  const flavour = FLAVOURS[engine.name] as Variant;
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: a network that goes away`, engine.missing);
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

  test(`${engine.name}: a network that goes away in a run leaves open what was done, and the next run finds out`, async () => {
    for (const code of CODES) {
      for (const [word, state] of [
        ['CREATE TABLE `far`', /the next run continues from there/],
        ['INSERT INTO far', /^At least 0 of 1 migrations.*the next run finds out/],
      ] as const) {
        await engine.withUrl(async (url, connect) => {
          if (word.startsWith('INSERT')) await migrate(await connect(), defined.slice(0, 1));
          const adapter = await connectAdapter(unheard(flavour, word, code), url);
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

  test(`${engine.name}: a network that was never there is told as that`, async () => {
    for (const code of CODES) {
      const never = createDialect({
        ...flavour,
        open: () => Promise.reject(Object.assign(new Error(`connect ${code}`), { code, errno: -110 })),
      });
      await engine.withUrl(async (url) => void (await expectError(never.connect(url, {}), 'connection_failed')));
    }
  });
}

import * as assert from 'node:assert/strict';
import type { Adapter } from '../../core/database/adapter.ts';
import { migrate } from '../../core/migration/run.ts';
import { connectAdapter } from './adapter.ts';
import { type CrashPart, crashMigrations, crashParts } from './crash-migrations.ts';
import { cutDialect } from './cut-dialect.ts';
import { definedInCode } from './defined.ts';
import type { TestEngine } from './engines.ts';
import { allEndWell, migratorsOf } from './migrators.ts';
import { test } from './test.ts';
import { assertWhole } from './whole.ts';

/** Many processes start one after another. */
const SLOW = { timeoutMs: 900_000 };

/**
 * Migrators in processes of their own, killed with SIGKILL at every boundary and at random moments: whatever the
 * moment, the next run ends in a correct state without a person, and everything has happened exactly once.
 */
export function crashSuite(engine: TestEngine): void {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: crashes`, engine.missing);
    return;
  }
  const whole = crashMigrations(engine.dialect.name);
  const { migrations } = whole;
  const starting = migratorsOf(engine.dialect.name, migrations);

  const isWhole = async (adapter: Adapter, { migrations, effects }: CrashPart = whole): Promise<void> => {
    await assertWhole(adapter, migrations);
    if (!effects) return;
    const found = await adapter.connection.query('SELECT what FROM effects ORDER BY what');
    assert.deepEqual(
      found.map(({ what }) => what),
      effects,
    );
  };
  const finish = async (adapter: Adapter, part = whole): Promise<void> => {
    await migrate(adapter, part.migrations.map(definedInCode), { allowDestructive: true });
    await isWhole(adapter, part);
  };

  /** `interrupted` ends a migrator at the n-th place and says whether there was one; the next run finishes. Gives how many there were. */
  const everywhere = async (
    part: CrashPart,
    interrupted: (url: string, at: number) => Promise<boolean>,
  ): Promise<number> => {
    // How many places there are depends on how quickly statements are done: more of them go together then.
    for (let at = 1; ; at++) {
      let isThrough = false;
      await engine.withUrl(async (url, connect) => {
        isThrough = !(await interrupted(url, at));
        await finish(await connect(), part).catch((error) => {
          throw new Error(`interrupted at ${at}: ${error}`, { cause: error });
        });
      });
      if (isThrough) return at - 1;
    }
  };

  // What was answered before the next call is made changes nothing in between: dying before each covers dying after it.
  test(
    `${engine.name}: killed before every call to the database, the next run ends whole`,
    async () => {
      const start = await starting;
      const places = await everywhere(whole, async (url, at) => {
        const { code, signal, err } = await start(url, at).ended;
        if (signal !== 'SIGKILL') assert.equal(code, 0, err);
        return signal === 'SIGKILL';
      });
      assert.ok(places >= 8, `only ${places} places`);
    },
    SLOW,
  );

  if (!engine.dialect.capabilities.transactionalDdl) {
    test(
      `${engine.name}: cut off before every statement of every packet, the next run ends whole`,
      async () => {
        let places = 0;
        for (const part of crashParts(engine.dialect.name)) {
          const defined = part.migrations.map(definedInCode);
          places += await everywhere(part, async (url, at) => {
            const { dialect, isCut } = cutDialect(engine.dialect.name, at);
            const adapter = await connectAdapter(dialect, url);
            const outcome = await migrate(adapter, defined, { allowDestructive: true }).catch((error) => error);
            await adapter.connection.close();
            if (isCut()) assert.equal(outcome.code, 'connection_lost', String(outcome));
            return isCut();
          });
        }
        assert.ok(places >= 100, `only ${places} places`);
      },
      SLOW,
    );
  }

  test(
    `${engine.name}: killed at random moments, ten times over`,
    async () => {
      const start = await starting;
      for (let round = 0; round < 10; round++) {
        await engine.withUrl(async (url, connect) => {
          const { child, ready, ended } = start(url);
          await ready;
          setTimeout(() => child.kill('SIGKILL'), Math.random() * 60);
          await ended;
          await finish(await connect());
        });
      }
    },
    SLOW,
  );

  test(
    `${engine.name}: two, four and sixteen migrators at once apply everything once and all end well`,
    async () => {
      const start = await starting;
      for (const many of [2, 4, 16]) {
        await engine.withUrl(async (url, connect) => {
          await allEndWell(
            Array.from({ length: many }, () => start(url)),
            migrations,
          );
          await isWhole(await connect());
        });
      }
    },
    SLOW,
  );
}

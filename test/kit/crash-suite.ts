import * as assert from 'node:assert/strict';
import type { Adapter } from '../../core/database/adapter.ts';
import { migrate } from '../../core/migration/run.ts';
import { connectAdapter } from './adapter.ts';
import { crashMigrations, EFFECTS } from './crash-migrations.ts';
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
  const migrations = crashMigrations(engine.dialect.name);
  const defined = migrations.map(definedInCode);
  const starting = migratorsOf(engine.dialect.name, migrations);

  const isWhole = async (adapter: Adapter): Promise<void> => {
    await assertWhole(adapter, migrations);
    const effects = await adapter.connection.query('SELECT what FROM effects ORDER BY what');
    assert.deepEqual(
      effects.map(({ what }) => what),
      EFFECTS,
    );
  };

  /** `interrupted` ends a migrator at the n-th place and says whether there was one; the next run finishes. */
  const everywhere = async (
    least: number,
    interrupted: (url: string, at: number) => Promise<boolean>,
  ): Promise<void> => {
    // How many places there are depends on how quickly statements are done: more of them go together then.
    for (let at = 1, isThrough = false; !isThrough; at++) {
      await engine.withUrl(async (url, connect) => {
        isThrough = !(await interrupted(url, at));
        if (isThrough) assert.ok(at > least, `only ${at - 1} places`);
        const adapter = await connect();
        try {
          await migrate(adapter, defined, { allowDestructive: true });
          await isWhole(adapter);
        } catch (error) {
          throw new Error(`interrupted at ${at}: ${error}`, { cause: error });
        }
      });
    }
  };

  // What was answered before the next call is made changes nothing in between: dying before each covers dying after it.
  test(
    `${engine.name}: killed before every call to the database, the next run ends whole`,
    () =>
      everywhere(8, async (url, at) => {
        const { code, signal, err } = await (await starting)(url, at).ended;
        if (signal !== 'SIGKILL') assert.equal(code, 0, err);
        return signal === 'SIGKILL';
      }),
    SLOW,
  );

  if (!engine.dialect.capabilities.transactionalDdl) {
    test(
      `${engine.name}: cut off before every statement of every packet, the next run ends whole`,
      () =>
        everywhere(100, async (url, at) => {
          const { dialect, isCut } = cutDialect(engine.dialect.name, at);
          const adapter = await connectAdapter(dialect, url);
          const outcome = await migrate(adapter, defined, { allowDestructive: true }).catch((error) => error);
          await adapter.connection.close();
          if (isCut()) assert.equal(outcome.code, 'connection_lost', String(outcome));
          return isCut();
        }),
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
          const adapter = await connect();
          await migrate(adapter, defined, { allowDestructive: true });
          await isWhole(adapter);
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

import * as assert from 'node:assert/strict';
import type { Target } from '../../core/migration/target.ts';
import { MigrationEngine } from '../../core/migration/engine.ts';
import { migrate } from '../../core/migration/migrate.ts';
import { connectAdapter } from './adapter.ts';
import { type CrashPart, crashMigrations, crashParts } from './crash-migrations.ts';
import { cutDialect } from './cut-dialect.ts';
import { definedInCode } from './defined.ts';
import type { TestEngine } from './engines.ts';
import { allEndWell, migratorsOf } from './migrators.ts';
import { several } from './several.ts';
import { test } from './test.ts';
import { assertWhole } from './whole.ts';

/** Many processes start one after another. */
const SLOW = { timeoutMs: 900_000 };
const ROUNDS = 10;

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

  const isWhole = async (adapter: Target, { migrations, effects }: CrashPart = whole): Promise<void> => {
    await assertWhole(adapter, migrations);
    if (!effects) return;
    const found = await adapter.connection.query('SELECT what FROM effects ORDER BY what');
    assert.deepEqual(
      found.map(({ what }) => what),
      effects,
    );
  };
  const finish = async (adapter: Target, part = whole): Promise<void> => {
    await migrate(adapter, part.migrations.map(definedInCode), { allowDestructive: true });
    await isWhole(adapter, part);
  };

  /** `interrupted` ends a migrator at the n-th place and says whether there was one; the next run finishes. Gives how many there were. */
  const everywhere = async (
    part: CrashPart,
    interrupted: (url: string, at: number) => Promise<boolean>,
  ): Promise<number> => {
    // How many places there are depends on how quickly statements are done: more of them go together then.
    let isThrough = false;
    const places = function* () {
      for (let at = 1; !isThrough; at++) yield at;
    };
    const were = await several(places(), async (at) => {
      let was = false;
      await engine.withUrl(async (url, connect) => {
        was = await interrupted(url, at);
        isThrough ||= !was;
        await finish(await connect(), part).catch((error) => {
          throw new Error(`interrupted at ${at}: ${error}`, { cause: error });
        });
      });
      return was;
    });
    return were.filter(Boolean).length;
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

  /** A migrator that is killed that many milliseconds after it has connected, where it has not ended by then. */
  const killedAfter = async (ms?: number): Promise<{ died: boolean; applied: number; ranMs: number }> => {
    const start = await starting;
    const run = { died: false, applied: 0, ranMs: 0 };
    await engine.withUrl(async (url, connect) => {
      const { child, ready, ended } = start(url);
      await ready;
      const began = performance.now();
      const timer = ms === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), ms);
      const { code, signal, err } = await ended;
      clearTimeout(timer);
      run.ranMs = performance.now() - began;
      run.died = signal === 'SIGKILL';
      if (!run.died) assert.equal(code, 0, err);
      const adapter = await connect();
      run.applied = (await new MigrationEngine(adapter).getHistory()).length;
      await finish(adapter);
    });
    return run;
  };

  test(
    `${engine.name}: killed at random moments from its beginning to its end, ten times over`,
    async () => {
      // Two at a time, as those that are killed run.
      let wholeMs = Math.min(...(await several([1, 2], () => killedAfter())).map(({ ranMs }) => ranMs));
      const killed = await several(Array.from({ length: ROUNDS }).keys(), async (round) => {
        for (let tries = 0; tries < 5; tries++) {
          const run = await killedAfter(((round + Math.random()) / ROUNDS) * wholeMs);
          if (run.died) return run;
          wholeMs = Math.min(wholeMs, run.ranMs);
        }
        throw new Error(`five ended before they were killed, the last one within ${Math.round(wholeMs)} ms`);
      });
      // What is in one transaction is not seen before its end.
      if (engine.dialect.capabilities.transactionalDdl) return;
      const far = killed.filter(({ applied }) => applied > 0).length;
      assert.ok(far >= ROUNDS / 4, `only ${far} of ${ROUNDS} were killed behind their first migration`);
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

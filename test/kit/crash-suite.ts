import * as assert from 'node:assert/strict';
import type { Dialect } from '../../core/dialect.ts';
import { migrate } from '../../core/migration/migrate.ts';
import { MigrationEngine } from '../../core/migration/migration-engine.ts';
import { objectDrift, readObjects } from '../../core/migration/objects.ts';
import type { Target } from '../../core/migration/target.ts';
import { isObjectOperation, objectKey, objectsAfter } from '../../core/schema/database-object.ts';
import { mariadbVariant } from '../../plugins/dialects/mariadb/dialect.ts';
import { createDialect, mysqlVariant } from '../../plugins/dialects/mysql/dialect.ts';
import { type CrashPart, crashMigrations, crashParts } from './crash-migrations.ts';
import type { TestEngine } from './engines.ts';
import { callsToInterrupt, everyCall } from './every-call.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { assertFullyMigrated, definedInCode } from './migrations.ts';
import { assertAllSucceed, prepareMigrators } from './migrators.ts';
import { connectTarget } from './target.ts';
import { test } from './test.ts';

/** Many processes start one after another. */
const SLOW = { timeoutMs: 900_000 };
const ROUNDS = 10;
const EVERY = 5;

/**
 * Kills migrator processes with SIGKILL before every call and at random moments. The next run must reach the correct
 * state without manual work, and every effect must have happened exactly once.
 */
export function crashSuite(engine: TestEngine): void {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: crashes`, engine.missing);
    return;
  }
  const allMigrations = crashMigrations(engine.dialect.name);
  const { migrations } = allMigrations;
  const prepared = prepareMigrators(engine.dialect.name, migrations);

  const assertComplete = async (target: Target, { migrations, effects }: CrashPart = allMigrations): Promise<void> => {
    await assertFullyMigrated(target, migrations);
    const operations = migrations.flatMap(({ up }) => up).filter(isObjectOperation);
    const named = new Set(operations.map(objectKey));
    const objects = new Map([...(await readObjects(target.connection))].filter(([key]) => named.has(key)));
    assert.deepEqual(await objectDrift(target.connection, objectsAfter(operations), objects), []);
    if (!effects) return;
    const found = await target.connection.query('SELECT what FROM effects ORDER BY what');
    assert.deepEqual(
      found.map(({ what }) => what),
      effects,
    );
  };
  const finish = async (target: Target, part = allMigrations): Promise<void> => {
    await migrate(target, part.migrations.map(definedInCode), { allowDestructive: true });
    await assertComplete(target, part);
  };

  /** Interrupts runs at later and later points until `interruptAt` returns false, and finishes each with another run. Returns how many. */
  const interruptEverywhere = async (
    part: CrashPart,
    interruptAt: (url: string, at: number) => Promise<boolean>,
  ): Promise<number> => {
    // The number of points depends on the speed of statements: fast ones are sent together.
    let isFinished = false;
    const interruptions = await mapConcurrently(
      callsToInterrupt(EVERY, () => isFinished),
      async (at) => {
        let wasInterrupted = false;
        await engine.withUrl(async (url, connect) => {
          wasInterrupted = await interruptAt(url, at);
          isFinished ||= !wasInterrupted;
          await finish(await connect(), part).catch((error) => {
            throw new Error(`interrupted at ${at}: ${error}`, { cause: error });
          });
        });
        return wasInterrupted;
      },
    );
    return interruptions.filter(Boolean).length;
  };

  // Nothing happens between a response and the next call, so being killed before each call covers being killed after it.
  test(
    `${engine.name}: after a kill before any call to the database, the next run completes`,
    async () => {
      const start = await prepared;
      const places = await interruptEverywhere(allMigrations, async (url, at) => {
        const { code, signal, err } = await start(url, at).ended;
        if (signal !== 'SIGKILL') assert.equal(code, 0, err);
        return signal === 'SIGKILL';
      });
      assert.ok(places >= Math.floor(8 / everyCall(EVERY)), `only ${places} points`);
    },
    SLOW,
  );

  if (!engine.dialect.capabilities.transactionalDdl) {
    test(
      `${engine.name}: after a lost connection before any statement of any packet, the next run completes`,
      async () => {
        let places = 0;
        for (const part of crashParts(engine.dialect.name)) {
          const defined = part.migrations.map(definedInCode);
          places += await interruptEverywhere(part, async (url, at) => {
            const { dialect, isCut } = cutDialect(engine.dialect.name, at);
            const target = await connectTarget(dialect, url);
            const outcome = await migrate(target, defined, { allowDestructive: true }).catch((error) => error);
            await target.connection.close();
            if (isCut()) assert.equal(outcome.code, 'connection_lost', String(outcome));
            return isCut();
          });
        }
        assert.ok(places >= Math.floor(100 / everyCall(EVERY)), `only ${places} points`);
      },
      SLOW,
    );
  }

  /** Runs a migrator and kills it `ms` milliseconds after it has connected, unless it has ended. */
  const killAfter = async (ms?: number): Promise<{ died: boolean; applied: number; ranMs: number }> => {
    const start = await prepared;
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
      const target = await connect();
      run.applied = (await new MigrationEngine(target).getHistory()).length;
      await finish(target);
    });
    return run;
  };

  test(
    `${engine.name}: after a kill at ten random moments, the next run completes`,
    async () => {
      // Two at a time, like the killed runs.
      let fullRunMs = Math.min(...(await mapConcurrently([1, 2], () => killAfter())).map(({ ranMs }) => ranMs));
      const killedRuns = await mapConcurrently(Array.from({ length: ROUNDS }).keys(), async (round) => {
        for (let tries = 0; tries < 20; tries++) {
          const run = await killAfter(((round + Math.random()) / ROUNDS) * fullRunMs);
          if (run.died) return run;
          fullRunMs = Math.min(fullRunMs, run.ranMs);
        }
        throw new Error(`twenty runs ended before they were killed, the last one after ${Math.round(fullRunMs)} ms`);
      });
      // Nothing of a transaction is visible before its end.
      if (engine.dialect.capabilities.transactionalDdl) return;
      let progressed = killedRuns.filter(({ applied }) => applied > 0).length;
      // On a machine that is busy for a while, most of them die early: later moments then.
      for (let tries = 0; progressed < ROUNDS / 4 && tries < 20; tries++) {
        const { died, applied } = await killAfter(((1 + Math.random()) / 2) * fullRunMs);
        if (died && applied > 0) progressed += 1;
      }
      assert.ok(progressed >= ROUNDS / 4, `only ${progressed} were killed after their first migration`);
    },
    SLOW,
  );

  test(
    `${engine.name}: two, four and sixteen concurrent migrators apply everything once and succeed`,
    async () => {
      const start = await prepared;
      for (const many of [2, 4, 16]) {
        await engine.withUrl(async (url, connect) => {
          await assertAllSucceed(
            Array.from({ length: many }, () => start(url)),
            migrations,
          );
          await assertComplete(await connect());
        });
      }
    },
    SLOW,
  );
}

/** Statements without an effect: a cut before one equals a cut before the next statement. */
const WITHOUT_EFFECT = /^\s*(SET|DO|SELECT|BEGIN NOT ATOMIC|END)\b/;
/** Closes a block, which the server only accepts as a whole. */
const complete = (text: string): string => (/(^|\n;)BEGIN NOT ATOMIC\b/.test(text) ? `${text}\n;END` : text);

/**
 * A dialect whose session ends in the middle of a packet: statements before the n-th one with an effect are sent, the
 * others are not. `isCut` returns whether that statement was reached.
 */
function cutDialect(name: string, at: number): { readonly dialect: Dialect; readonly isCut: () => boolean } {
  const variant = name === 'mysql' ? mysqlVariant : mariadbVariant;
  let count = 0;
  const isCutPoint = (statement: string): boolean => {
    if (WITHOUT_EFFECT.test(statement)) return false;
    count += 1;
    return count === at;
  };
  const dialect = createDialect({
    ...variant,
    async open(address, settings) {
      const session = await variant.open(address, settings);
      return {
        ...session,
        async query(text) {
          const statements = text.split(/\n;/);
          const last = statements.findIndex(isCutPoint);
          if (last < 0) return session.query(text);
          if (last > 0) await session.query(complete(statements.slice(0, last).join('\n;')));
          session.close();
          throw Object.assign(new Error('The session was cut off.'), { fatal: true });
        },
      };
    },
  });
  return { dialect, isCut: () => count >= at };
}

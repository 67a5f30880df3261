import * as assert from 'node:assert/strict';
import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { migrate } from '../../core/migration/migrate.ts';
import type { Migration } from '../../core/migration/migration.ts';
import type { Target } from '../../core/migration/target.ts';
import type { TestDatabase } from '../suites/test-database.ts';
import { mapConcurrently } from './map-concurrently.ts';
import { assertFullyMigrated, definedInCode } from './migrations.ts';
import { assertAllSucceed, type Migrator, type MigratorResult, prepareMigrators } from './migrators.ts';
import { connectTarget } from './target.ts';
import { test } from './test.ts';

/** A proxy that counts the messages from a migrator to the server. */
interface CountingProxy {
  readonly url: string;
  /** Messages so far. */
  count(): number;
  close(): Promise<void>;
}

interface KillDatabase extends TestDatabase {
  /** Expires the lease of a killed migrator. Some rounds wait for it to expire instead. */
  expireLease(): Promise<void>;
  /** Asserts that the migrations changed the data once. */
  assertData(target: Target): Promise<void>;
  /**
   * Starts a proxy that forwards or holds each message, numbered from 1. Absent if the driver cannot use a proxy: the
   * migrator then counts its own queries, and kills itself before one.
   */
  startProxy?(actionFor: (number: number) => 'pass' | 'hang'): Promise<CountingProxy>;
}

export interface KillEngine {
  readonly dialect: Dialect;
  readonly migrations: readonly Migration[];
  /** The options with which migrators connect. */
  readonly connect: ConnectOptions;
  createDatabase(): Promise<KillDatabase>;
  /** The minimum number of messages of a full run. */
  readonly minMessages: number;
  /** The number of points at which a migrator is killed. SVC_TEST_KILLS overrides it with a number or `all`. */
  readonly killPoints: number;
}

interface Kill {
  readonly at: number;
  readonly moment: 'before' | 'after';
}

const KILLS = process.env.SVC_TEST_KILLS;
/** Many processes start, some of them one after another. */
const SLOW = { timeoutMs: 900_000 };
const ROUNDS = 10;
/** The number of random rounds that wait until the lease expires. */
const LEASE_ROUNDS = 2;

/**
 * Kills migrator processes with SIGKILL between two messages. The next run must reach the correct state without manual
 * work, and every effect must have happened exactly once.
 */
export function killSuite(engine: KillEngine): void {
  const { dialect, migrations, connect } = engine;
  const defined = migrations.map(definedInCode);
  const prepared = prepareMigrators(dialect.name, migrations);

  const withTarget = async (database: KillDatabase, work: (target: Target) => Promise<void>): Promise<void> => {
    const target = await connectTarget(dialect, database.url, connect);
    try {
      await work(target);
    } finally {
      await target.connection.close();
    }
  };

  const assertComplete = async (database: KillDatabase, target: Target): Promise<void> => {
    await assertFullyMigrated(target, migrations);
    await database.assertData(target);
  };

  /** Runs a migrator to its end, or kills it at a point. */
  const runMigrator = async (
    database: KillDatabase,
    kill: Kill | undefined,
  ): Promise<MigratorResult & { readonly messages: number }> => {
    const start = await prepared;
    if (!database.startProxy) {
      const ended = await start(database.url, kill?.at, { connect, countQueries: true }).ended;
      return { ...ended, messages: Number(/counted (\d+)/.exec(ended.out)?.[1]) };
    }
    let migrator: Migrator | undefined;
    const proxy = await database.startProxy((number) => {
      if (number !== kill?.at) return 'pass';
      migrator?.child.kill('SIGKILL');
      // A message of a dead process may still arrive.
      return kill.moment === 'before' ? 'hang' : 'pass';
    });
    try {
      migrator = start(proxy.url, 0, { connect });
      return { ...(await migrator.ended), messages: proxy.count() };
    } finally {
      await proxy.close();
    }
  };

  /** Runs a migrator, kills it at a point, and finishes with another one. */
  const killAndFinish = async (kill?: Kill, expires = true): Promise<{ died: boolean; messages: number }> => {
    const database = await engine.createDatabase();
    try {
      const { code, signal, err, messages } = await runMigrator(database, kill);
      const died = signal === 'SIGKILL';
      if (!died) assert.equal(code, 0, err);
      if (died && expires) await database.expireLease();
      await withTarget(database, async (target) => {
        await migrate(target, defined, { allowDestructive: true, lockTimeoutMs: 120_000 });
        await assertComplete(database, target);
      });
      return { died, messages };
    } catch (error) {
      const description = kill ? `killed ${kill.moment} message ${kill.at}` : 'undisturbed';
      const why = isSvcError(error) ? ` ${error.why ?? ''} ${error.where ?? ''}` : '';
      throw new Error(`${description}:${why} ${error instanceof Error ? error.stack : error}`, { cause: error });
    } finally {
      await database.drop();
    }
  };

  let messages: Promise<number> | undefined;
  const countMessages = (): Promise<number> => {
    messages ??= killAndFinish().then((run) => run.messages);
    return messages;
  };

  test(
    'after a kill before or after any message, the next run completes',
    async () => {
      const all = await countMessages();
      assert.ok(all >= engine.minMessages, `only ${all} messages`);
      const points = KILLS === 'all' ? all : Number(KILLS ?? engine.killPoints);
      const kills = Array.from({ length: points }, (_, point): Kill[] => {
        const at = Math.max(1, Math.round(((point + 0.5) * all) / points));
        const first: Kill = { at, moment: point % 2 === 0 ? 'before' : 'after' };
        return KILLS === 'all' ? [first, { at, moment: first.moment === 'before' ? 'after' : 'before' }] : [first];
      }).flat();
      await mapConcurrently(kills, (kill) => killAndFinish(kill));
    },
    KILLS === 'all' ? { timeoutMs: 7_200_000 } : SLOW,
  );

  test(
    'after a kill at ten random messages, the next run completes, also if it waits for the lease to expire',
    async () => {
      // The number of messages depends on the speed of statements: a later point might not be reached.
      const most = (await countMessages()) * 0.7;
      const rounds = Array.from({ length: ROUNDS }, (_, round) => ({ round, at: Math.ceil(Math.random() * most) }));
      const runs = await mapConcurrently(rounds, ({ round, at }) =>
        killAndFinish({ at, moment: 'after' }, round >= LEASE_ROUNDS),
      );
      const died = runs.filter((run) => run.died).length;
      assert.ok(died >= ROUNDS / 2, `only ${died} of ${ROUNDS} were killed before their end`);
    },
    SLOW,
  );

  test(
    'two and four concurrent migrators apply everything once and succeed',
    async () => {
      const start = await prepared;
      for (const many of [2, 4]) {
        const database = await engine.createDatabase();
        try {
          const migrators = Array.from({ length: many }, () => start(database.url, 0, { connect }));
          await assertAllSucceed(migrators, migrations);
          await withTarget(database, (target) => assertComplete(database, target));
        } finally {
          await database.drop();
        }
      }
    },
    SLOW,
  );
}

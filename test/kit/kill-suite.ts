import * as assert from 'node:assert/strict';
import type { Target } from '../../core/migration/target.ts';
import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { migrate } from '../../core/migration/migrate.ts';
import { connectAdapter } from './adapter.ts';
import { definedInCode } from './defined.ts';
import type { TestDatabase } from '../suites/test-database.ts';
import { allEndWell, type Ended, type Migrator, migratorsOf } from './migrators.ts';
import { several } from './several.ts';
import { test } from './test.ts';
import { assertWhole } from './whole.ts';

/** What goes from a migrator to the server, seen on the way. */
export interface Passage {
  readonly url: string;
  /** Messages so far. */
  count(): number;
  close(): Promise<void>;
}

export interface KillPlace extends TestDatabase {
  /** As if the lease of the dead had run out: the waiting itself has rounds of its own. */
  expire(): Promise<void>;
  /** What the migrations make of the data is there, once. */
  isWhole(adapter: Target): Promise<void>;
  /**
   * A way to the server on which each message has a number, from 1 on, and a fate. Absent where nothing can stand between
   * the driver and the server: then the migrator counts its own questions, and dies before one.
   */
  passage?(fate: (number: number) => 'pass' | 'hang'): Promise<Passage>;
}

export interface KillEngine {
  readonly dialect: Dialect;
  readonly migrations: readonly Migration[];
  /** What the migrators connect with, and those who go on behind them. */
  readonly connect: ConnectOptions;
  fresh(): Promise<KillPlace>;
  /** Messages of a whole run, at least. */
  readonly least: number;
  /** Points of a run at which one is killed; SVC_TEST_KILLS says another number, or `all`. */
  readonly points: number;
}

interface Kill {
  readonly at: number;
  readonly moment: 'before' | 'after';
}

const WANTED = process.env.SVC_TEST_KILLS;
/** Many processes start, some of them one after another. */
const SLOW = { timeoutMs: 900_000 };
const ROUNDS = 10;
/** Of the random rounds those that wait until the lease of the dead has run out. */
const WAITING = 2;

/**
 * Migrators in processes of their own, killed with SIGKILL between one message and the next: whatever the moment, the
 * next run ends in a correct state without a person, and everything has happened exactly once.
 */
export function killSuite(engine: KillEngine): void {
  const { dialect, migrations, connect } = engine;
  const defined = migrations.map(definedInCode);
  const starting = migratorsOf(dialect.name, migrations);

  const connected = async (place: KillPlace, work: (adapter: Target) => Promise<void>): Promise<void> => {
    const adapter = await connectAdapter(dialect, place.url, connect);
    try {
      await work(adapter);
    } finally {
      await adapter.connection.close();
    }
  };

  const isWhole = async (place: KillPlace, adapter: Target): Promise<void> => {
    await assertWhole(adapter, migrations);
    await place.isWhole(adapter);
  };

  /** Runs a migrator to its end, or to that point. */
  const doomed = async (place: KillPlace, kill: Kill | undefined): Promise<Ended & { readonly messages: number }> => {
    const start = await starting;
    if (!place.passage) {
      const ended = await start(place.url, kill?.at, { connect, questions: true }).ended;
      return { ...ended, messages: Number(/counted (\d+)/.exec(ended.out)?.[1]) };
    }
    let migrator: Migrator | undefined;
    const passage = await place.passage((number) => {
      if (number !== kill?.at) return 'pass';
      migrator?.child.kill('SIGKILL');
      // The message of a process that died may get there all the same.
      return kill.moment === 'before' ? 'hang' : 'pass';
    });
    try {
      migrator = start(passage.url, 0, { connect });
      return { ...(await migrator.ended), messages: passage.count() };
    } finally {
      await passage.close();
    }
  };

  /** And then another one to its end. */
  const killed = async (kill?: Kill, expires = true): Promise<{ died: boolean; messages: number }> => {
    const place = await engine.fresh();
    try {
      const { code, signal, err, messages } = await doomed(place, kill);
      const died = signal === 'SIGKILL';
      if (!died) assert.equal(code, 0, err);
      if (died && expires) await place.expire();
      await connected(place, async (adapter) => {
        await migrate(adapter, defined, { allowDestructive: true, lockTimeoutMs: 120_000 });
        await isWhole(place, adapter);
      });
      return { died, messages };
    } catch (error) {
      const told = kill ? `killed ${kill.moment} message ${kill.at}` : 'undisturbed';
      const why = isSvcError(error) ? ` ${error.why ?? ''} ${error.where ?? ''}` : '';
      throw new Error(`${told}:${why} ${error instanceof Error ? error.stack : error}`, { cause: error });
    } finally {
      await place.drop();
    }
  };

  let messages: Promise<number> | undefined;
  const undisturbed = (): Promise<number> => {
    messages ??= killed().then((run) => run.messages);
    return messages;
  };

  test(
    'killed before and after messages all along, the next run ends whole',
    async () => {
      const all = await undisturbed();
      assert.ok(all >= engine.least, `only ${all} messages`);
      const points = WANTED === 'all' ? all : Number(WANTED ?? engine.points);
      const kills = Array.from({ length: points }, (_, point): Kill[] => {
        const at = Math.max(1, Math.round(((point + 0.5) * all) / points));
        const first: Kill = { at, moment: point % 2 === 0 ? 'before' : 'after' };
        return WANTED === 'all' ? [first, { at, moment: first.moment === 'before' ? 'after' : 'before' }] : [first];
      }).flat();
      await several(kills, (kill) => killed(kill));
    },
    WANTED === 'all' ? { timeoutMs: 7_200_000 } : SLOW,
  );

  test(
    'killed ten times at random, ten of ten end whole, also where the lease of the dead has to run out',
    async () => {
      // How many messages there are depends on how quickly statements are done: the others end before their end.
      const most = (await undisturbed()) * 0.7;
      const rounds = Array.from({ length: ROUNDS }, (_, round) => ({ round, at: Math.ceil(Math.random() * most) }));
      const runs = await several(rounds, ({ round, at }) => killed({ at, moment: 'after' }, round >= WAITING));
      const died = runs.filter((run) => run.died).length;
      assert.ok(died >= ROUNDS / 2, `only ${died} of ${ROUNDS} were killed before their end`);
    },
    SLOW,
  );

  test(
    'two and four migrators at once apply everything once and all end well',
    async () => {
      const start = await starting;
      for (const many of [2, 4]) {
        const place = await engine.fresh();
        try {
          const migrators = Array.from({ length: many }, () => start(place.url, 0, { connect }));
          await allEndWell(migrators, migrations);
          await connected(place, (adapter) => isWhole(place, adapter));
        } finally {
          await place.drop();
        }
      }
    },
    SLOW,
  );
}

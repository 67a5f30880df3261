import * as assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { isSvcError } from '../../core/errors.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { MigrationEngine } from '../../core/migration/migration-engine.ts';
import { applyAll } from '../../core/schema/apply.ts';
import { describeDifferences } from '../../core/schema/diff.ts';
import { invertAll } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import { modelOperations } from '../../core/schema/model-operations.ts';
import type { Operation } from '../../core/schema/operation.ts';
import { migrationTarget } from './connect-when-free.ts';
import { type CaseDatabase, type EngineOnDatabase, withDatabase } from './dialect-case.ts';
import type { KillPoint } from './dialect-process.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';
import { colocatedThings, SEGMENT_KEYS } from './record-segments.ts';
import { type DeclareCase, describeTestError } from './suite.ts';
import { ID, isLegal, supportedOperations } from './supported-operations.ts';

/** The points of a run at which a process is killed, evenly spread over it. */
const POINTS = 10;
const RANDOM_ROUNDS = 4;
/** Killed processes wait for a lease to expire, so more run at a time than there are processors. */
const CONCURRENCY = 4;
/** Kills of a process that writes records, each about this much later than the one before. */
const WRITE_KILLS = 4;
const KILL_STEP_MS = 30;
const TIMEOUT_MS = 600_000;
const TABLE = 'crash_rows';
/** The row that `DialectUnderTest.raw` inserts. */
const ROW = 7;

const PROMISE =
  'A process that dies while it migrates leaves a database that the next one can finish: each step has taken effect once, as the catalog, `check` or `idempotent` shows, or the migration is reported as half done.';

/**
 * Cases that kill processes which migrate, with SIGKILL. The next process must finish the migrations, with every effect
 * exactly once, or stop with `migration_half_done` and leave the decision to a person.
 */
export function crashCases(declare: DeclareCase, engine: DialectUnderTest): void {
  const on = (name: string, body: () => Promise<void>) =>
    declare(name, body, { promise: PROMISE, timeoutMs: TIMEOUT_MS });
  on('after a kill before or during any call, the next process finishes the migrations', () =>
    killAtPoints(engine, 'up'),
  );
  on('after a kill during a rollback, the next process finishes it', () => killAtPoints(engine, 'down'));
  on('after a kill at a random moment, the next process finishes the migrations', () => killAtRandom(engine));
  declare('a killed process leaves every record write of a segment, or none', () => killWhileWriting(engine), {
    promise:
      'When `run` has returned, the record writes of its segments survive the death of the process. A process that dies earlier leaves all writes of a segment with their entries in indexes, or none.',
    timeoutMs: TIMEOUT_MS,
  });
}

/** Kills processes that write one segment after the other, and compares the records that they leave. */
async function killWhileWriting(engine: DialectUnderTest): Promise<void> {
  const { options = {} } = engine;
  const moments = Array.from({ length: WRITE_KILLS }, (_, kill) => (kill + Math.random()) * KILL_STEP_MS);
  await concurrently(moments, (afterMs) =>
    withDatabase(engine, async ({ url, connect, start }) => {
      const child = start();
      await child.run('writeSegments', url, options);
      await wait(afterMs);
      await child.kill();
      assert.ok(child.wasKilled(), 'the process ended before it was killed: it could not write its segments');
      const store = (await connect()).records(colocatedThings);
      const found = await Promise.all(SEGMENT_KEYS.map((key) => store.get(key)));
      const sizes = found.map((one) => one?.record.size ?? 0);
      const when = `${Math.round(afterMs)} ms after its first segment, a killed process left`;
      const [size = 0] = sizes;
      assert.ok(size > 0 && new Set(sizes).size === 1, `${when} records of the segments ${sizes.join(', ')}`);
      const { records } = await store.page('bySize', { equals: { kind: 'k' }, limit: 100 });
      const entries = records.map(({ record }) => `${record.id} of ${record.size}`);
      assert.deepEqual(entries.sort(), SEGMENT_KEYS.map((key) => `${key} of ${size}`).sort(), `${when} other entries`);
    }),
  );
}

/** Runs a migrating process without a kill, then one for each point of it. */
async function killAtPoints(engine: DialectUnderTest, direction: 'up' | 'down'): Promise<void> {
  const calls = await withDatabase(engine, (database) => migrateAndFinish(engine, database, direction));
  const points = Array.from(
    { length: Math.min(POINTS, calls) },
    (_, index): KillPoint => ({
      call: 1 + Math.floor(((index + 0.5) * calls) / Math.min(POINTS, calls)),
      moment: index % 2 === 0 ? 'before' : 'during',
    }),
  );
  await concurrently(points, (point) =>
    withDatabase(engine, (database) => migrateAndFinish(engine, database, direction, point)),
  );
}

/** Migrates in a process that kills itself at a point, and finishes in this one. Returns the number of calls. */
async function migrateAndFinish(
  engine: DialectUnderTest,
  database: CaseDatabase,
  direction: 'up' | 'down',
  point?: KillPoint,
): Promise<number> {
  const { options = {} } = engine;
  const migrations = migrationsFor(database.engine);
  const child = database.start();
  if (direction === 'down') await child.run('migrate', database.url, options, migrations, 'up');
  const calls = await child.run('migrate', database.url, options, migrations, direction, point).catch((error) => {
    if (!child.wasKilled()) throw error;
    return 0;
  });
  await child.kill();
  await finish(database, migrations, point ? `killed ${point.moment} call ${point.call}` : 'undisturbed');
  return calls;
}

/** Kills a process at moments that it does not choose, while statements are running. */
async function killAtRandom(engine: DialectUnderTest): Promise<void> {
  const { options = {} } = engine;
  const runAndKill = (afterMs: number) =>
    withDatabase(engine, async (database) => {
      const migrations = migrationsFor(database.engine);
      const child = database.start();
      // Loaded before the time is taken.
      await child.run('identify', database.url);
      const startedAt = performance.now();
      const migrated = child.run('migrate', database.url, options, migrations, 'up').then(
        () => 'done',
        (error) => error,
      );
      const outcome = await Promise.race([migrated, wait(afterMs, 'late', { ref: false })]);
      const tookMs = performance.now() - startedAt;
      await child.kill();
      if (outcome instanceof Error) throw outcome;
      await finish(database, migrations, `killed after ${Math.round(afterMs)} ms`);
      return tookMs;
    });
  const fullMs = await runAndKill(TIMEOUT_MS);
  const moments = Array.from(
    { length: RANDOM_ROUNDS },
    (_, round) => ((round + Math.random()) / RANDOM_ROUNDS) * fullMs,
  );
  await concurrently(moments, runAndKill);
}

/** Applies the migrations in this process, and checks that everything has happened once. */
async function finish(
  { engine, connect }: CaseDatabase,
  migrations: readonly Migration[],
  when: string,
): Promise<void> {
  const connection = await connect();
  const target = migrationTarget(engine.dialect, connection);
  const migrationEngine = new MigrationEngine(target);
  try {
    for (const migration of migrations) await migrationEngine.up(migration);
  } catch (error) {
    // The report: a person decides.
    if (isSvcError(error) && error.code === 'migration_half_done') return;
    throw new Error(`${when}: ${describeTestError(error)}`, { cause: error });
  }
  const history = await migrationEngine.getHistory({ all: true });
  assert.deepEqual(
    history.map(({ tag, status }) => `${tag} ${status}`),
    migrations.map(({ tag }) => `${tag} completed`),
    when,
  );
  const model = applyAll(migrations.flatMap(({ up }) => up));
  const expected = await connection.normalize(model);
  assert.deepEqual(describeDifferences(expected, await connection.introspect()), [], when);
  const rows = await engine.read(connection, TABLE);
  assert.deepEqual(
    rows.map(({ id }) => Number(id)),
    [ROW],
    when,
  );
}

/** Operations of several kinds, without those that the dialect does not support. */
function migrationsFor(engine: EngineOnDatabase): readonly Migration[] {
  const { dialect } = engine;
  const { create, isUnsupported, isAnyUnsupported } = supportedOperations(dialect);
  const table = { collection: TABLE };
  const steps: readonly (readonly Operation[])[] = [
    [
      create(TABLE, [ID, { name: 'name', type: 'string', length: 40 }, { name: 'n', type: 'integer' }]),
      create('crash_others', [ID]),
    ],
    [
      { type: 'addField', ...table, field: { name: 'note', type: 'string', length: 40, default: 'x' } },
      { type: 'raw', dialect: dialect.name, ...engine.raw(TABLE) },
      { type: 'createIndex', ...table, index: 'crash_by_n', columns: [{ name: 'n' }] },
    ],
    [
      { type: 'renameField', ...table, from: 'name', to: 'title' },
      { type: 'modifyField', ...table, field: 'note', changes: { length: 80 } },
      { type: 'dropIndex', ...table, index: 'crash_by_n' },
      { type: 'dropCollection', collection: 'crash_others' },
    ],
  ];
  let model: SchemaModel = new Map();
  return steps.map((operations, index): Migration => {
    const before = model;
    const up = operations.filter((operation) => {
      if (operation.type !== 'raw') {
        if (!isLegal(operation, model) || isUnsupported(operation, model)) return false;
        model = applyAll([operation], model);
      }
      return true;
    });
    const down = up.some(({ type }) => type === 'raw') ? [] : invertAll(up, before);
    const irreversible = down.length === 0 || isAnyUnsupported(modelOperations(down, ''), model);
    const name = `crash_${index}`;
    return {
      tag: `2026010${index + 1}_000000_${name}`,
      name,
      up,
      down: irreversible ? [] : down,
      ...(irreversible && { irreversible: 'It is not needed.' }),
    };
  });
}

/** Runs work for all items, a few at a time, and fails with the first error. */
async function concurrently<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const remaining = [...items];
  const worker = async () => {
    for (let item = remaining.shift(); item !== undefined; item = remaining.shift()) {
      await work(item).catch((error) => {
        remaining.length = 0;
        throw error;
      });
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: CONCURRENCY }, worker));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

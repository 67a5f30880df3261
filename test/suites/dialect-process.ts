import { setTimeout as wait } from 'node:timers/promises';
import type { Connection, ConnectOptions, Dialect } from '../../core/dialect.ts';
import type { Json } from '../../core/json.ts';
import { Kernel } from '../../core/kernel.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { MigrationEngine } from '../../core/migration/migration-engine.ts';
import { applyPlugin } from '../../core/plugin.ts';
import { anyDefinition, recordWrite } from '../../core/records.ts';
import type { Collection, SchemaModel } from '../../core/schema/model.ts';
import type { Operation } from '../../core/schema/operation.ts';
import { connectUnlessInUse, connectWhenFree, migrationTarget } from './connect-when-free.ts';
import { writeSegments } from './record-segments.ts';
import { type Thing, thing, things } from './record-store-suite.ts';
import { runOperations } from './run-operations.ts';
import { describeTestError } from './suite.ts';

/**
 * A process of its own with a dialect: `node dialect-process.ts <URL of the plugin's module> <name of the dialect>`. It
 * receives jobs as messages, runs one at a time, and is killed by its parent or by itself.
 */

/** The moment at which a migrating process kills itself: before the n-th call to the connection, or during it. */
export interface KillPoint {
  readonly call: number;
  readonly moment: 'before' | 'during';
}

/** What two processes exchange. */
export interface Moments {
  readonly collection: Collection;
  /** Values of a row. */
  readonly values: readonly { readonly field: string; readonly value: Json }[];
  /** Set in the rows that have these values. */
  readonly mark: { readonly field: string; readonly value: Json };
  readonly added: readonly Operation[];
  /** The key of a record to read. */
  readonly read: string;
  readonly write: Thing;
}

/** Another holder of the lock is found by a record that only one process can insert. */
const HOLDER = 'the holder of the lock';

/** How long a process retries writes that another one prevents. */
const BUSY_MS = 60_000;
/** The first of so many records is written as a migration writes its own. */
const UNDER_LOCK = 20;

const jobs = {
  identify: async (dialect: Dialect, url: string) => dialect.identify(url),

  /** Runs operations under the lock and inserts a record. Returns the epoch. */
  async write(dialect: Dialect, url: string, options: ConnectOptions, operations: readonly Operation[], key: string) {
    const connection = await connectWhenFree(dialect, url, options);
    return connection.withLock(async (epoch) => {
      await connection.ensureTables([anyDefinition(things)]);
      await runOperations(dialect, connection, operations, new Map(), epoch);
      await connection.records(things).insert(thing(key, 1));
      return epoch;
    });
  },

  /**
   * Writes records until a number of them are acknowledged, some under the lock. After a failure it writes another one. Returns
   * the keys of those that were acknowledged, and leaves the connection open.
   */
  async acknowledge(dialect: Dialect, url: string, options: ConnectOptions, name: string, count: number) {
    const connection = await connectWhenFree(dialect, url, options);
    await connection.withLock(() => connection.ensureTables([anyDefinition(things)]));
    const store = connection.records(things);
    const keys: string[] = [];
    const deadline = Date.now() + BUSY_MS;
    for (let attempt = 0; keys.length < count; attempt += 1) {
      const record = thing(`${name} ${attempt}`, attempt, name);
      try {
        if (keys.length % UNDER_LOCK === 0) await writeUnderLock(connection, record);
        else if ((await store.insert(record)) === 'exists') throw new Error(`"${record.id}" was written before`);
        keys.push(record.id);
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await wait(1);
      }
    }
    return keys;
  },

  /** Writes segments until the process is killed. Resolves once the first one is written. */
  async writeSegments(dialect: Dialect, url: string, options: ConnectOptions) {
    const connection = await connectWhenFree(dialect, url, options);
    return new Promise<number>((resolve, reject) => {
      let isWritten = false;
      const onWritten = (segment: number) => {
        isWritten = true;
        resolve(segment);
        return true;
      };
      writeSegments(connection, onWritten).catch((error) => {
        // Nobody awaits it any more: it ends the process.
        if (isWritten) throw error;
        reject(error);
      });
    });
  },

  /** Takes the lock and never releases it. Returns the epoch. */
  async hold(dialect: Dialect, url: string, options: ConnectOptions) {
    const connection = await connectWhenFree(dialect, url, options);
    return new Promise<number>((resolve, reject) => {
      const work = (epoch: number) => {
        resolve(epoch);
        return new Promise(() => {});
      };
      connection.withLock(work).catch(reject);
    });
  },

  /** Takes the lock again and again. Returns the epochs; throws if another process is inside at the same time. */
  async race(dialect: Dialect, url: string, options: ConnectOptions, rounds: number) {
    const connection = await connectWhenFree(dialect, url, options);
    const store = connection.records(things);
    const epochs: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(things)]);
        if ((await store.insert(thing(HOLDER, epoch))) !== 'inserted') throw new Error('two processes held the lock');
        await connection.now();
        if ((await store.remove(HOLDER, 1)) !== 'removed') throw new Error('two processes held the lock');
        epochs.push(epoch);
      });
    }
    await connection.close();
    return epochs;
  },

  /**
   * Replaces a record for each deadline while the clock of this process is wrong. Returns the outcomes, and the engine's
   * time.
   */
  async replaceAround(
    dialect: Dialect,
    url: string,
    options: ConnectOptions,
    clockMs: number,
    deadlines: readonly number[],
  ) {
    setClock(clockMs);
    const connection = await connectWhenFree(dialect, url, options);
    await connection.withLock(() => connection.ensureTables([anyDefinition(things)]));
    const store = connection.records(things);
    const outcomes: string[] = [];
    for (const deadline of deadlines) {
      const key = `${clockMs} ${deadline}`;
      await store.insert({ ...thing(key, 1), expires: new Date(deadline) });
      outcomes.push(await store.replace(key, 1, thing(key, 2), { before: 'expires' }));
    }
    const now = (await connection.now()).getTime();
    await connection.close();
    return { outcomes, now };
  },

  /** Runs operations. Returns false if another process has opened a database that only one can open. */
  async change(
    dialect: Dialect,
    url: string,
    options: ConnectOptions,
    operations: readonly Operation[],
    from: SchemaModel,
  ) {
    const connection = await connectUnlessInUse(dialect, url, options);
    if (!connection) return false;
    await runOperations(dialect, connection, operations, from);
    await connection.close();
    return true;
  },

  /** Reads moments of records and rows that another process wrote, and writes the same. */
  async exchangeMoments(dialect: Dialect, url: string, options: ConnectOptions, moments: Moments) {
    const { collection, values, mark, added, read, write } = moments;
    const connection = await connectWhenFree(dialect, url, options);
    const store = connection.records(things);
    const expires = (await store.get(read))?.record.expires;
    await store.insert(write);
    const job = { table: collection.name, collection };
    const where = values.map(({ field, value }) => ({ field, operator: 'eq', value }) as const);
    await connection.update({ ...job, key: `find in ${job.table}`, where, set: [mark] });
    const second = [{ field: 'id', operator: 'eq', value: 2 }] as const;
    await connection.update({ ...job, key: `set in ${job.table}`, where: second, set: values });
    const model = new Map([[collection.name, collection]]);
    await connection.withLock((epoch) => runOperations(dialect, connection, added, model, epoch));
    const now = await connection.now();
    await connection.close();
    return { expires, now };
  },

  /** Applies migrations, or rolls back the last. Returns the number of calls to the connection. */
  async migrate(
    dialect: Dialect,
    url: string,
    options: ConnectOptions,
    migrations: readonly Migration[],
    direction: 'up' | 'down',
    kill?: KillPoint,
  ) {
    const connection = await connectWhenFree(dialect, url, options);
    let calls = 0;
    const onCall = () => {
      calls += 1;
      if (calls !== kill?.call) return;
      if (kill.moment === 'before') killSelf();
      else setImmediate(killSelf);
    };
    const engine = new MigrationEngine(migrationTarget(dialect, countCalls(connection, onCall)));
    if (direction === 'up') for (const migration of migrations) await engine.up(migration);
    else for (const migration of migrations.slice(-1)) await engine.down(migration);
    await connection.close();
    return calls;
  },
};

export type Jobs = typeof jobs;

/** A job with its arguments other than the dialect. */
export interface Job {
  readonly name: keyof Jobs;
  readonly args: readonly unknown[];
}

export type Answer = { readonly value: unknown } | { readonly error: string };

const killSelf = (): void => void process.kill(process.pid, 'SIGKILL');

const writeUnderLock = (connection: Connection, record: Thing): Promise<void> =>
  connection.withLock(async (epoch) => {
    const segment = { transactional: true, statements: [], writes: [recordWrite(things, record)] };
    const { failure } = await connection.run([segment], epoch);
    if (failure) throw failure.error;
  });

/** Moves the clock of this process, as on a machine whose clock is wrong. */
function setClock(aheadMs: number): void {
  const real = Date;
  const now = () => real.now() + aheadMs;
  globalThis.Date = new Proxy(real, {
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
}

/** Reports each call of a method before it is made, those of record stores and of a run's observer included. */
function countCalls<T extends object>(target: T, onCall: () => void): T {
  return new Proxy(target, {
    get(object, name) {
      const member = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === 'records') return countCalls(member.apply(object, args) as object, onCall);
        onCall();
        const isObserver = (arg: unknown) => typeof arg === 'object' && arg !== null && 'shouldContinue' in arg;
        return member.apply(
          object,
          args.map((arg) => (isObserver(arg) ? countCalls(arg as object, onCall) : arg)),
        );
      };
    },
  });
}

async function run(dialect: Dialect, { name, args }: Job): Promise<Answer> {
  try {
    // The arguments come from `DialectProcess.run`, which has the types of the jobs.
    const job = jobs[name] as (dialect: Dialect, ...args: readonly unknown[]) => Promise<unknown>;
    return { value: await job(dialect, ...args) };
  } catch (error) {
    return { error: describeTestError(error) };
  }
}

const [module = '', name = ''] = process.argv.slice(2);
const kernel = new Kernel();
applyPlugin(kernel, (await import(module)).default, module);
const dialect = kernel.dialects.get(name);
process.on('message', (job: Job) => void run(dialect, job).then((answer) => process.send?.(answer)));
process.on('disconnect', () => process.exit());

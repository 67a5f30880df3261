// A migrator process that can kill or freeze itself before the n-th call:
// `node migrator.ts <dialect> <url> <file of migrations> [n] [options as JSON]`.
import { readFileSync, writeSync } from 'node:fs';
import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { migrate, rollback } from '../../core/migration/migrate.ts';
import { purge } from '../../core/migration/purge.ts';
import { definedInCode } from './migrations.ts';
import { connectTarget } from './target.ts';

export interface MigratorOptions {
  readonly connect?: ConnectOptions;
  /** Counts the queries of the driver of PostgreSQL or Cassandra instead of the calls to the connection. */
  readonly countQueries?: true;
  /** Keeps what the migrations drop. */
  readonly keepMs?: number;
  /** What it does instead of applying the migrations. */
  readonly action?: 'rollback' | 'purge';
  /** Freezes at the n-th call instead of being killed. */
  readonly freeze?: true;
}

const DIALECTS: Readonly<Record<string, () => Promise<Dialect>>> = {
  postgresql: async () => (await import('../../plugins/dialects/postgresql/dialect.ts')).postgresql,
  mysql: async () => (await import('../../plugins/dialects/mysql/dialect.ts')).mysql,
  mariadb: async () => (await import('../../plugins/dialects/mariadb/dialect.ts')).mariadb,
  mongodb: async () => (await import('../../plugins/dialects/mongodb/dialect.ts')).mongodb,
  dynamodb: async () => (await import('../../plugins/dialects/dynamodb/dialect.ts')).dynamodb,
  cassandra: async () => (await import('../../plugins/dialects/cassandra/dialect.ts')).cassandra,
};

const [name = '', url = '', file = '', killAt = '0', optionsJson = '{}'] = process.argv.slice(2);
const { connect = {}, countQueries, keepMs, action, freeze } = JSON.parse(optionsJson) as MigratorOptions;
let count = 0;

/** Kills or freezes the process with a signal, without any cleanup. */
function countCall(): void {
  count += 1;
  if (count !== Number(killAt)) return;
  writeSync(1, 'reached\n');
  process.kill(process.pid, freeze ? 'SIGSTOP' : 'SIGKILL');
}

/** Counts the calls to the database. */
function counting<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name, _receiver) {
      const member = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === 'records') return counting(member.apply(object, args) as object);
        countCall();
        return member.apply(object, args);
      };
    },
  });
}

async function countDriverQueries(): Promise<void> {
  if (name === 'postgresql') countCallsOf((await import('pg')).default.Client.prototype, 'query');
  else countCallsOf((await import('cassandra-driver')).default.Client.prototype, 'execute');
}

function countCallsOf<Name extends string>(prototype: Record<Name, unknown>, method: Name): void {
  const original = prototype[method] as (...all: unknown[]) => unknown;
  prototype[method] = function (this: unknown, ...all: unknown[]) {
    countCall();
    return original.apply(this, all);
  };
}

const dialect = await DIALECTS[name]?.();
if (!dialect) throw new Error(`there is no dialect ${name}`);
if (countQueries) await countDriverQueries();
const target = await connectTarget(dialect, url, {
  busyTimeoutMs: 120_000,
  ...connect,
  onProgress: ({ done, checksOnly }) => void process.stdout.write(`${checksOnly ? 'checked' : 'done'} ${done}\n`),
});
try {
  const connection = countQueries ? target.connection : counting(target.connection);
  const defined = JSON.parse(readFileSync(file, 'utf8')).map(definedInCode);
  process.stdout.write('ready\n');
  const counted = { ...target, connection };
  const options = { allowDestructive: true, lockTimeoutMs: 120_000 };
  if (action === 'purge') await purge(counted, options);
  else {
    const report =
      action === 'rollback'
        ? await rollback(counted, options)
        : await migrate(counted, defined, { ...options, keepMs });
    process.stdout.write(`applied ${report.migrations.length} counted ${count}\n`);
  }
} catch (error) {
  process.stderr.write(
    `${isSvcError(error) ? `${error.code}: ${error.message} ${error.why ?? ''} ${error.state ?? ''}` : String(error)}\n`,
  );
  process.exitCode = 1;
} finally {
  await target.connection.close();
}

// A migrator in a process of its own, which can be told to die or to stand still:
// `node migrator.ts <dialect> <url> <file of migrations> [n] [options as JSON]`.
import { readFileSync, writeSync } from 'node:fs';
import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { migrate } from '../../core/migration/migrate.ts';
import { connectAdapter } from './adapter.ts';
import { definedInCode } from './defined.ts';

export interface MigratorOptions {
  readonly connect?: ConnectOptions;
  /** Counts the questions of Cassandra's driver instead of the calls to the connection. */
  readonly questions?: true;
  /** Stands still at the n-th instead of dying. */
  readonly stop?: true;
}

const DIALECTS: Readonly<Record<string, () => Promise<Dialect>>> = {
  postgresql: async () => (await import('../../plugins/dialects/postgresql/dialect.ts')).postgresql,
  mysql: async () => (await import('../../plugins/dialects/mysql/dialect.ts')).mysql,
  mariadb: async () => (await import('../../plugins/dialects/mariadb/dialect.ts')).mariadb,
  mongodb: async () => (await import('../../plugins/dialects/mongodb/dialect.ts')).mongodb,
  dynamodb: async () => (await import('../../plugins/dialects/dynamodb/dialect.ts')).dynamodb,
  cassandra: async () => (await import('../../plugins/dialects/cassandra/dialect.ts')).cassandra,
};

const [name = '', url = '', file = '', end = '0', told = '{}'] = process.argv.slice(2);
const { connect = {}, questions, stop } = JSON.parse(told) as MigratorOptions;
let count = 0;

/** By a signal: nothing of this process gets to say good-bye. */
function counted(): void {
  count += 1;
  if (count !== Number(end)) return;
  writeSync(1, 'reached\n');
  process.kill(process.pid, stop ? 'SIGSTOP' : 'SIGKILL');
}

/** Counts the calls to the database. */
function mortal<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name, _receiver) {
      const member = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === 'records') return mortal(member.apply(object, args) as object);
        counted();
        return member.apply(object, args);
      };
    },
  });
}

async function countQuestions(): Promise<void> {
  const { Client } = (await import('cassandra-driver')).default;
  const execute = Client.prototype.execute as (...all: unknown[]) => unknown;
  Client.prototype.execute = function (this: unknown, ...all: unknown[]) {
    counted();
    return execute.apply(this, all);
  } as typeof Client.prototype.execute;
}

const dialect = await DIALECTS[name]?.();
if (!dialect) throw new Error(`there is no dialect ${name}`);
if (questions) await countQuestions();
const adapter = await connectAdapter(dialect, url, {
  busyTimeoutMs: 120_000,
  ...connect,
  onProgress: ({ done, checksOnly }) => void process.stdout.write(`${checksOnly ? 'checked' : 'done'} ${done}\n`),
});
try {
  const connection = questions ? adapter.connection : mortal(adapter.connection);
  const defined = JSON.parse(readFileSync(file, 'utf8')).map(definedInCode);
  process.stdout.write('ready\n');
  const report = await migrate({ ...adapter, connection }, defined, { allowDestructive: true, lockTimeoutMs: 120_000 });
  process.stdout.write(`applied ${report.migrations.length} counted ${count}\n`);
} catch (error) {
  process.stderr.write(
    `${isSvcError(error) ? `${error.code}: ${error.message} ${error.why ?? ''} ${error.state ?? ''}` : String(error)}\n`,
  );
  process.exitCode = 1;
} finally {
  await adapter.connection.close();
}

// Applies migrations in an environment with approval, or requests it, and kills itself before the n-th call to a database, the
// store of the approvals included: `node plan-process.ts <dialect> <url> <n>`.
import { writeSync } from 'node:fs';
import { Svc } from '../../config/sdk/index.ts';
import type { Connection, Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { migrate } from '../../core/migration/migrate.ts';
import { definePlugin } from '../../core/plugin.ts';
import { definedInCode } from './migrations.ts';
import { approvalConfig, drops, ground } from './plan-approval.ts';

const [name = '', url = '', killAt = '0'] = process.argv.slice(2);
let count = 0;

function counting<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, member) {
      const value = Reflect.get(object, member, object);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (member === 'records') return counting(value.apply(object, args) as object);
        count += 1;
        if (count === Number(killAt)) {
          writeSync(1, 'reached\n');
          process.kill(process.pid, 'SIGKILL');
        }
        return value.apply(object, args);
      };
    },
  });
}

const DIALECTS: Readonly<Record<string, () => Promise<Dialect>>> = {
  postgresql: async () => (await import('../../plugins/dialects/postgresql/dialect.ts')).postgresql,
  mysql: async () => (await import('../../plugins/dialects/mysql/dialect.ts')).mysql,
  mariadb: async () => (await import('../../plugins/dialects/mariadb/dialect.ts')).mariadb,
  mongodb: async () => (await import('../../plugins/dialects/mongodb/dialect.ts')).mongodb,
  dynamodb: async () => (await import('../../plugins/dialects/dynamodb/dialect.ts')).dynamodb,
  cassandra: async () => (await import('../../plugins/dialects/cassandra/dialect.ts')).cassandra,
};

const dialect = await DIALECTS[name]?.();
if (!dialect) throw new Error(`${name} is not a dialect`);
const counted: Dialect = {
  ...dialect,
  connect: async (...args) => counting((await dialect.connect(...args)) as Connection),
};
const plugin = definePlugin({ name: 'counted', apply: (kernel) => kernel.dialects.register('counted', counted) });
const svc = new Svc({ config: approvalConfig('counted', url, { plugins: [plugin] }) });
const db = await svc.database.connect({ database: 'main' });
const ended = await migrate(db.getAdapter(), [ground, ...drops].map(definedInCode)).catch((error: unknown) => {
  if (isSvcError(error) && error.code === 'approval_pending') return error.code;
  throw error;
});
await svc.close();
writeSync(1, typeof ended === 'string' ? `${ended}\n` : `applied ${ended.migrations.length}\n`);

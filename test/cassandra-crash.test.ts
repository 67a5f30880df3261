import * as assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import type { Migration } from '../core/migration/migration.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { type FreshKeyspace, freshKeyspace, unavailable } from './kit/cassandra.ts';
import { killSuite } from './kit/kill-suite.ts';
import { assertFullyMigrated, definedInCode } from './kit/migrations.ts';
import { prepareMigrators } from './kit/migrators.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { waitUntil } from './suites/wait-until.ts';

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const insert = (id: number) => `INSERT INTO users (id, email, n) VALUES (${id}, 'u${id}@example.org', ${id})`;
const added = (id: number) => ({
  check: `SELECT id FROM users WHERE id = ${id}`,
  down: `DELETE FROM users WHERE id = ${id}`,
});

const migrations: readonly Migration[] = [
  migration('20260101_000000_users')
    .createCollection('users', [key, { name: 'email', type: 'string', length: 80 }, { name: 'n', type: 'integer' }])
    .raw('cassandra', insert(1), added(1))
    .raw('cassandra', insert(2), added(2))
    .build(),
  migration('20260102_000000_fields')
    .addField('users', { name: 'kind', type: 'enum', enumValues: ['a', 'b'], default: 'a', required: true })
    .addField('users', { name: 'note', type: 'string', length: 20 })
    .createIndex('users', 'users_n', [{ name: 'n' }])
    .modifyField('users', 'email', { length: 100 }, { was: { length: 80 } })
    .build(),
  migration('20260103_000000_copy')
    .dropIndex('users', 'users_n', { was: { columns: [{ name: 'n' }] } })
    .renameField('users', 'email', 'mail', { strategy: 'copy' })
    .renameField('users', 'n', 'number', {
      strategy: 'copy',
      changes: { type: 'string', length: 5 },
      was: { type: 'integer' },
    })
    .renameField('users', 'id', 'user')
    .dropField('users', 'note', { was: { type: 'string', length: 20 } })
    .build(),
  migration('20260104_000000_events')
    .createCollection('gone', [key])
    .createCollection(
      'events',
      [
        { name: 'tenant', type: 'text' },
        { name: 'at', type: 'timestamp' },
        { name: 'what', type: 'json' },
      ],
      {
        cassandraOptions: {
          partitionKey: ['tenant'],
          clusteringColumns: ['at'],
          clusteringOrder: [{ column: 'at', order: 'DESC' }],
          defaultTTL: 86_400,
        },
      },
    )
    .dropCollection('gone', { was: { fields: [key] } })
    .build(),
];
async function assertComplete(keyspace: FreshKeyspace): Promise<void> {
  const rows = await keyspace.query('SELECT "user", mail, number, kind FROM users');
  assert.deepEqual(
    rows.map((row) => ({ ...row })).sort((a, b) => Number(a.user) - Number(b.user)),
    [1, 2].map((n) => ({ user: n, mail: `u${n}@example.org`, number: `${n}`, kind: 'a' })),
  );
}

/** Expires the lock. The table does not exist before the first acquisition. */
async function expire(keyspace: FreshKeyspace): Promise<void> {
  const [row] = await keyspace
    .query(`SELECT lock_epoch FROM "_svc_migrations" WHERE scope = 'migrations' LIMIT 1`)
    .catch(() => []);
  if (!row) return;
  const cql = `DELETE lock_owner FROM "_svc_migrations" WHERE scope = 'migrations' IF lock_epoch = ?`;
  await keyspace.query(cql, [row.lock_epoch]);
}

function isStopped({ pid }: ChildProcess): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
}

if (unavailable) test.skip('crashes on Cassandra', unavailable);
else {
  killSuite({
    dialect: cassandra,
    migrations,
    connect: {},
    minMessages: 50,
    killPoints: 10,
    createDatabase: async () => {
      const keyspace = await freshKeyspace();
      return { ...keyspace, assertData: () => assertComplete(keyspace), expireLease: () => expire(keyspace) };
    },
  });

  test(
    'a process suspended for longer than its lease loses the lock, and its later writes are rejected',
    async () => {
      const start = await prepareMigrators('cassandra', migrations);
      const keyspace = await freshKeyspace();
      const adapter = await connectTarget(cassandra, keyspace.url);
      const whole = async () => {
        await assertFullyMigrated(adapter, migrations);
        await assertComplete(keyspace);
      };
      try {
        const { child, ended, ready } = start(keyspace.url, 60, { countQueries: true, freeze: true });
        await ready;
        await waitUntil(() => isStopped(child), 'the process was never suspended');
        await migrate(adapter, migrations.map(definedInCode), { allowDestructive: true, lockTimeoutMs: 120_000 });
        await whole();
        child.kill('SIGCONT');
        const { code, err } = await ended;
        assert.equal(code, 1, err);
        assert.match(err, /lock_lost/);
        await whole();
      } finally {
        await adapter.connection.close();
        await keyspace.drop();
      }
    },
    { timeoutMs: 300_000 },
  );
}

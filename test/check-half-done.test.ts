import * as assert from 'node:assert/strict';
import { historyTable } from '../core/migration/history-table.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { type Engine, sixEngines } from './kit/six-engines.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';

// `svc db schema check` after a migration that stopped half-way.

const TAG = '20260101_000000_half';
const FILE = `svc/database/migrations/main/${TAG}.json`;
const aws = { AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: 'us-east-1' };

const FAILING: Readonly<Record<Engine['name'], string>> = {
  postgresql: 'SELECT 1 / 0',
  mysql: 'INSERT INTO nowhere VALUES (1)',
  mariadb: 'INSERT INTO nowhere VALUES (1)',
  mongodb: '{"nowhere": 1}',
  dynamodb: '{"DeleteTable": {"TableName": "nowhere-at-all"}}',
  cassandra: 'DROP TABLE nowhere',
};

const shopOn = (dialect: string, url: string) =>
  project({ main: url }, { databases: { main: { dialect, url: { dev: url } } } }, dialect === 'dynamodb' ? aws : {});

for (const { name, dialect, missing, createDatabase } of sixEngines) {
  const what = `${name}: check reports a migration that stopped half-way, and its resolve commands`;
  if (missing !== undefined) {
    test.skip(what, missing);
    continue;
  }
  test(
    what,
    async () => {
      const { url, drop } = await createDatabase();
      try {
        const { svc, write } = shopOn(name, url);
        const raw = { type: 'raw', dialect: name, statement: FAILING[name], transaction: false, destructive: false };
        const create = {
          type: 'createCollection',
          name: 'a',
          fields: [{ name: 'id', type: 'integer', primaryKey: true }],
        };
        const field = { type: 'addField', collection: 'a', field: { name: 'n', type: 'integer' } };
        write(FILE, { tag: TAG, up: [create, raw, field], down: [] });
        const failed = json(assertExit(await svc('db', 'migrate', '--json'), 6));
        const checked = json(assertExit(await svc('db', 'schema', 'check', '--json'), 6));
        assert.equal(checked.code, 'migration_half_done');
        assert.deepEqual(checked.nextActions, failed.nextActions.slice(-3));
        const [{ unfinished }] = checked.databases;
        assert.deepEqual([unfinished[0].tag, unfinished[0].state], [TAG, 'failed']);
        const shown = assertExit(await svc('db', 'schema', 'check'), 6);
        assert.match(shown.stdout, new RegExp(`^FAILED {2}main \\(dev\\)\n  ${TAG}  failed at step 2 of 3: `));
        assert.match(shown.stderr, new RegExp(`next  svc db migrate resolve ${TAG} --retry`));

        const { connection } = await connectTarget(dialect, url);
        const history = connection.records(historyTable);
        const { record, version } = (await history.get(TAG)) ?? assert.fail('no row');
        // As after a crash: the row of a run whose process is gone.
        await history.replace(TAG, version, { ...record, status: 'applying', error: null }, { epoch: record.epoch });
        await connection.close();
        const interrupted = json(assertExit(await svc('db', 'schema', 'check', '--json'), 4));
        assert.deepEqual([interrupted.code, interrupted.nextActions], ['pending', ['svc db migrate']]);
        assert.equal(interrupted.databases[0].unfinished[0].state, 'interrupted');
      } finally {
        await drop();
      }
    },
    LONG,
  );
}

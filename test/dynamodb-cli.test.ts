import * as assert from 'node:assert/strict';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { freshPrefix, put, scan } from './kit/dynamodb.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { assertExit, type Project, project } from './kit/project.ts';
import { test } from './kit/test.ts';

const missing = unavailable();
if (missing) test.skip('the commands on DynamoDB', missing);
else {
  const server = await ownDynamodb();
  test.after(() => server.kill());

  const onProject = async (body: (shop: Project, url: string) => Promise<void>): Promise<void> => {
    const fresh = freshPrefix(server.port);
    try {
      await body(project({}, { databases: { main: { dialect: 'dynamodb', url: fresh.url } } }), fresh.url);
    } finally {
      await fresh.drop();
    }
  };
  const users = { id: { type: 'String', primaryKey: true, autoGenerate: true }, mail: { type: 'String' } };

  test(
    'from schema file to rollback',
    () =>
      onProject(async ({ svc, schema, files }, url) => {
        schema([
          {
            db: 'main',
            tables: { users },
            options: { users: { dynamoOptions: { streamEnabled: true, billingMode: 'PAY_PER_REQUEST' } } },
            indexes: { users: [{ name: 'users_mail', columns: ['mail'] }] },
          },
        ]);
        assertExit(await svc('db', 'schema', 'generate'));
        assert.equal(files().length, 1);
        assert.match(
          assertExit(await svc('db', 'migrate', '--dry-run')).stdout,
          /CreateTable users \(partition key id S\)/,
        );
        assertExit(await svc('db', 'migrate', 'status', '--check'), 4);
        assert.match(assertExit(await svc('db', 'migrate')).stdout, /^1 migration, 2 steps/);
        assert.equal(assertExit(await svc('db', 'migrate')).stdout, 'Nothing to do in main (dev).\n');
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK {2}main/);

        const connection = await dynamodb.connect(url, {});
        await put(connection, 'users', { id: 'a', mail: 'a@b' });
        schema([
          {
            db: 'main',
            tables: { users: { ...users, kind: { type: 'String', required: true, default: 'person' } } },
            options: { users: { dynamoOptions: { streamEnabled: true, billingMode: 'PAY_PER_REQUEST' } } },
            indexes: { users: [{ name: 'users_mail', columns: ['mail'] }] },
          },
        ]);
        assertExit(await svc('db', 'schema', 'generate', '--name', 'kinds'));
        assertExit(await svc('db', 'migrate'));
        assert.deepEqual(await scan(connection, 'users'), [{ id: 'a', mail: 'a@b', kind: 'person' }]);
        assertExit(await svc('db', 'migrate', 'rollback'), 8);
        assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
        assert.deepEqual(await scan(connection, 'users'), [{ id: 'a', mail: 'a@b' }]);
        assertExit(await svc('db', 'migrate', 'rollback', '--allow-destructive'));
        assert.equal((await connection.introspect()).size, 0);
        await connection.close();
      }),
    { timeoutMs: 180_000 },
  );

  test(
    'a database that is there is pulled, taken over and changed',
    () =>
      onProject(async ({ svc, schema, files, read }, url) => {
        const connection = await dynamodb.connect(url, {});
        const prefix = new URL(url).pathname.slice(1);
        await connection.query(
          JSON.stringify({
            CreateTable: {
              TableName: 'orders',
              BillingMode: 'PAY_PER_REQUEST',
              AttributeDefinitions: ['tenant', 'at', 'mail'].map((AttributeName) => ({
                AttributeName,
                AttributeType: 'S',
              })),
              KeySchema: [
                { AttributeName: 'tenant', KeyType: 'HASH' },
                { AttributeName: 'at', KeyType: 'RANGE' },
              ],
              GlobalSecondaryIndexes: [
                {
                  IndexName: 'byMail',
                  KeySchema: [{ AttributeName: 'mail', KeyType: 'HASH' }],
                  Projection: { ProjectionType: 'KEYS_ONLY' },
                },
              ],
            },
          }),
        );
        const pulled = assertExit(await svc('db', 'schema', 'pull'));
        assert.match(pulled.stderr, /attributes outside its keys/);
        assert.equal(files().length, 1);
        assertExit(await svc('db', 'migrate', 'baseline'));
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK {2}main/);
        const entries = JSON.parse(read('svc/database/schema.json'));
        entries[0].tables.orders.total = { type: 'integer' };
        schema(entries);
        assertExit(await svc('db', 'schema', 'generate', '--name', 'totals'));
        assertExit(await svc('db', 'migrate'));
        assert.match(assertExit(await svc('db', 'schema', 'check')).stdout, /^OK {2}main/);
        assert.ok((await connection.introspect(['orders'])).get('orders')?.fields.has('total'), prefix);
        await connection.close();
      }),
    { timeoutMs: 180_000 },
  );

  test(
    'a protected table stops a migration before another is dropped; pull names the limit of an index',
    () =>
      onProject(async ({ svc, schema }, url) => {
        const connection = await dynamodb.connect(url, {});
        const create = (TableName: string, more: object) =>
          connection.query(
            JSON.stringify({
              CreateTable: {
                TableName,
                BillingMode: 'PAY_PER_REQUEST',
                AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
                KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
                ...more,
              },
            }),
          );
        await create('zebras', {
          GlobalSecondaryIndexes: [
            {
              IndexName: 'again',
              KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
              Projection: { ProjectionType: 'ALL' },
              OnDemandThroughput: { MaxReadRequestUnits: 5, MaxWriteRequestUnits: 5 },
            },
          ],
        });
        await create('mules', { DeletionProtectionEnabled: true });
        await create('bears', {});
        const pulled = assertExit(await svc('db', 'schema', 'pull'));
        assert.match(pulled.stderr, /"zebras" has the index "again" with a limit on its on-demand throughput/);
        assertExit(await svc('db', 'migrate', 'baseline'));
        schema([{ db: 'main', tables: {} }]);
        assertExit(await svc('db', 'schema', 'generate'));
        const refused = await svc('db', 'migrate', '--allow-destructive');
        assert.match(refused.stderr, /"mules" is protected against deletion/);
        assert.doesNotMatch(refused.stderr, /half-way/);
        assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['bears', 'mules', 'zebras']);
        const unprotected = { TableName: 'mules', DeletionProtectionEnabled: false };
        await connection.query(JSON.stringify({ UpdateTable: unprotected }));
        assertExit(await svc('db', 'migrate', '--allow-destructive'));
        assert.equal((await connection.introspect()).size, 0);
        await connection.close();
      }),
    { timeoutMs: 180_000 },
  );
}

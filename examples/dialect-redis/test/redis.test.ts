import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from 'redis';
import { redis } from '../src/index.ts';
import { startServer } from './server.ts';

const server = await startServer();
const skip = 'missing' in server ? server.missing : false;
if (skip) console.log(`# skipped: Redis: ${skip}`);
const url = 'url' in server ? `${server.url}/0` : '';

test('a server that may lose what it has confirmed is rejected, unless the options accept it', { skip }, async () => {
  const client = await createClient({ url }).connect();
  for (const [setting, unsafe, safe] of [
    ['appendonly', 'no', 'yes'],
    ['maxmemory-policy', 'allkeys-lru', 'noeviction'],
  ] as const) {
    await client.configSet(setting, unsafe);
    await assert.rejects(redis.connect(url, {}), { code: 'not_supported' });
    await (await redis.connect(url, { allowVolatile: true })).close();
    await client.configSet(setting, safe);
    await (await redis.connect(url, {})).close();
  }
  await client.close();
});

test('rows of another program are kept: a table is created over them only if its options say so', {
  skip,
}, async () => {
  const client = await createClient({ url }).connect();
  await client.hSet('users:1', { id: '1', name: 'Ada' });
  const connection = await redis.connect(url, {});
  const create = async (ifNotExists: boolean) => {
    const fields = [{ name: 'id', type: 'integer', primaryKey: true }] as const;
    const operation = {
      type: 'createCollection',
      name: 'users',
      fields,
      options: { sqlOptions: { ifNotExists } },
    } as const;
    const statements = redis.compile(operation, new Map());
    const { failure } = await connection.run([{ transactional: false, statements, writes: [] }], 0);
    return failure && (failure.error as { readonly code: string }).code;
  };
  assert.equal(await create(false), 'collection_exists');
  assert.equal((await connection.introspect()).size, 0);
  assert.equal(await create(true), undefined);
  assert.deepEqual([...(await connection.introspect()).keys()], ['users']);
  assert.equal(await client.hGet('users:1', 'name'), 'Ada');
  await connection.close();
  await client.close();
});

test('a table does not take in the rows of one whose name it begins with', { skip }, async () => {
  const client = await createClient({ url }).connect();
  const connection = await redis.connect(url, {});
  for (const key of ['a*:1', 'ab:1', 'a:1']) await client.hSet(key, 'id', '1');
  assert.equal(await connection.count('a', 10), 1);
  assert.equal(await connection.count('a*', 10), 1);
  await connection.close();
  await client.close();
});

test('a lost connection, wrong credentials and an unreachable server have their own codes', { skip }, async () => {
  const connection = await redis.connect(url, {});
  await connection.close();
  await assert.rejects(connection.now(), { code: 'connection_lost' });
  await assert.rejects(redis.connect('redis://127.0.0.1:1', {}), { code: 'connection_failed' });
  await assert.rejects(redis.connect(url.replace('//', '//nobody:wrong@'), {}), { code: 'authentication_failed' });
  await assert.rejects(redis.connect(url.replace(/0$/, '99999'), {}), { code: 'database_missing' });
  await assert.rejects(redis.connect(url, { allowVolatil: true }), { code: 'config_invalid' });
  assert.throws(() => redis.identify('redis:/nowhere'), { code: 'url_invalid' });
});

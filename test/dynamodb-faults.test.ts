import * as assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { CreateTableCommand } from '@aws-sdk/client-dynamodb';
import type { Connection } from '../core/dialect.ts';
import { isSvcError } from '../core/errors.ts';
import { migration } from '../core/migration/builder.ts';
import { migrate } from '../core/migration/migrate.ts';
import { anyDefinition, type RecordDefinition, recordWrite } from '../core/records.ts';
import { apply } from '../core/schema/apply.ts';
import type { SchemaModel } from '../core/schema/model.ts';
import type { Operation } from '../core/schema/operation.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { bareClient, freshPrefix, put, scan } from './kit/dynamodb.ts';
import { type ProxiedRequest, type ProxyAction, startProxy } from './kit/dynamodb-proxy.ts';
import { definedInCode } from './kit/migrations.ts';
import { ownDynamodb, unavailable } from './kit/own-dynamodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { freePort } from './suites/free-port.ts';
import { waitUntil } from './suites/wait-until.ts';

const missing = unavailable();
if (missing) test.skip('faults on DynamoDB', missing);
else {
  const server = await ownDynamodb();
  test.after(() => server.kill());

  /** Runs `body` on a new prefix through a proxy that applies `actionFor`. */
  const through = async (
    actionFor: (request: ProxiedRequest) => ProxyAction | Promise<ProxyAction>,
    body: (connection: Connection, prefix: string) => Promise<void>,
  ): Promise<void> => {
    const fresh = freshPrefix(server.port);
    const proxy = await startProxy(server.port, actionFor);
    const connection = await dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`, {});
    try {
      await body(connection, fresh.prefix);
    } finally {
      await connection.close();
      await proxy.close();
      await fresh.drop();
    }
  };
  const run = async (
    connection: Connection,
    operation: Operation,
    model: SchemaModel = new Map(),
    epoch = 0,
  ): Promise<SchemaModel> => {
    for (const statement of dynamodb.compile(operation, model)) {
      const outcome = await connection.run([{ transactional: false, statements: [statement], writes: [] }], epoch);
      if (outcome.failure) throw outcome.failure.error;
    }
    return apply(model, operation);
  };
  const create: Operation = {
    type: 'createCollection',
    name: 'users',
    fields: [
      { name: 'id', type: 'integer', primaryKey: true },
      { name: 'age', type: 'integer' },
    ],
    options: { dynamoOptions: { ttlAttribute: 'age' } },
  };

  test('every step, also of a resumed run, waits for a table in CREATING', async () => {
    let creating = 0;
    let refusing = false;
    const actionFor = ({ action, body }: ProxiedRequest): ProxyAction => {
      if (refusing && action === 'TransactWriteItems') return { error: 'AccessDeniedException' };
      refusing ||= action === 'CreateTable' && creating < 0 && /\.users"/.test(body);
      if (action !== 'DescribeTable' || !/\.users"/.test(body) || creating <= 0) return 'pass';
      creating -= 1;
      return { rewrite: (answer) => answer.replace(/"TableStatus":"\w+"/, '"TableStatus":"CREATING"') };
    };
    await through(actionFor, async (connection) => {
      // The state after a process died right after CreateTable: announced and created.
      creating = -1;
      await expectError(run(connection, create), 'permission_denied');
      refusing = false;
      const waited = async (operation: Operation, model?: SchemaModel): Promise<SchemaModel> => {
        creating = 3;
        const after = await run(connection, operation, model);
        assert.equal(creating, 0, `${operation.type} did not wait`);
        return after;
      };
      let model = await waited(create);
      const index = { collection: 'users', index: 'users_age', columns: [{ name: 'age' }] };
      model = await waited({ type: 'createIndex', ...index }, model);
      model = await waited({ type: 'dropIndex', collection: 'users', index: 'users_age' }, model);
      await waited({ type: 'dropCollection', collection: 'users' }, model);
    });
  });

  test(
    'every kind of request that is lost, throttled or fails once still takes effect exactly once',
    async () => {
      const ACTIONS: readonly ProxyAction[] = [
        'lose',
        { error: 'ProvisionedThroughputExceededException' },
        { error: 'ThrottlingException' },
        { error: 'InternalServerError', status: 500 },
      ];
      for (const proxyAction of ACTIONS) {
        const failedOnce = new Set<string>();
        let armed = false;
        await through(
          ({ action, body }) => {
            // Only the first request of each action on each table.
            const what = `${action} ${/"TableName":"[^"]*\.(\w+)"/.exec(body)?.[1]}`;
            if (!armed || failedOnce.has(what)) return 'pass';
            failedOnce.add(what);
            return proxyAction;
          },
          async (connection) => {
            armed = true;
            await connection.withLock(async (epoch) => {
              const failAgain = (action: string) => failedOnce.delete(action);
              await connection.ensureTables([anyDefinition(things)]);
              const store = connection.records(things);
              const write = recordWrite(things, { id: 'a', n: 1 });
              const written = await connection.run([{ transactional: true, statements: [], writes: [write] }], epoch);
              assert.equal(written.failure, undefined);
              failAgain('TransactWriteItems _svc_things');
              assert.equal(await store.replace('a', 1, { id: 'a', n: 2 }), 'replaced');
              assert.equal((await store.get('a'))?.version, 2);
              failAgain('TransactWriteItems _svc_things');
              assert.equal(await store.insert({ id: 'b', n: 1 }), 'inserted');
              failAgain('TransactWriteItems _svc_things');
              assert.equal(await store.remove('b', 1), 'removed');
              let model = await run(connection, create, undefined, epoch);
              failedOnce.add('PutItem users');
              for (let id = 0; id < 60; id += 1) await put(connection, 'users', { id, age: id });
              const kind = { name: 'kind', type: 'string', default: 'x' } as const;
              model = await run(connection, { type: 'addField', collection: 'users', field: kind }, model, epoch);
              const collection = model.get('users');
              assert.ok(collection);
              failAgain('BatchExecuteStatement undefined');
              const job = { table: 'users', collection, key: 'k', where: [], set: [{ field: 'kind', value: 'y' }] };
              assert.deepEqual(await connection.update(job), { matched: 60, modified: 60 });
              const index = { collection: 'users', index: 'users_kind' };
              const columns = [{ name: 'kind' }];
              model = await run(connection, { type: 'createIndex', ...index, columns }, model, epoch);
              assert.deepEqual(await connection.normalize(model), await connection.introspect());
              model = await run(connection, { type: 'dropIndex', ...index }, model, epoch);
              await run(connection, { type: 'dropCollection', collection: 'users' }, model, epoch);
              assert.equal((await connection.introspect()).size, 0);
            });
            assert.ok(failedOnce.size >= 10, [...failedOnce].join(', '));
          },
        );
      }
    },
    { timeoutMs: 120_000 },
  );

  test('a table that stays throttled ends the run, and the next run resumes', async () => {
    let throttled = false;
    const fresh = freshPrefix(server.port);
    const proxy = await startProxy(server.port, ({ action }) =>
      throttled && action === 'BatchExecuteStatement' ? { error: 'ProvisionedThroughputExceededException' } : 'pass',
    );
    const adapter = await connectTarget(dynamodb, `dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`, {
      retryTimeoutMs: 1500,
    });
    try {
      const { connection } = adapter;
      const first = migration('20260101_000000_a')
        .createCollection('users', [{ name: 'id', type: 'integer', primaryKey: true }])
        .build();
      await migrate(adapter, [definedInCode(first)]);
      for (let id = 0; id < 10; id += 1) await put(connection, 'users', { id });
      const second = migration('20260102_000000_b')
        .addField('users', { name: 'kind', type: 'string', default: 'x' })
        .build();
      throttled = true;
      const error = await expectError(migrate(adapter, [first, second].map(definedInCode)), 'connection_lost');
      assert.match(`${error.message} ${error.why}`, /throttled.*ProvisionedThroughputExceeded/);
      throttled = false;
      await migrate(adapter, [first, second].map(definedInCode));
      for (const item of await scan(connection, 'users')) assert.equal(item.kind, 'x');
    } finally {
      await adapter.connection.close();
      await proxy.close();
      await fresh.drop();
    }
  });

  test('an exhausted quota of tables fails immediately; too many concurrent changes are retried', async () => {
    for (const [message, tried] of [
      ['Subscriber limit exceeded: There is a limit of 2500 tables per subscriber', 1],
      ['Subscriber limit exceeded: There is a limit of 500 simultaneous changes of tables', 2],
    ] as const) {
      let times = 0;
      const actionFor = ({ action, body }: ProxiedRequest): ProxyAction => {
        if (action !== 'CreateTable' || !/\.users"/.test(body)) return 'pass';
        times += 1;
        return tried === 1 || times === 1 ? { error: 'LimitExceededException', message } : 'pass';
      };
      await through(actionFor, async (connection) => {
        if (tried === 2) await run(connection, create);
        else {
          const error = await expectError(run(connection, create), 'migration_failed');
          assert.match(`${error.message} ${error.why}`, /quota.*limit of 2500 tables/);
        }
      });
      assert.equal(times, tried);
    }
  });

  test('keys that a batch leaves unread are retried for a limited time', async () => {
    let kept = 1;
    let rounds = 0;
    const actionFor = ({ action, body }: ProxiedRequest): ProxyAction => {
      if (action !== 'BatchGetItem') return 'pass';
      rounds += 1;
      // Enough rounds to detect retries without a pause.
      if (rounds > 100) return 'pass';
      return { rewrite: (answer) => leavingUnread(body, answer, kept) };
    };
    const fresh = freshPrefix(server.port);
    const proxy = await startProxy(server.port, actionFor);
    const url = `dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`;
    const connection = await dynamodb.connect(url, {});
    const impatient = await dynamodb.connect(url, { retryTimeoutMs: 1 });
    try {
      const model = await run(connection, { ...create, name: 'others' }, await run(connection, create));
      rounds = 0;
      assert.deepEqual(await connection.introspect(['users', 'others']), dynamodb.normalize(model));
      assert.equal(rounds, 2);
      kept = 0;
      const error = await expectError(impatient.introspect(['users', 'others']), 'connection_lost');
      assert.match(error.why ?? '', /2 keys of a batch were left unread/);
    } finally {
      await impatient.close();
      await connection.close();
      await proxy.close();
      await fresh.drop();
    }
  });

  test('a table that the registry did not announce belongs to another client', async () => {
    const fresh = freshPrefix(server.port);
    const client = bareClient(server.port);
    await client.send(
      new CreateTableCommand({
        TableName: `${fresh.prefix}.users`,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'N' }],
        KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
      }),
    );
    client.destroy();
    const connection = await dynamodb.connect(fresh.url, {});
    try {
      const error = await expectError(run(connection, create), 'collection_exists');
      assert.match(error.message, /already exists/);
      assert.deepEqual([...(await connection.introspect()).keys()], ['users']);
    } finally {
      await connection.close();
      await fresh.drop();
    }
  });

  test('a server that is down, does not respond or dies during a run is reported in time', async () => {
    const port = await freePort();
    const down = await expectError(dynamodb.connect(`dynamodb://127.0.0.1:${port}/x`, {}), 'connection_failed');
    assert.match(down.why ?? '', /ECONNREFUSED/);
    assert.equal(down.state, 'Nothing was changed.');
    const unknown = await expectError(
      dynamodb.connect('dynamodb://nowhere.invalid/x?region=eu-west-1', { connectTimeoutMs: 2000 }),
      // Without AWS credentials the SDK does not try to connect.
      process.env.AWS_ACCESS_KEY_ID === undefined ? 'authentication_failed' : 'connection_failed',
    );
    assert.ok(unknown.why);
    const silent = await startProxy(server.port, () => 'hang');
    await expectError(
      dynamodb.connect(`dynamodb://127.0.0.1:${silent.port}/x`, { connectTimeoutMs: 500 }),
      'connection_failed',
    );
    await silent.close();
    const mortal = await ownDynamodb();
    const connection = await dynamodb.connect(mortal.url('x'), { retryTimeoutMs: 500 });
    await connection.introspect();
    await mortal.kill();
    await expectError(connection.introspect(), 'connection_failed');
    await connection.close();
  });

  test('missing and rejected credentials are reported', async () => {
    const before = { ...process.env };
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
    Object.assign(process.env, {
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
      AWS_CONFIG_FILE: '/nonexistent',
    });
    try {
      const error = await expectError(dynamodb.connect('dynamodb://eu-west-1/shop', {}), 'authentication_failed');
      assert.ok(error.next.some((next) => next.includes('AWS_PROFILE')));
    } finally {
      for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
      Object.assign(process.env, before);
    }
    for (const [name, code] of [
      ['UnrecognizedClientException', 'authentication_failed'],
      ['AccessDeniedException', 'permission_denied'],
    ] as const) {
      const proxy = await startProxy(server.port, () => ({ error: name }));
      await expectError(dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/x`, {}), code);
      await proxy.close();
    }
  });

  test('with a clock that is minutes off, requests are signed again by the server’s time', async () => {
    const minutes = 60_000;
    const sent: string[] = [];
    for (const ahead of [10 * minutes, -10 * minutes]) {
      const fresh = freshPrefix(server.port);
      // The behavior of AWS.
      const proxy = await startProxy(
        server.port,
        ({ action, signedAt }) => {
          const late = Math.abs(signedAt - (Date.now() + ahead)) > 5 * minutes;
          sent.push(late ? `late ${action}` : action);
          return late ? { error: 'InvalidSignatureException' } : 'pass';
        },
        ahead,
      );
      const connection = await dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`, {});
      try {
        await run(connection, create);
        assert.ok(Math.abs((await connection.now()).getTime() - Date.now() - ahead) < 2_000);
        // Only the first request, before the server's time is known.
        assert.deepEqual(
          sent.splice(0).flatMap((one, index) => (one.startsWith('late ') ? [index] : [])),
          [0],
        );
      } finally {
        await connection.close();
        await proxy.close();
        await fresh.drop();
      }
    }
    // A wrong key is still reported as such.
    for (const [ahead, times] of [
      [0, 1],
      [10 * minutes, 2],
    ] as const) {
      const proxy = await startProxy(server.port, () => ({ error: 'InvalidSignatureException' }), ahead);
      await expectError(dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/x`, {}), 'authentication_failed');
      assert.equal(proxy.count(), times);
      await proxy.close();
    }
  });

  test('a process suspended for longer than its lease loses the lock, and its late writes fail', async () => {
    const fresh = freshPrefix(server.port);
    let asleep = false;
    // The sleeper is cut off instead of suspended, because both run in one process.
    const proxy = await startProxy(server.port, () =>
      asleep ? { error: 'InternalServerError', status: 500 } : 'pass',
    );
    const sleeper = await dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`, {
      leaseMs: 4000,
      retryTimeoutMs: 300,
    });
    const other = await dynamodb.connect(fresh.url, { leaseMs: 4000 });
    try {
      await sleeper.withLock(async (epoch) => {
        await sleeper.ensureTables([anyDefinition(things)]);
        asleep = true;
        const next = await other.withLock(async (second) => second, { timeoutMs: 20_000 });
        assert.equal(next, epoch + 1);
        asleep = false;
        const write = recordWrite(things, { id: 'late', n: 1 });
        const late = await sleeper.run([{ transactional: true, statements: [], writes: [write] }], epoch);
        assert.equal(codeOf(late.failure?.error), 'lock_lost');
        const [statement] = dynamodb.compile(create, new Map());
        assert.ok(statement);
        const ddl = await sleeper.run([{ transactional: false, statements: [statement], writes: [] }], epoch);
        assert.equal(codeOf(ddl.failure?.error), 'lock_lost');
        assert.equal((await sleeper.introspect()).size, 0);
        assert.equal(await sleeper.records(things).get('late'), undefined);
      });
    } finally {
      await sleeper.close();
      await other.close();
      await proxy.close();
      await fresh.drop();
    }
  });

  test('a process suspended in the middle of a page updates no more items, neither with queued nor with sent requests', async () => {
    const fresh = freshPrefix(server.port);
    let phase: 'before' | 'asleep' | 'awake' = 'before';
    let held = 0;
    let wake = () => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    // Batches already sent by the sleeper arrive when it wakes up; all its other requests fail until then.
    const proxy = await startProxy(server.port, async ({ action, body }) => {
      if (phase !== 'awake' && action === 'BatchExecuteStatement' && body.includes('REMOVE')) {
        phase = 'asleep';
        held += 1;
        await woken;
      }
      return phase === 'asleep' ? { error: 'InternalServerError', status: 500 } : 'pass';
    });
    const sleeper = await dynamodb.connect(`dynamodb://127.0.0.1:${proxy.port}/${fresh.prefix}`, { leaseMs: 4000 });
    const other = await dynamodb.connect(fresh.url, { leaseMs: 4000 });
    const add: Operation = {
      type: 'addField',
      collection: 'users',
      field: { name: 'kind', type: 'string', default: 'new' },
    };
    const drop: Operation = { type: 'dropField', collection: 'users', field: 'kind' };
    try {
      await sleeper.withLock(async (epoch) => {
        const plain = await run(sleeper, create, undefined, epoch);
        const model = await run(sleeper, add, plain, epoch);
        const ids = Array.from({ length: 300 }, (_, id) => id);
        await Promise.all(ids.map((id) => put(other, 'users', { id, kind: 'old' })));
        const late = expectError(run(sleeper, drop, model, epoch), 'lock_lost');
        await waitUntil(() => phase === 'asleep', 'It never fell asleep');
        await other.withLock(
          async (next) => {
            await run(other, drop, model, next);
            await run(other, add, plain, next);
          },
          { timeoutMs: 20_000 },
        );
        const sent = held;
        phase = 'awake';
        wake();
        await late;
        assert.ok(sent < ids.length / 25, 'every batch was sent before');
        const left = await scan(other, 'users');
        assert.deepEqual(
          left.map(({ kind }) => kind),
          ids.map(() => 'new'),
        );
      });
    } finally {
      phase = 'awake';
      wake();
      await sleeper.close();
      await other.close();
      await proxy.close();
      await fresh.drop();
    }
  });

  test('a write delayed beyond its deadline is late, and one with a lost response is applied once', async () => {
    let deadline = Number.POSITIVE_INFINITY;
    const actions: ProxyAction[] = [];
    const busy: ProxyAction = { error: 'ThrottlingException' };
    const actionFor = ({ action }: ProxiedRequest): ProxyAction => {
      if (action !== 'TransactWriteItems') return 'pass';
      const next = actions.shift();
      if (next !== undefined) return next;
      // Two estimates of the server's clock may differ by a second.
      return Number.isFinite(deadline) && Date.now() <= deadline + 1000 ? busy : 'pass';
    };
    await through(actionFor, async (connection) => {
      await connection.ensureTables([anyDefinition(requests)]);
      const store = connection.records(requests);
      const ask = (id: string, ms: number) => ({ id, until: new Date(Date.now() + ms), answer: null });
      const lost = ask('lost', 600_000);
      await store.insert(lost);
      actions.push('lose', busy);
      assert.equal(await store.replace('lost', 1, { ...lost, answer: 'yes' }, { before: 'until' }), 'replaced');
      assert.equal((await store.get('lost'))?.version, 2);
      const late = ask('late', 2000);
      await store.insert(late);
      deadline = late.until.getTime();
      assert.equal(await store.replace('late', 1, { ...late, answer: 'yes' }, { before: 'until' }), 'late');
      assert.equal((await store.get('late'))?.record.answer, null);
    });
  });

  test('an item that another client keeps changing is reported', async () => {
    let interfere = async () => {};
    await through(
      async ({ action }): Promise<ProxyAction> => {
        if (action === 'BatchExecuteStatement') await interfere();
        return 'pass';
      },
      async (connection, prefix) => {
        const otherClient = await dynamodb.connect(`dynamodb://127.0.0.1:${server.port}/${prefix}`, {});
        try {
          const model = await run(connection, create);
          const collection = model.get('users');
          assert.ok(collection);
          let age = 0;
          interfere = async () => {
            age += 1;
            await put(otherClient, 'users', { id: 1, age });
          };
          await interfere();
          const job = { table: 'users', collection, key: 'k', where: [], set: [{ field: 'age', value: 0 }] };
          const error = await expectError(connection.update(job), 'check_failed');
          assert.match(error.message, /changes too often/);
        } finally {
          await otherClient.close();
        }
      },
    );
  });

  test('a working holder keeps its lease for as long as it works', async () => {
    const fresh = freshPrefix(server.port);
    const holder = await dynamodb.connect(fresh.url, { leaseMs: 4000 });
    const other = await dynamodb.connect(fresh.url, { leaseMs: 4000 });
    try {
      let done = false;
      await holder.withLock(async () => {
        const waiting = expectError(
          other.withLock(async () => {}, { timeoutMs: 9000 }),
          'lock_timeout',
        ).then(() => {
          done = true;
        });
        await waitUntil(() => done, 'the other process did not give up');
        await waiting;
      });
      await other.withLock(async () => {});
    } finally {
      await holder.close();
      await other.close();
      await fresh.drop();
    }
  });
}

const codeOf = (error: unknown): string | undefined => (isSvcError(error) ? error.code : undefined);

interface Request {
  readonly id: string;
  readonly until: Date;
  readonly answer: string | null;
}

const requests: RecordDefinition<Request> = {
  collection: '_svc_requests',
  key: 'id',
  columns: { id: { type: 'string' }, until: { type: 'timestamp' }, answer: { type: 'string', nullable: true } },
  indexes: [],
};

interface Thing {
  readonly id: string;
  readonly n: number;
}

const things: RecordDefinition<Thing> = {
  collection: '_svc_things',
  key: 'id',
  columns: { id: { type: 'string' }, n: { type: 'integer' } },
  indexes: [],
};

/** A BatchGetItem response that leaves all but the first `kept` keys unprocessed. */
function leavingUnread(request: string, answer: string, kept: number): string {
  const { Responses, ...rest } = JSON.parse(answer);
  const { RequestItems } = JSON.parse(request);
  const [table = ''] = Object.keys(RequestItems);
  const found: readonly Record<string, unknown>[] = Responses[table];
  const late = found.slice(kept);
  const isLate = (key: object) =>
    late.some((item) => Object.entries(key).every(([name, value]) => isDeepStrictEqual(item[name], value)));
  const Keys = RequestItems[table].Keys.filter(isLate);
  const unread = Keys.length > 0 ? { [table]: { ...RequestItems[table], Keys } } : {};
  return JSON.stringify({ ...rest, Responses: { [table]: found.slice(0, kept) }, UnprocessedKeys: unread });
}

import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Connection, ConnectOptions, Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { anyDefinition, CLOCK, ELAPSED, type RecordDefinition, recordWrite } from '../../core/records.ts';
import { apply } from '../../core/schema/apply.ts';
import { diff } from '../../core/schema/diff.ts';
import { differences } from '../../core/schema/differences.ts';
import { invert } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { NamedField, Operation } from '../../core/schema/operation.ts';
import { CHOICES, type Move, moves, play } from './arbitrary.ts';
import type { Fresh } from './engines.ts';
import type { test as declare } from './test.ts';

export interface DialectUnderTest {
  readonly name: string;
  readonly dialect: Dialect;
  fresh(): Promise<Fresh>;
  /** Cases that cannot hold, with the reason. */
  readonly skip?: Readonly<Record<string, string>>;
  /** How many random schemas. */
  readonly cases: number;
}

interface Database {
  readonly connection: Connection;
  again(options?: ConnectOptions): Promise<Connection>;
}

/** What every dialect must do, whatever its engine. */
export function dialectSuite(test: typeof declare, engine: DialectUnderTest): void {
  const { dialect } = engine;

  const on = (name: string, body: (database: Database) => Promise<void>, timeoutMs = 60_000): void => {
    const reason = engine.skip?.[name];
    if (reason !== undefined) test.skip(`${engine.name}: ${name}`, reason);
    else
      test(
        `${engine.name}: ${name}`,
        async () => {
          const database = await engine.fresh();
          const opened: Connection[] = [];
          const again = async (options: ConnectOptions = {}) => {
            const connection = await dialect.connect(database.url, options);
            opened.push(connection);
            return connection;
          };
          try {
            await body({ connection: await again(), again });
          } finally {
            for (const connection of opened) await connection.close().catch(() => undefined);
            await database.drop();
          }
        },
        { timeoutMs },
      );
  };

  /** Runs operations in one segment and gives the model after them; throws what the engine says. */
  const run = async (connection: Connection, operations: readonly Operation[], from: SchemaModel = new Map()) => {
    let model = from;
    for (const operation of operations) {
      const statements = dialect.compile(operation, model);
      const outcome = await connection.run(
        statements.map((statement) => ({
          transactional: statement.transactional,
          statements: [statement],
          writes: [],
        })),
        0,
      );
      if (outcome.failure) throw outcome.failure.error;
      model = apply(model, operation);
    }
    return model;
  };
  const agrees = async (connection: Connection, model: SchemaModel, what = '') =>
    assert.deepEqual(differences(await connection.seen(model), await connection.introspect()), [], what);

  on('every field type and default reads back as it was made', async ({ connection }) => {
    const create: Operation = { type: 'createCollection', name: 'everything', fields: EVERY_FIELD };
    await agrees(connection, await run(connection, [create]));
    const again = dialect.seen(await connection.introspect());
    assert.deepEqual(differences(again, await connection.introspect()), []);
  });

  on('every operation and its way back', async ({ connection }) => {
    let model = await run(connection, BASE);
    await agrees(connection, model, 'base');
    for (const operation of STEPS) {
      const back = invert(operation, model);
      const after = await run(connection, [operation], model);
      await agrees(connection, after, `after ${JSON.stringify(operation)}`);
      const before = await run(connection, back, after);
      await agrees(connection, before, `back from ${JSON.stringify(operation)}`);
      model = await run(connection, [operation], before);
    }
    await agrees(connection, model, 'at the end');
  });

  on('names that break what treats them as code', async ({ connection }) => {
    for (const name of [...HOSTILE, 'x'.repeat(dialect.capabilities.identifierBytes)]) {
      const model = await run(connection, [
        {
          type: 'createCollection',
          name,
          fields: [
            { name, type: 'integer', primaryKey: true },
            { name: 'e', type: 'enum', enumValues: [name], unique: true, default: name },
          ],
        },
        {
          type: 'createIndex',
          collection: name,
          index: `i${name}`.slice(0, 40),
          columns: [{ name: 'e', order: 'desc' }, { name }],
        },
      ]);
      const found = await connection.introspect([name]);
      assert.deepEqual(differences(await connection.seen(model), found), [], name);
      await run(connection, [{ type: 'dropCollection', collection: name }], model);
    }
    const long = 'x'.repeat(dialect.capabilities.identifierBytes + 1);
    assert.throws(
      () => dialect.compile({ type: 'createCollection', name: long, fields: [] }, new Map()),
      (error) => isSvcError(error) && error.code === 'name_invalid',
    );
  });

  on(
    'random schemas read back as they were made, and so do the differences between them',
    async ({ connection }) => {
      const seed = Number(process.env.SVC_TEST_SEED ?? '20261121');
      const names = CHOICES.names.filter((name) => name !== '');
      const choices = {
        ...CHOICES,
        names,
        fields: CHOICES.fields.filter(
          ({ type, precision, scale }) => type !== 'decimal' || (precision !== undefined && scale !== undefined),
        ),
      };
      const samples = fc.sample(fc.tuple(moves(30, choices), moves(12, choices)), { seed, numRuns: engine.cases });
      for (const [index, [first, second]] of samples.entries()) {
        const told = `sample ${index} of seed ${seed}`;
        let model = await legal(connection, first, new Map(), choices);
        await agrees(connection, model, told);
        const goal = play(second, model, choices).model;
        for (const operation of diff(model, goal)) model = (await tried(connection, operation, model)) ?? model;
        await agrees(connection, model, `${told}, after the difference`);
        for (const operation of diff(model, new Map())) model = await run(connection, [operation], model);
        await agrees(connection, new Map(), `${told}, emptied`);
      }
    },
    240_000,
  );

  const legal = async (connection: Connection, list: readonly Move[], from: SchemaModel, choices: typeof CHOICES) => {
    let model = from;
    for (const operation of play(list, from, choices).operations)
      model = (await tried(connection, operation, model)) ?? model;
    return model;
  };
  /** An engine may refuse more than the model does; then nothing may have changed, which the comparison shows. */
  const tried = async (connection: Connection, operation: Operation, model: SchemaModel) => {
    try {
      apply(model, operation);
    } catch (error) {
      if (isSvcError(error)) return undefined; // something before it was refused
      throw error;
    }
    try {
      return await run(connection, [operation], model);
    } catch (error) {
      if (isSvcError(error)) return undefined;
      throw error;
    }
  };

  on('a table that exists says so', async ({ connection }) => {
    const create: Operation = {
      type: 'createCollection',
      name: 'twice',
      fields: [{ name: 'id', type: 'integer', primaryKey: true }],
    };
    const model = await run(connection, [create]);
    assert.throws(() => dialect.compile(create, model), /already exists/);
    await assert.rejects(
      run(connection, [create]),
      (error) => isSvcError(error) && error.code === 'collection_exists' && /already exists/.test(error.message),
    );
  });

  on('rows that do not allow a change are told of', async ({ connection }) => {
    const model = await run(connection, [
      {
        type: 'createCollection',
        name: 'rows',
        fields: [
          { name: 'id', type: 'integer', primaryKey: true, autoGenerate: true },
          { name: 'a', type: 'integer', default: 1 },
          { name: 'e', type: 'enum', enumValues: ['x', 'y'], default: 'x' },
        ],
      },
    ]);
    await connection.query('INSERT INTO "rows" (a) VALUES (1), (1)');
    assert.equal(await connection.count('rows', 1), 1);
    assert.equal(await connection.count('rows', 10), 2);
    const refused: Operation[] = [
      { type: 'addField', collection: 'rows', field: { name: 'n', type: 'integer', required: true } },
      { type: 'createIndex', collection: 'rows', index: 'u', columns: [{ name: 'a' }], unique: true },
      { type: 'modifyField', collection: 'rows', field: 'e', changes: { enumValues: ['y'], default: null } },
    ];
    for (const operation of refused) {
      await assert.rejects(
        run(connection, [operation], model),
        (error) => isSvcError(error) && error.code === 'data_violates',
        operation.type,
      );
    }
    await agrees(connection, model);
  });

  on('an update says how many matched and how many changed', async ({ connection }) => {
    const model = await run(connection, [
      {
        type: 'createCollection',
        name: 'people',
        fields: [
          { name: 'first', type: 'string' },
          { name: 'age', type: 'integer' },
          { name: 'full', type: 'string' },
        ],
      },
    ]);
    const collection = model.get('people')!;
    await connection.query("INSERT INTO people (first, age) VALUES ('Ada', 36), (NULL, 1), ('it''s', NULL)");
    const concat = { field: 'full', concat: [{ field: 'first' }, { literal: "'s " }, { field: 'age' }] };
    const job = { table: 'people', collection, key: 'k', where: [], set: [concat] };
    assert.deepEqual(await connection.update(job), { matched: 3, modified: 3 });
    assert.deepEqual(await connection.update(job), { matched: 3, modified: 0 });
    const full = await connection.query('SELECT "full" FROM people ORDER BY 1');
    assert.deepEqual(full.map((row) => row.full).sort(), ["'s 1", "Ada's 36", "it's's "]);
    const where = [{ field: 'first', operator: 'eq', value: null }] as const;
    assert.deepEqual(await connection.update({ ...job, where, set: [{ field: 'age', value: 2 }] }), {
      matched: 1,
      modified: 1,
    });
    const some = [{ field: 'age', operator: 'in', value: [36, null] }] as const;
    assert.deepEqual(await connection.update({ ...job, where: some, set: [{ field: 'age', value: null }] }), {
      matched: 2,
      modified: 1,
    });
  });

  on('a record is won by one of many', async ({ again, connection }) => {
    await connection.ensure([anyDefinition(things)]);
    const stores = [connection, await again(), await again()].map((one) => one.records(things));
    const inserted = await Promise.all(stores.map((store) => store.insert(thing('a', 1))));
    assert.deepEqual(inserted.sort(), ['exists', 'exists', 'inserted']);
    for (let version = 1; version < 20; version += 1) {
      const outcomes = await Promise.all(stores.map((store) => store.replace('a', version, thing('a', version))));
      assert.deepEqual(outcomes.sort(), ['replaced', 'stale', 'stale']);
    }
    assert.equal((await stores[0]!.get('a'))?.version, 20);
    assert.equal(await stores[0]!.remove('a', 3), 'stale');
    assert.equal(await stores[0]!.remove('a', 20), 'removed');
    assert.equal(await stores[0]!.remove('a', 20), 'missing');
    assert.equal(await stores[0]!.replace('a', 20, thing('a', 1)), 'missing');
  });

  on('a record comes back as it was, and late is late by the clock of the engine', async ({ connection }) => {
    const store = connection.records(things);
    assert.equal(await store.get('a'), undefined);
    assert.deepEqual((await store.page('bySize', { equals: { kind: 'k' }, limit: 10 })).records, []);
    await connection.ensure([anyDefinition(things)]);
    await connection.ensure([anyDefinition(things)]);
    const future = new Date((await connection.now()).getTime() + 60_000);
    await store.insert({ ...thing('a', 1), expires: future });
    assert.deepEqual((await store.get('a'))?.record, { ...thing('a', 1), expires: future });
    assert.equal(
      await store.replace('a', 1, { ...thing('a', 2), expires: new Date(0) }, { before: 'expires' }),
      'replaced',
    );
    assert.equal(await store.replace('a', 2, thing('a', 3), { before: 'expires' }), 'late');
    assert.equal(await store.replace('a', 1, thing('a', 3), { before: 'expires' }), 'stale');
  });

  on('pages go through everything once, both ways', async ({ connection }) => {
    await connection.ensure([anyDefinition(things)]);
    const store = connection.records(things);
    for (let n = 0; n < 25; n += 1) await store.insert(thing(`k${n}`, n % 7, n === 24 ? 'other' : 'k'));
    for (const direction of ['asc', 'desc'] as const) {
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await store.page('bySize', {
          equals: { kind: 'k' },
          limit: 5,
          direction,
          ...(cursor !== undefined && { cursor }),
        });
        seen.push(...page.records.map(({ record }) => record.id));
        cursor = page.cursor;
      } while (cursor !== undefined);
      assert.equal(seen.length, 24);
      assert.equal(new Set(seen).size, 24);
    }
    const bounded = await store.page('bySize', {
      equals: { kind: 'k' },
      from: 2,
      to: 3,
      limit: 1000,
      columns: ['size'],
    });
    assert.ok(bounded.records.every(({ record }) => record.size === 2 || record.size === 3));
    assert.deepEqual(Object.keys(bounded.records[0]!.record), ['size']);
  });

  on('segments commit one by one, and the first that fails is named', async ({ connection }) => {
    await connection.exclusively(async (epoch) => {
      await connection.ensure([anyDefinition(things)]);
      const segment = (n: number) => ({
        transactional: true,
        statements: dialect.compile(
          { type: 'createCollection', name: `t${n === 3 ? 1 : n}`, fields: [{ name: 'id', type: 'integer' }] },
          new Map(),
        ),
        writes: [recordWrite(things, { ...thing(`s${n}`, n), expires: CLOCK, took: ELAPSED })],
      });
      const outcome = await connection.run([1, 2, 3, 4].map(segment), epoch);
      assert.equal(outcome.committed, 2);
      assert.equal(outcome.failure?.statement, 0);
      assert.ok(outcome.written[1]?.[0]?.expires instanceof Date);
      assert.equal(typeof outcome.written[1]?.[0]?.took, 'number');
      assert.deepEqual([...(await connection.introspect()).keys()].sort(), ['t1', 't2']);
      assert.equal(await connection.records(things).get('s3'), undefined);
    });
  });

  on('writes of an epoch that is over lose', async ({ connection, again }) => {
    const other = await again();
    const old = await connection.exclusively(async (epoch) => {
      await connection.ensure([anyDefinition(things)]);
      return epoch;
    });
    const epoch = await other.exclusively(async (next) => next);
    assert.equal(epoch, old + 1);
    const late = await connection.run(
      [{ transactional: true, statements: [], writes: [recordWrite(things, thing('a', 1))] }],
      old,
    );
    assert.equal(isSvcError(late.failure?.error) && late.failure.error.code, 'lock_lost');
    const store = connection.records(things);
    await store.insert(thing('a', 1));
    assert.equal(await store.replace('a', 1, thing('a', 2), { epoch: old }), 'stale');
    assert.equal(await store.replace('a', 1, thing('a', 2), { epoch }), 'replaced');
    const stale = await connection.run(
      [{ transactional: true, statements: [], writes: [recordWrite(things, thing('a', 1), 1)] }],
      epoch,
    );
    assert.equal(isSvcError(stale.failure?.error) && stale.failure.error.code, 'lock_lost');
  });

  on('one holds the lock, others wait, and a failure lets go', async ({ connection, again }) => {
    const other = await again();
    let inside = 0;
    let waited = 0;
    const enter = (who: Connection) =>
      who.exclusively(
        async () => {
          inside += 1;
          assert.equal(inside, 1);
          await who.now();
          inside -= 1;
        },
        { onWait: () => (waited += 1) },
      );
    await Promise.all([enter(connection), enter(other), enter(connection), enter(other)]);
    assert.ok(waited > 0);
    await assert.rejects(
      connection.exclusively(() => Promise.reject(new Error('mine'))),
      /mine/,
    );
    await connection.exclusively(async () => {
      await assert.rejects(
        other.exclusively(async () => {}, { timeoutMs: 30 }),
        (error) => isSvcError(error) && error.code === 'lock_timeout',
      );
    });
    await other.exclusively(async () => {});
  });

  on('who watches hears of a write', async ({ connection }) => {
    await connection.ensure([anyDefinition(things)]);
    let heard: () => void = () => {};
    const hint = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const stop = await connection.watch?.(things.collection, () => heard());
    assert.ok(stop);
    await connection.records(things).insert(thing('a', 1));
    await hint;
    await stop();
  });
}

interface Thing {
  readonly id: string;
  readonly kind: string;
  readonly size: number;
  readonly took: number;
  readonly big: number;
  readonly done: boolean;
  readonly expires: Date | null;
  readonly body: object | null;
}

const things: RecordDefinition<Thing> = {
  collection: '_svc_things',
  key: 'id',
  columns: {
    id: { type: 'string' },
    kind: { type: 'string' },
    size: { type: 'integer' },
    took: { type: 'double' },
    big: { type: 'bigint' },
    done: { type: 'boolean' },
    expires: { type: 'timestamp', nullable: true },
    body: { type: 'json', nullable: true },
  },
  indexes: [{ name: 'bySize', equals: ['kind'], sort: 'size' }],
};

const thing = (id: string, size: number, kind = 'k'): Thing => ({
  id,
  kind,
  size,
  took: 1.5,
  big: 2 ** 40,
  done: true,
  expires: null,
  body: { a: [1, "it's", null] },
});

const HOSTILE = [
  'Capital',
  'two words',
  'say "hi"',
  "it's",
  'select',
  '😀 sélect',
  '__proto__',
  '$1',
  'a.b',
  '; drop table x --',
  '\\',
  '%s',
];

const EVERY_FIELD: readonly NamedField[] = [
  { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true },
  { name: 'integer', type: 'integer', default: -5, unique: true },
  { name: 'bigint', type: 'bigint', default: '-9007199254740993' },
  { name: 'smallint', type: 'smallint', default: 7, required: true },
  { name: 'float', type: 'float', default: 0.1 },
  { name: 'double', type: 'double', default: 1.5e300 },
  { name: 'tiny', type: 'double', default: -5e-10 },
  { name: 'decimal', type: 'decimal', precision: 20, scale: 4, default: '12345678901234.5600' },
  { name: 'decimal2', type: 'decimal', precision: 10, scale: 2, default: 1e-7 },
  { name: 'string', type: 'string', default: "it's \\ \n 😀" },
  { name: 'generated', type: 'string', length: 36, autoGenerate: true },
  { name: 'short', type: 'string', length: 3, default: '' },
  { name: 'text', type: 'text', default: "'x'::text" },
  { name: 'boolean', type: 'boolean', default: true },
  { name: 'date', type: 'date', default: '2026-01-31' },
  { name: 'time', type: 'time', default: '23:59' },
  { name: 'datetime', type: 'datetime', default: '2026-01-31T23:59:59.120' },
  { name: 'timestamp', type: 'timestamp', default: '2026-01-31T23:59:59.999+02:00' },
  { name: 'date_now', type: 'date', default: 'now' },
  { name: 'time_now', type: 'time', default: 'now' },
  { name: 'datetime_now', type: 'datetime', default: 'now' },
  { name: 'timestamp_now', type: 'timestamp', default: 'now', required: true },
  { name: 'json', type: 'json', default: { b: [1, null, "it's", { c: 1.5 }], a: 'x' } },
  { name: 'json_text', type: 'json', default: 'now' },
  { name: 'uuid', type: 'uuid', default: 'A0000000-0000-4000-8000-00000000000A' },
  { name: 'uuid2', type: 'uuid', autoGenerate: true, required: true },
  { name: 'enum', type: 'enum', enumValues: ["it's", 'b, c', '"', "'::text, '"], default: "it's" },
  { name: 'one', type: 'enum', enumValues: ['only'], unique: true },
  { name: 'array', type: 'array', default: ['a', 'b,c', '{"}', 'NULL', '', '\\'] },
  { name: 'integers', type: 'array', items: 'integer', default: [1, -2] },
  { name: 'bigints', type: 'array', items: 'bigint', default: ['9007199254740993', 1] },
  { name: 'floats', type: 'array', items: 'float', default: [0.1, 0.123456789] },
  { name: 'decimals', type: 'array', items: 'decimal', default: ['1.50'] },
  { name: 'booleans', type: 'array', items: 'boolean', default: [true, false] },
  { name: 'times', type: 'array', items: 'timestamp', default: ['2026-01-31T23:59:59.999Z'] },
  { name: 'jsons', type: 'array', items: 'json', default: [{ a: 'x"y' }, 'text', 1] },
  { name: 'uuids', type: 'array', items: 'uuid' },
  { name: 'texts', type: 'array', items: 'text', default: [] },
  { name: 'bytes', type: 'array', items: 'blob' },
  { name: 'binary', type: 'binary', length: 16 },
  { name: 'blob', type: 'blob', required: true },
  { name: 'expression', type: 'integer', default: { $expression: '1 + 2' } },
  { name: 'said', type: 'timestamp', default: { $expression: 'now()' } },
];

const ID: NamedField = { name: 'id', type: 'integer', primaryKey: true };
const BASE: readonly Operation[] = [
  {
    type: 'createCollection',
    name: 'users',
    fields: [
      ID,
      { name: 'email', type: 'string', unique: true, required: true },
      { name: 'mood', type: 'enum', enumValues: ['a', 'b'], default: 'a' },
      { name: 'n', type: 'integer', default: 3 },
    ],
    options: { timestamps: true },
  },
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      { ...ID, autoGenerate: true },
      { name: 'user', type: 'integer' },
      { name: 'total', type: 'decimal', precision: 10, scale: 2 },
    ],
  },
];

/** Each is run, undone and run again, in this order. */
const STEPS: readonly Operation[] = [
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: {
      name: 'orders_user_fkey',
      type: 'foreignKey',
      columns: ['user'],
      references: { table: 'users', columns: ['id'], onDelete: 'CASCADE', onUpdate: 'SET NULL' },
    },
  },
  {
    type: 'addConstraint',
    collection: 'orders',
    constraint: { name: 'positive', type: 'check', expression: 'total >= 0 AND "user" <> 7' },
  },
  { type: 'addConstraint', collection: 'users', constraint: { name: 'pair', type: 'unique', columns: ['n', 'email'] } },
  {
    type: 'createIndex',
    collection: 'users',
    index: 'users_n',
    columns: [{ name: 'n', order: 'desc' }, { name: 'email' }],
  },
  {
    type: 'createIndex',
    collection: 'users',
    index: 'users_once',
    columns: [{ name: 'email', order: 'DESC' }],
    unique: true,
  },
  { type: 'dropIndex', collection: 'users', index: 'users_once' },
  {
    type: 'addField',
    collection: 'users',
    field: { name: 'kind', type: 'enum', enumValues: ['x', 'y'], required: true, default: 'x', unique: true },
  },
  { type: 'modifyField', collection: 'users', field: 'kind', changes: { enumValues: ['y', 'x', "z'"], unique: false } },
  {
    type: 'modifyField',
    collection: 'users',
    field: 'kind',
    changes: { type: 'string', length: 20, default: 'q', required: false },
  },
  { type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'bigint', default: '9007199254740993' } },
  { type: 'modifyField', collection: 'users', field: 'n', changes: { type: 'text', default: null } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { autoGenerate: false } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'bigint', autoGenerate: true } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'string', autoGenerate: false } },
  { type: 'modifyField', collection: 'orders', field: 'id', changes: { type: 'smallint', autoGenerate: true } },
  { type: 'modifyField', collection: 'orders', field: 'user', changes: { primaryKey: true } },
  { type: 'renameField', collection: 'users', from: 'email', to: 'e mail' },
  { type: 'renameField', collection: 'users', from: 'mood', to: 'Mood' },
  { type: 'renameCollection', collection: 'users', to: 'People "x"' },
  { type: 'dropConstraint', collection: 'orders', constraint: 'positive' },
  { type: 'dropField', collection: 'orders', field: 'total' },
  { type: 'dropCollection', collection: 'People "x"', cascade: true },
];

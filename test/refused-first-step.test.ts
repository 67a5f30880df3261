import * as assert from 'node:assert/strict';
import type { Dialect } from '../core/dialect.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { isSvcError, type SvcError } from '../core/errors.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { checksum, type Migration } from '../core/migration/migration.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import type { Operation } from '../core/schema/operation.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { dynamodb } from '../plugins/dialects/dynamodb/dialect.ts';
import { mongodb } from '../plugins/dialects/mongodb/dialect.ts';
import { freshKeyspace, unavailable as missingCassandra } from './kit/cassandra.ts';
import { freshPrefix } from './kit/dynamodb.ts';
import { sqlEngines } from './kit/engines.ts';
import { freshMongo, missing as missingMongo } from './kit/mongodb.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { find } from './servers/find.ts';
import type { TestDatabase } from './suites/test-database.ts';

/** Something done by hand, and an operation that the engine then refuses. */
interface Refusal {
  readonly byHand: readonly string[];
  readonly operation: Operation;
  readonly code: ErrorCode | readonly ErrorCode[];
}

const fields = [
  { name: 'id', type: 'integer', primaryKey: true },
  { name: 'n', type: 'integer' },
  { name: 'm', type: 'integer' },
] as const;
const create = (name: string): Operation => ({ type: 'createCollection', name, fields });
const addField: Operation = { type: 'addField', collection: 't', field: { name: 'extra', type: 'integer' } };
const createIndex: Operation = { type: 'createIndex', collection: 't', index: 't_n', columns: [{ name: 'n' }] };
const raw = (dialect: string, statement: string): Operation => ({ type: 'raw', dialect, statement });

/** On a database with the table "t". */
const sqlRefusals = (dialect: string): Readonly<Record<string, Refusal>> => ({
  'a table created by hand': {
    byHand: ['CREATE TABLE others (name varchar(10) PRIMARY KEY)'],
    operation: create('others'),
    code: 'collection_exists',
  },
  'a column added by hand': {
    byHand: ['ALTER TABLE t ADD COLUMN extra varchar(10)'],
    operation: addField,
    code: 'field_exists',
  },
  'the same column added by hand': {
    byHand: ['ALTER TABLE t ADD COLUMN extra int'],
    operation: addField,
    code: 'field_exists',
  },
  'an index created by hand': {
    byHand: ['CREATE INDEX t_n ON t (m)'],
    operation: createIndex,
    code: 'index_exists',
  },
  ...(dialect === 'postgresql' && {
    'an index created by hand, where svc builds it concurrently': {
      byHand: ['CREATE INDEX t_n ON t (m)'],
      operation: { ...createIndex, sqlOptions: { concurrently: true } } as Operation,
      code: 'index_exists',
    },
  }),
  'a table dropped by hand': { byHand: ['DROP TABLE t'], operation: addField, code: 'collection_unknown' },
  'a dropped table, and an index': { byHand: ['DROP TABLE t'], operation: createIndex, code: 'collection_unknown' },
  'a raw statement': {
    byHand: [],
    operation: raw(dialect, 'ALTER TABLE nothing ADD COLUMN n int'),
    code: ['collection_unknown', 'migration_failed'],
  },
});

const CASSANDRA: Readonly<Record<string, Refusal>> = {
  ...sqlRefusals('cassandra'),
  'a table created by hand': {
    byHand: ['CREATE TABLE others (name text PRIMARY KEY)'],
    operation: create('others'),
    code: 'collection_exists',
  },
  'a like table created by hand': {
    byHand: ['CREATE TABLE others (id int PRIMARY KEY, n int, m int)'],
    operation: create('others'),
    code: 'collection_exists',
  },
  'a column added by hand': {
    byHand: ['ALTER TABLE t ADD extra text'],
    operation: addField,
    code: 'field_exists',
  },
  'the same column added by hand': {
    byHand: ['ALTER TABLE t ADD extra int'],
    operation: addField,
    code: 'field_exists',
  },
  'a column dropped by hand': {
    byHand: ['ALTER TABLE t DROP n'],
    operation: { type: 'dropField', collection: 't', field: 'n' },
    code: 'field_unknown',
  },
  'a raw statement': {
    byHand: [],
    operation: raw('cassandra', 'ALTER TABLE nothing ADD n int'),
    code: 'collection_unknown',
  },
  'a raw statement with a syntax error': {
    byHand: [],
    operation: raw('cassandra', 'NONSENSE'),
    code: 'migration_failed',
  },
};

const command = (document: object): string => JSON.stringify(document);

const MONGODB: Readonly<Record<string, Refusal>> = {
  'a collection created by hand': {
    byHand: [command({ insert: 'others', documents: [{ name: 'x' }] })],
    operation: create('others'),
    code: 'collection_exists',
  },
  'an index created by hand': {
    byHand: [command({ createIndexes: 't', indexes: [{ name: 't_n', key: { m: 1 } }] })],
    operation: createIndex,
    code: 'index_exists',
  },
  'a collection dropped by hand': { byHand: [command({ drop: 't' })], operation: addField, code: 'collection_unknown' },
  'a dropped collection, and an index': {
    byHand: [command({ drop: 't' })],
    operation: createIndex,
    code: 'collection_unknown',
  },
  'a raw command on a collection that does not exist': {
    byHand: [],
    operation: raw('mongodb', command({ collMod: 'nothing', validationLevel: 'off' })),
    code: 'collection_unknown',
  },
  'a raw command that does not exist': {
    byHand: [],
    operation: raw('mongodb', command({ nonsense: 1 })),
    code: ['migration_failed', 'not_supported'],
  },
  'a raw command with an unknown option': {
    byHand: [],
    operation: raw('mongodb', command({ collMod: 't', nonsense: 1 })),
    code: 'migration_failed',
  },
};

const tableInput = (TableName: string, name: string, type: string) => ({
  TableName,
  AttributeDefinitions: [{ AttributeName: name, AttributeType: type }],
  KeySchema: [{ AttributeName: name, KeyType: 'HASH' }],
  BillingMode: 'PAY_PER_REQUEST',
});
const indexByHand = {
  TableName: 't',
  AttributeDefinitions: [{ AttributeName: 'm', AttributeType: 'N' }],
  GlobalSecondaryIndexUpdates: [
    {
      Create: {
        IndexName: 't_n',
        KeySchema: [{ AttributeName: 'm', KeyType: 'HASH' }],
        Projection: { ProjectionType: 'ALL' },
      },
    },
  ],
};

const DYNAMODB: Readonly<Record<string, Refusal>> = {
  'a table created by hand': {
    byHand: [command({ CreateTable: tableInput('others', 'name', 'S') })],
    operation: create('others'),
    code: 'collection_exists',
  },
  'a like table created by hand': {
    byHand: [command({ CreateTable: tableInput('others', 'id', 'N') })],
    operation: create('others'),
    code: 'collection_exists',
  },
  'an index created by hand': {
    byHand: [command({ UpdateTable: indexByHand })],
    operation: createIndex,
    code: 'index_exists',
  },
  'a table dropped by hand': {
    byHand: [command({ DeleteTable: { TableName: 't' } })],
    operation: addField,
    code: 'collection_unknown',
  },
  'a dropped table, and an index': {
    byHand: [command({ DeleteTable: { TableName: 't' } })],
    operation: createIndex,
    code: 'collection_unknown',
  },
  'a raw request': {
    byHand: [],
    operation: raw('dynamodb', command({ UpdateTable: { TableName: 'nothing', BillingMode: 'PAY_PER_REQUEST' } })),
    code: ['collection_unknown', 'migration_failed'],
  },
  'a raw request that is not valid': {
    byHand: [],
    operation: raw('dynamodb', command({ PutItem: { TableName: 't', Item: {} } })),
    code: 'migration_failed',
  },
};

const DYNAMODB_SERVER = await find('dynamodb');

interface Engine {
  readonly name: string;
  readonly missing: string | undefined;
  readonly refusals: Readonly<Record<string, Refusal>>;
  withTarget(work: (target: Awaited<ReturnType<typeof connectTarget>>) => Promise<void>): Promise<void>;
}

const on =
  (dialect: Dialect, fresh: () => TestDatabase | Promise<TestDatabase>): Engine['withTarget'] =>
  async (work) => {
    const { url, drop } = await fresh();
    try {
      const target = await connectTarget(dialect, url);
      try {
        await work(target);
      } finally {
        await target.connection.close();
      }
    } finally {
      await drop();
    }
  };

const ENGINES: readonly Engine[] = [
  ...sqlEngines.map((engine) => ({
    name: engine.name,
    missing: engine.missing,
    refusals: sqlRefusals(engine.dialect.name),
    withTarget: (work: Parameters<Engine['withTarget']>[0]) => engine.withDatabase(work),
  })),
  { name: 'mongodb', missing: missingMongo, refusals: MONGODB, withTarget: on(mongodb, freshMongo) },
  {
    name: 'cassandra',
    missing: missingCassandra,
    refusals: CASSANDRA,
    withTarget: on(cassandra, () => freshKeyspace()),
  },
  {
    name: 'dynamodb',
    missing: 'missing' in DYNAMODB_SERVER ? DYNAMODB_SERVER.missing : undefined,
    refusals: DYNAMODB,
    withTarget: on(dynamodb, () =>
      freshPrefix('url' in DYNAMODB_SERVER ? Number(new URL(DYNAMODB_SERVER.url).port) : 0),
    ),
  },
];

const migration = (tag: string, ...up: Operation[]): Migration => ({
  tag,
  name: tag,
  up,
  down: [],
  irreversible: 'a test',
});

async function rejectionOf(work: Promise<unknown>): Promise<SvcError> {
  const error = await work.then(
    () => assert.fail('It did not fail.'),
    (thrown: unknown) => thrown,
  );
  if (!isSvcError(error)) throw error;
  return error;
}

for (const { name, missing, refusals, withTarget } of ENGINES) {
  for (const [what, { byHand, operation, code }] of Object.entries(refusals)) {
    const title = `${name}: a refused first step is the plain error and blocks nothing: ${what}`;
    if (missing !== undefined) {
      test.skip(title, missing);
      continue;
    }
    test(title, () =>
      withTarget(async (target) => {
        const engine = new MigrationEngine(target);
        await engine.up(migration('1_t', create('t')));
        for (const text of byHand) await target.connection.query(text);
        const error = await rejectionOf(engine.up(migration('2_refused', operation)));
        assert.ok([code].flat().includes(error.code), `${error.code}: ${error.message} ${error.why}`);
        if (error.code === 'collection_exists') assert.match(error.message, /already exists/);
        assert.match(error.state ?? '', /^None of it took effect/);
        assert.deepEqual(
          (await engine.getHistory({ all: true })).map(({ tag }) => tag),
          ['1_t'],
        );
        await engine.up(migration('3_next', create('next')));
        // The same migration is the plain error again, not one that waits for a decision.
        assert.equal((await rejectionOf(engine.up(migration('2_refused', operation)))).code, error.code);
      }),
    );
  }
}

const definedAs = (one: Migration) => ({ tag: one.tag, checksum: checksum(one), migration: one });

/** Drops the table "t" by hand. */
const DROPPED: Readonly<Record<string, string>> = {
  mongodb: command({ drop: 't' }),
  dynamodb: command({ DeleteTable: { TableName: 't' } }),
};

for (const { name, missing, withTarget } of ENGINES) {
  const title = `${name}: a refused first step, after another migration of the run and of a rollback, keeps what was done`;
  if (missing !== undefined) {
    test.skip(title, missing);
    continue;
  }
  test(title, () =>
    withTarget(async (target) => {
      const engine = new MigrationEngine(target);
      const states = async () => (await engine.getHistory({ all: true })).map(({ tag, status }) => `${tag} ${status}`);
      const down: Operation[] = [{ type: 'dropField', collection: 't', field: 'extra' }];
      const field: Migration = { tag: '2_field', name: 'field', up: [addField], down };
      const defined = [migration('1_t', create('t')), field].map(definedAs);
      await migrate(target, defined);
      await target.connection.query(DROPPED[name] ?? 'DROP TABLE t');
      assert.equal((await rejectionOf(rollback(target, { allowDestructive: true }))).code, 'collection_unknown');
      assert.deepEqual(await states(), ['1_t completed', '2_field completed']);

      const more = [migration('3_next', create('next')), migration('4_index', createIndex)].map(definedAs);
      const error = await rejectionOf(migrate(target, [...defined, ...more]));
      assert.equal(error.code, 'collection_unknown');
      assert.match(error.state ?? '', /^None of it took effect; 1 of 2 migrations are applied/);
      assert.deepEqual(await states(), ['1_t completed', '2_field completed', '3_next completed']);
    }),
  );
}

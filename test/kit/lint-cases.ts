import type {
  CreateIndex,
  FieldChanges,
  MigrationOperation,
  NamedFieldDefinition,
} from '../../core/schema/operation.ts';

/** What a rule must find, and a form of the same change that nothing must be said about. */
export interface LintCase {
  readonly rule: string;
  readonly dialects: readonly string[];
  readonly bad: readonly MigrationOperation[];
  /** Absent where the only good form is not to do it. */
  readonly good?: readonly MigrationOperation[];
}

/** The migration before each case. */
export const EXISTING: readonly MigrationOperation[] = [
  {
    type: 'createCollection',
    name: 'users',
    fields: [
      { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true },
      { name: 'email', type: 'string', length: 100, required: true },
      { name: 'name', type: 'string', length: 60 },
      { name: 'age', type: 'integer' },
      { name: 'status', type: 'enum', enumValues: ['new', 'paid'], required: true, default: 'new' },
      { name: 'total', type: 'decimal', precision: 10, scale: 2 },
      { name: 'note', type: 'text' },
      { name: 'token', type: 'uuid' },
      { name: 'active', type: 'boolean' },
      { name: 'seen', type: 'timestamp' },
    ],
  },
];
/** Engines with foreign keys. */
export const EXISTING_ORDERS: readonly MigrationOperation[] = [
  {
    type: 'createCollection',
    name: 'orders',
    fields: [
      { name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true },
      { name: 'userId', type: 'bigint', required: true },
      { name: 'smallId', type: 'integer' },
      { name: 'code', type: 'string', length: 20 },
    ],
  },
  { type: 'createIndex', collection: 'orders', index: 'orders_user', columns: [{ name: 'userId' }, { name: 'code' }] },
  { type: 'createIndex', collection: 'orders', index: 'orders_small', columns: [{ name: 'smallId' }] },
];

const PG = ['postgresql'];
const MYSQL = ['mysql', 'mariadb'];
const SQL = [...PG, ...MYSQL];
const ALL = [...SQL, 'mongodb', 'dynamodb', 'cassandra'];

const raw =
  (statement: string, more: { destructive?: boolean; check?: string; transaction?: boolean } = {}) =>
  (dialect: string): MigrationOperation => ({ type: 'raw', dialect, statement, makes: [], ...more });
const onPostgresql = (...statements: readonly string[]): readonly MigrationOperation[] =>
  statements.map((statement) => raw(statement)('postgresql'));
const outsideTransaction = (statement: string): readonly MigrationOperation[] => [
  raw(statement, { transaction: false, check: 'SELECT 1' })('postgresql'),
];
const modify = (field: string, changes: FieldChanges): readonly MigrationOperation[] => [
  { type: 'modifyField', collection: 'users', field, changes },
];
const add = (field: NamedFieldDefinition): readonly MigrationOperation[] => [
  { type: 'addField', collection: 'users', field },
];
const table = (...fields: readonly NamedFieldDefinition[]): readonly MigrationOperation[] => [
  { type: 'createCollection', name: 'others', fields: [{ name: 'key', type: 'bigint', primaryKey: true }, ...fields] },
];
const index = (collection: string, name: string, ...columns: readonly string[]): CreateIndex => ({
  type: 'createIndex',
  collection,
  index: name,
  columns: columns.map((column) => ({ name: column })),
});
const concurrently = (operation: MigrationOperation): MigrationOperation =>
  ({ ...operation, sqlOptions: { concurrently: true } }) as MigrationOperation;
const foreignKey = (column: string, native?: string): MigrationOperation => ({
  type: 'addConstraint',
  collection: 'orders',
  constraint: {
    name: 'orders_users',
    type: 'foreignKey',
    columns: [column],
    references: { table: 'users', columns: ['id'] },
    ...(native !== undefined && { native }),
  },
});
const keyed = (native: string): readonly MigrationOperation[] => [
  {
    type: 'createCollection',
    name: 'others',
    fields: [{ name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true, native }],
  },
];
const toKeyed = (column: string): MigrationOperation => ({
  type: 'addConstraint',
  collection: 'orders',
  constraint: {
    name: 'orders_others',
    type: 'foreignKey',
    columns: [column],
    references: { table: 'others', columns: ['id'] },
    native: 'NOT VALID',
  },
});
const check = (native?: string): MigrationOperation => ({
  type: 'addConstraint',
  collection: 'users',
  constraint: {
    name: 'adults',
    type: 'check',
    expression: 'age > 17',
    columns: ['age'],
    ...(native !== undefined && { native }),
  },
});

/** Pairs for one rule in the words of operations, and in raw SQL as its users write it. */
export const LINT_CASES: readonly LintCase[] = [
  // Indexes
  {
    rule: 'SVC101',
    dialects: PG,
    bad: [index('users', 'users_age', 'age')],
    good: [concurrently(index('users', 'users_age', 'age'))],
  },
  {
    rule: 'SVC101',
    dialects: PG,
    bad: onPostgresql('CREATE INDEX users_age ON users (age)'),
    good: outsideTransaction('CREATE INDEX CONCURRENTLY users_age ON users (age)'),
  },
  {
    rule: 'SVC101',
    dialects: PG,
    bad: onPostgresql('create unique index if not exists "i" on only "users" using btree (lower(email));'),
    good: outsideTransaction('create index concurrently if not exists i on users (email)'),
  },
  {
    rule: 'SVC101',
    dialects: PG,
    bad: onPostgresql('REINDEX TABLE users'),
    good: outsideTransaction('REINDEX TABLE CONCURRENTLY users'),
  },
  {
    rule: 'SVC101',
    dialects: PG,
    bad: onPostgresql('CREATE INDEX ON public.users (age)'),
    good: onPostgresql('CREATE TABLE fresh (id bigint PRIMARY KEY, n int)', 'CREATE INDEX ON fresh (n)'),
  },
  {
    rule: 'SVC111',
    dialects: PG,
    bad: [{ type: 'dropIndex', collection: 'orders', index: 'orders_user' }],
    good: outsideTransaction('DROP INDEX CONCURRENTLY orders_user'),
  },
  {
    rule: 'SVC111',
    dialects: PG,
    bad: onPostgresql('DROP INDEX IF EXISTS orders_user'),
    good: outsideTransaction('DROP INDEX CONCURRENTLY IF EXISTS orders_user'),
  },
  // Unique
  { rule: 'SVC102', dialects: PG, bad: modify('email', { unique: true }) },
  {
    rule: 'SVC102',
    dialects: PG,
    bad: [
      { type: 'addConstraint', collection: 'users', constraint: { name: 'u', type: 'unique', columns: ['email'] } },
    ],
    good: onPostgresql('ALTER TABLE users ADD CONSTRAINT u UNIQUE USING INDEX users_email'),
  },
  {
    rule: 'SVC102',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD CONSTRAINT u UNIQUE (email)'),
    good: onPostgresql('ALTER TABLE users ADD CONSTRAINT u UNIQUE USING INDEX users_email'),
  },
  {
    rule: 'SVC102',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD COLUMN handle text UNIQUE'),
    good: onPostgresql('ALTER TABLE users ADD COLUMN handle text'),
  },
  {
    rule: 'SVC102',
    dialects: PG,
    bad: add({ name: 'handle', type: 'string', unique: true }),
    good: add({ name: 'handle', type: 'string' }),
  },
  {
    rule: 'SVC210',
    dialects: ALL.filter((one) => one !== 'cassandra' && one !== 'dynamodb'),
    bad: [{ ...index('users', 'u', 'email'), unique: true } as MigrationOperation],
  },
  { rule: 'SVC210', dialects: [...MYSQL, 'mongodb'], bad: modify('email', { unique: true }) },
  // Foreign keys
  { rule: 'SVC103', dialects: PG, bad: [foreignKey('userId')], good: [foreignKey('userId', 'NOT VALID')] },
  {
    rule: 'SVC103',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE orders ADD CONSTRAINT f FOREIGN KEY (user_id) REFERENCES users (id)'),
    good: onPostgresql('ALTER TABLE orders ADD CONSTRAINT f FOREIGN KEY (user_id) REFERENCES users (id) NOT VALID'),
  },
  {
    rule: 'SVC103',
    dialects: PG,
    bad: onPostgresql(
      'ALTER TABLE ONLY "orders" ADD FOREIGN KEY ("userId") REFERENCES "users" ("id") ON DELETE CASCADE',
    ),
    good: onPostgresql('ALTER TABLE orders VALIDATE CONSTRAINT f'),
  },
  {
    rule: 'SVC113',
    dialects: PG,
    bad: onPostgresql(
      'ALTER TABLE orders ADD CONSTRAINT f FOREIGN KEY (user_id) REFERENCES users (id) NOT VALID',
      'ALTER TABLE orders VALIDATE CONSTRAINT f',
    ),
    good: onPostgresql('ALTER TABLE orders VALIDATE CONSTRAINT f'),
  },
  {
    rule: 'SVC113',
    dialects: PG,
    bad: [check('NOT VALID'), ...onPostgresql('ALTER TABLE users VALIDATE CONSTRAINT adults')],
    good: onPostgresql('ALTER TABLE users VALIDATE CONSTRAINT adults'),
  },
  {
    rule: 'SVC402',
    dialects: PG,
    bad: [{ type: 'dropIndex', collection: 'orders', index: 'orders_user' }, foreignKey('userId', 'NOT VALID')],
    good: [foreignKey('userId', 'NOT VALID')],
  },
  { rule: 'SVC411', dialects: SQL, bad: [foreignKey('smallId')] },
  ...['bigserial', 'bigint GENERATED ALWAYS AS IDENTITY'].map((native) => ({
    rule: 'SVC411',
    dialects: PG,
    bad: [...keyed(native), toKeyed('smallId')],
    good: [...keyed(native), toKeyed('userId')],
  })),
  {
    rule: 'SVC411',
    dialects: PG,
    bad: [foreignKey('smallId', 'NOT VALID')],
    good: [foreignKey('userId', 'NOT VALID')],
  },
  // Checks
  { rule: 'SVC104', dialects: PG, bad: [check()], good: [check('NOT VALID')] },
  {
    rule: 'SVC104',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD CONSTRAINT c CHECK (age > 17)'),
    good: onPostgresql('ALTER TABLE users ADD CONSTRAINT c CHECK (age > 17) NOT VALID'),
  },
  {
    rule: 'SVC104',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD CHECK (age > 17), ADD COLUMN a int'),
    good: onPostgresql('ALTER TABLE users ADD CONSTRAINT c CHECK (age > 17) NOT VALID, ADD COLUMN a int'),
  },
  {
    rule: 'SVC104',
    dialects: PG,
    bad: onPostgresql('ALTER DOMAIN positive ADD CONSTRAINT p CHECK (VALUE > 0)'),
    good: onPostgresql('ALTER DOMAIN positive ADD CONSTRAINT p CHECK (VALUE > 0) NOT VALID'),
  },
  {
    rule: 'SVC112',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD CONSTRAINT x EXCLUDE USING gist (period WITH &&)'),
  },
  {
    rule: 'SVC112',
    dialects: PG,
    bad: [
      {
        type: 'createObject',
        kind: 'exclusion',
        name: 'users.x',
        definition: 'ALTER TABLE users ADD CONSTRAINT x EXCLUDE USING gist (p WITH &&)',
      },
    ],
  },
  { rule: 'SVC107', dialects: PG, bad: modify('status', { enumValues: ['new', 'paid', 'sent'] }) },
  {
    rule: 'SVC107',
    dialects: PG,
    bad: add({ name: 'kind', type: 'enum', enumValues: ['a'] }),
    good: add({ name: 'kind', type: 'text' }),
  },
  { rule: 'SVC208', dialects: ALL, bad: modify('status', { enumValues: ['new'] }) },
  {
    rule: 'SVC208',
    dialects: PG,
    bad: onPostgresql("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'"),
    good: onPostgresql("ALTER TYPE mood ADD VALUE 'fine'"),
  },
  // Required
  { rule: 'SVC105', dialects: PG, bad: modify('age', { required: true }) },
  {
    rule: 'SVC105',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ALTER COLUMN age SET NOT NULL'),
    good: onPostgresql('ALTER TABLE users ALTER COLUMN age DROP NOT NULL'),
  },
  {
    rule: 'SVC105',
    dialects: PG,
    bad: onPostgresql('alter table users alter "age" set not null'),
    good: onPostgresql('alter table users add column x int'),
  },
  {
    rule: 'SVC205',
    dialects: ALL.filter((one) => one !== 'cassandra'),
    bad: add({ name: 'city', type: 'string', required: true }),
    good: add({ name: 'city', type: 'string', required: true, default: '' }),
  },
  {
    rule: 'SVC205',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD COLUMN city text NOT NULL'),
    good: onPostgresql("ALTER TABLE users ADD COLUMN city text NOT NULL DEFAULT ''"),
  },
  {
    rule: 'SVC206',
    dialects: ALL.filter((one) => one !== 'cassandra'),
    bad: modify('age', { required: true }),
    good: [],
  },
  { rule: 'SVC207', dialects: ALL.filter((one) => one !== 'cassandra'), bad: modify('status', { default: null }) },
  {
    rule: 'SVC207',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ALTER status DROP DEFAULT'),
    good: onPostgresql("ALTER TABLE users ALTER status SET DEFAULT 'new'"),
  },
  { rule: 'SVC211', dialects: ['mongodb', ...SQL], bad: modify('email', { required: false }) },
  { rule: 'SVC211', dialects: PG, bad: onPostgresql('ALTER TABLE users ALTER COLUMN email DROP NOT NULL') },
  // Types
  { rule: 'SVC106', dialects: PG, bad: modify('age', { type: 'bigint' }) },
  {
    rule: 'SVC106',
    dialects: PG,
    bad: modify('note', { type: 'string', length: 500 }),
    good: modify('email', { type: 'text', length: null }),
  },
  {
    rule: 'SVC106',
    dialects: PG,
    bad: modify('total', { precision: 12, scale: 3 }),
    good: modify('total', { precision: 12 }),
  },
  { rule: 'SVC106', dialects: PG, bad: modify('seen', { type: 'datetime' }), good: modify('email', { length: 200 }) },
  {
    rule: 'SVC106',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ALTER COLUMN age TYPE bigint'),
    good: onPostgresql('ALTER TABLE users ALTER COLUMN email TYPE text'),
  },
  {
    rule: 'SVC106',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ALTER age SET DATA TYPE numeric(10,2) USING age::numeric'),
    good: onPostgresql('ALTER TABLE users ALTER email SET DATA TYPE text'),
  },
  {
    rule: 'SVC209',
    dialects: ALL.filter((one) => one !== 'cassandra'),
    bad: modify('email', { length: 20 }),
    good: [],
  },
  { rule: 'SVC209', dialects: SQL, bad: modify('note', { type: 'integer' }) },
  { rule: 'SVC131', dialects: MYSQL, bad: modify('age', { type: 'bigint' }), good: modify('name', { length: 63 }) },
  {
    rule: 'SVC131',
    dialects: MYSQL,
    bad: modify('name', { length: 300 }),
    good: modify('status', { enumValues: ['new', 'paid', 'sent'] }),
  },
  { rule: 'SVC131', dialects: MYSQL, bad: [foreignKey('userId')] },
  { rule: 'SVC131', dialects: MYSQL, bad: [check()], good: [index('users', 'users_age', 'age')] },
  // Fields with values of their own
  {
    rule: 'SVC108',
    dialects: PG,
    bad: add({ name: 'key', type: 'uuid', autoGenerate: true, required: true }),
    good: add({ name: 'at', type: 'timestamp', required: true, default: 'now' }),
  },
  {
    rule: 'SVC108',
    dialects: PG,
    bad: add({ name: 'n', type: 'integer', autoGenerate: true }),
    good: add({ name: 'n', type: 'integer', default: 0 }),
  },
  {
    rule: 'SVC108',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD COLUMN k uuid DEFAULT gen_random_uuid()'),
    good: onPostgresql('ALTER TABLE users ADD COLUMN at timestamptz DEFAULT now()'),
  },
  {
    rule: 'SVC108',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD COLUMN n bigserial'),
    good: onPostgresql('ALTER TABLE users ADD COLUMN n bigint'),
  },
  {
    rule: 'SVC108',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD COLUMN r float8 DEFAULT random()'),
    good: onPostgresql('ALTER TABLE users ALTER COLUMN age SET DEFAULT random()'),
  },
  {
    rule: 'SVC108',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD n bigint GENERATED BY DEFAULT AS IDENTITY'),
    good: onPostgresql('ALTER TABLE users ADD n bigint DEFAULT 7'),
  },
  {
    rule: 'SVC109',
    dialects: PG,
    bad: add({ name: 'low', type: 'text', native: 'text GENERATED ALWAYS AS (lower(email)) STORED' }),
  },
  {
    rule: 'SVC109',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD COLUMN low text GENERATED ALWAYS AS (lower(email)) STORED'),
    good: onPostgresql('ALTER TABLE users ADD COLUMN low text'),
  },
  {
    rule: 'SVC110',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE logs ADD PRIMARY KEY (id)'),
    good: onPostgresql('ALTER TABLE logs ADD CONSTRAINT p PRIMARY KEY USING INDEX logs_id'),
  },
  {
    rule: 'SVC110',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE logs ADD COLUMN id bigint PRIMARY KEY'),
    good: onPostgresql('ALTER TABLE logs ADD COLUMN id bigint'),
  },
  // Names
  {
    rule: 'SVC201',
    dialects: ALL.filter((one) => one !== 'cassandra' && one !== 'dynamodb'),
    bad: [{ type: 'renameCollection', collection: 'users', to: 'people' }],
  },
  { rule: 'SVC201', dialects: PG, bad: onPostgresql('ALTER TABLE users RENAME TO people') },
  { rule: 'SVC202', dialects: ALL, bad: [{ type: 'renameField', collection: 'users', from: 'note', to: 'notes' }] },
  {
    rule: 'SVC202',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users RENAME COLUMN note TO notes'),
    good: onPostgresql('ALTER TABLE users RENAME CONSTRAINT a TO b'),
  },
  { rule: 'SVC202', dialects: PG, bad: onPostgresql('ALTER TABLE users RENAME note TO notes') },
  // Loss
  { rule: 'SVC203', dialects: ALL, bad: [{ type: 'dropCollection', collection: 'users' }] },
  {
    rule: 'SVC203',
    dialects: PG,
    bad: onPostgresql('DROP TABLE IF EXISTS users'),
    good: [raw('DROP TABLE users', { destructive: false })('postgresql')],
  },
  { rule: 'SVC203', dialects: PG, bad: onPostgresql('drop schema old'), good: onPostgresql('CREATE SCHEMA fresh') },
  { rule: 'SVC204', dialects: ALL, bad: [{ type: 'dropField', collection: 'users', field: 'note' }] },
  {
    rule: 'SVC204',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users DROP COLUMN IF EXISTS note'),
    good: onPostgresql('ALTER TABLE users DROP CONSTRAINT c'),
  },
  { rule: 'SVC204', dialects: PG, bad: onPostgresql('ALTER TABLE users DROP note') },
  {
    rule: 'SVC212',
    dialects: PG,
    bad: [{ type: 'dropObject', kind: 'view', name: 'active', was: 'CREATE VIEW active AS SELECT 1' }],
    good: [
      { type: 'dropObject', kind: 'view', name: 'active', was: 'CREATE VIEW active AS SELECT 1' },
      { type: 'createObject', kind: 'view', name: 'active', definition: 'CREATE VIEW active AS SELECT 1' },
    ],
  },
  {
    rule: 'SVC212',
    dialects: PG,
    bad: onPostgresql('DROP VIEW active'),
    good: onPostgresql('CREATE OR REPLACE VIEW active AS SELECT 1'),
  },
  {
    rule: 'SVC501',
    dialects: PG,
    bad: onPostgresql('DELETE FROM users WHERE age < 18'),
    good: [raw('DELETE FROM users WHERE age < 18', { destructive: false })('postgresql')],
  },
  {
    rule: 'SVC502',
    dialects: PG,
    bad: onPostgresql('DROP TYPE mood CASCADE'),
    good: onPostgresql('ALTER TABLE users DROP CONSTRAINT c'),
  },
  {
    rule: 'SVC502',
    dialects: PG,
    bad: onPostgresql('TRUNCATE users CASCADE'),
    good: onPostgresql('CREATE TABLE a (id bigint PRIMARY KEY, u bigint REFERENCES users ON DELETE CASCADE)'),
  },
  {
    rule: 'SVC119',
    dialects: PG,
    bad: onPostgresql("UPDATE users SET note = 'x'"),
    good: onPostgresql("UPDATE users SET note = 'x' WHERE id BETWEEN 1 AND 1000"),
  },
  {
    rule: 'SVC119',
    dialects: PG,
    bad: onPostgresql('DELETE FROM users'),
    good: [raw('DELETE FROM users WHERE id < 5', { destructive: false })('postgresql')],
  },
  {
    rule: 'SVC119',
    dialects: PG,
    bad: onPostgresql('TRUNCATE TABLE users'),
    good: onPostgresql("INSERT INTO users (email) VALUES ('a')"),
  },
  {
    rule: 'SVC114',
    dialects: PG,
    bad: [...add({ name: 'city', type: 'text' }), ...onPostgresql("UPDATE users SET city = '' WHERE id < 100")],
    good: onPostgresql("UPDATE users SET city = '' WHERE id < 100"),
  },
  // Locks
  { rule: 'SVC115', dialects: PG, bad: onPostgresql('VACUUM FULL users'), good: outsideTransaction('VACUUM users') },
  {
    rule: 'SVC115',
    dialects: PG,
    bad: onPostgresql('CLUSTER users USING users_pkey'),
    good: outsideTransaction('VACUUM (ANALYZE) users'),
  },
  {
    rule: 'SVC115',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users SET UNLOGGED'),
    good: onPostgresql('ALTER TABLE users SET (fillfactor = 80)'),
  },
  {
    rule: 'SVC116',
    dialects: PG,
    bad: onPostgresql('LOCK TABLE users IN ACCESS EXCLUSIVE MODE'),
    good: onPostgresql("SET LOCAL lock_timeout = '1s'"),
  },
  {
    rule: 'SVC117',
    dialects: PG,
    bad: onPostgresql('REFRESH MATERIALIZED VIEW totals'),
    good: outsideTransaction('REFRESH MATERIALIZED VIEW CONCURRENTLY totals'),
  },
  {
    rule: 'SVC118',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE events DETACH PARTITION events_2020'),
    good: outsideTransaction('ALTER TABLE events DETACH PARTITION events_2020 CONCURRENTLY'),
  },
  {
    rule: 'SVC118',
    dialects: PG,
    bad: onPostgresql("ALTER TABLE events ATTACH PARTITION e FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')"),
    good: onPostgresql("CREATE TABLE e PARTITION OF events FOR VALUES IN ('a')"),
  },
  {
    rule: 'SVC120',
    dialects: PG,
    bad: onPostgresql('CREATE TRIGGER t AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION f()'),
  },
  // Design
  {
    rule: 'SVC401',
    dialects: SQL,
    bad: [
      {
        type: 'createCollection',
        name: 'others',
        fields: [{ name: 'id', type: 'integer', primaryKey: true, autoGenerate: true }],
      },
    ],
    good: [
      {
        type: 'createCollection',
        name: 'others',
        fields: [{ name: 'id', type: 'bigint', primaryKey: true, autoGenerate: true }],
      },
    ],
  },
  {
    rule: 'SVC403',
    dialects: PG,
    bad: [concurrently(index('orders', 'orders_user_2', 'userId'))],
    good: [concurrently(index('orders', 'orders_code', 'code'))],
  },
  {
    rule: 'SVC403',
    dialects: ['mongodb'],
    bad: [index('users', 'users_name_2', 'name', 'age'), index('users', 'users_name', 'name')],
    good: [
      index('users', 'users_name', 'name', 'age'),
      { ...index('users', 'hashed', 'name'), mongoOptions: { key: { name: 'hashed' } } },
      { ...index('users', 'some', 'name'), mongoOptions: { partialFilterExpression: { age: { $gt: 18 } } } },
    ],
  },
  {
    rule: 'SVC404',
    dialects: PG,
    bad: table({ name: 'at', type: 'datetime' }),
    good: table({ name: 'at', type: 'timestamp' }),
  },
  {
    rule: 'SVC404',
    dialects: PG,
    bad: onPostgresql('CREATE TABLE a (id bigint PRIMARY KEY, at timestamp)'),
    good: onPostgresql('CREATE TABLE a (id bigint PRIMARY KEY, at timestamp with time zone, b timestamptz)'),
  },
  {
    rule: 'SVC405',
    dialects: PG,
    bad: table({ name: 'data', type: 'json', native: 'json' }),
    good: table({ name: 'data', type: 'json' }),
  },
  {
    rule: 'SVC405',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD COLUMN data json'),
    good: onPostgresql('ALTER TABLE users ADD COLUMN data jsonb'),
  },
  {
    rule: 'SVC406',
    dialects: PG,
    bad: table({ name: 'code', type: 'string', length: 3, native: 'character(3)' }),
    good: table({ name: 'code', type: 'string', length: 3 }),
  },
  {
    rule: 'SVC406',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users ADD code char(3)'),
    good: onPostgresql('ALTER TABLE users ADD code varchar(3), ADD b character varying(3)'),
  },
  {
    rule: 'SVC407',
    dialects: PG,
    bad: onPostgresql('CREATE TABLE a (id serial PRIMARY KEY)'),
    good: onPostgresql('CREATE TABLE a (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)'),
  },
  {
    rule: 'SVC408',
    dialects: PG,
    bad: onPostgresql('CREATE TABLE a (id bigint PRIMARY KEY, price money)'),
    good: onPostgresql('CREATE TABLE a (id bigint PRIMARY KEY, price numeric(10,2))'),
  },
  {
    rule: 'SVC409',
    dialects: ALL,
    bad: table({ name: 'unitPrice', type: 'double' }),
    good: table({ name: 'ratio', type: 'double' }),
  },
  {
    rule: 'SVC409',
    dialects: SQL,
    bad: add({ name: 'amount', type: 'float' }),
    good: add({ name: 'amount', type: 'decimal', precision: 10, scale: 2 }),
  },
  {
    rule: 'SVC410',
    dialects: PG,
    bad: [{ type: 'createCollection', name: 'logs', fields: [{ name: 'line', type: 'text' }] }],
    good: table(),
  },
  {
    rule: 'SVC410',
    dialects: PG,
    bad: onPostgresql('CREATE TABLE logs (line text)'),
    good: onPostgresql('CREATE TABLE logs (LIKE old INCLUDING ALL)'),
  },
  {
    rule: 'SVC412',
    dialects: PG,
    bad: onPostgresql('CREATE TABLE a (id bigint PRIMARY KEY, t timetz)'),
    good: onPostgresql('CREATE TABLE a (id bigint PRIMARY KEY, t time)'),
  },
  // Rights and checks
  {
    rule: 'SVC505',
    dialects: PG,
    bad: onPostgresql('GRANT ALL ON ALL TABLES IN SCHEMA public TO app'),
    good: onPostgresql('GRANT SELECT, INSERT ON users TO app'),
  },
  {
    rule: 'SVC505',
    dialects: PG,
    bad: onPostgresql('GRANT SELECT ON users TO PUBLIC'),
    good: onPostgresql('REVOKE ALL ON users FROM PUBLIC'),
  },
  {
    rule: 'SVC506',
    dialects: PG,
    bad: onPostgresql('CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ SELECT 1 $$'),
    good: onPostgresql(
      'CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$ SELECT 1 $$',
    ),
  },
  {
    rule: 'SVC507',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users DISABLE TRIGGER ALL'),
    good: onPostgresql('ALTER TABLE users ENABLE TRIGGER ALL'),
  },
  {
    rule: 'SVC507',
    dialects: PG,
    bad: onPostgresql("SET session_replication_role = 'replica'"),
    good: onPostgresql('SET LOCAL statement_timeout = 0'),
  },
  {
    rule: 'SVC507',
    dialects: PG,
    bad: onPostgresql("ALTER SYSTEM SET work_mem = '1GB'"),
    good: onPostgresql("ALTER ROLE app SET work_mem = '1GB'"),
  },
  {
    rule: 'SVC508',
    dialects: PG,
    bad: onPostgresql('ALTER TABLE users DISABLE ROW LEVEL SECURITY'),
    good: onPostgresql('ALTER TABLE users ENABLE ROW LEVEL SECURITY'),
  },
  {
    rule: 'SVC508',
    dialects: PG,
    bad: onPostgresql('CREATE POLICY p ON users USING (true)'),
    good: onPostgresql("CREATE POLICY p ON users USING (owner = current_setting('app.user'))"),
  },
  // Raw statements
  {
    rule: 'SVC503',
    dialects: PG,
    bad: [raw('VACUUM users', { transaction: false })('postgresql')].map(
      (one) => ({ ...one, makes: undefined }) as unknown as MigrationOperation,
    ),
    good: outsideTransaction('VACUUM users'),
  },
  {
    rule: 'SVC504',
    dialects: PG,
    bad: [{ type: 'raw', dialect: 'postgresql', statement: 'ALTER TABLE users ADD COLUMN x int' }],
    good: onPostgresql('ALTER TABLE users ADD COLUMN x int'),
  },
  // Engines without SQL
  {
    rule: 'SVC601',
    dialects: ['mongodb'],
    bad: [{ type: 'renameField', collection: 'users', from: 'note', to: 'notes' }],
  },
  {
    rule: 'SVC601',
    dialects: ['mongodb'],
    bad: modify('age', { type: 'bigint' }),
    good: add({ name: 'city', type: 'text' }),
  },
  { rule: 'SVC602', dialects: ['mongodb'], bad: modify('age', { required: true }) },
  {
    rule: 'SVC603',
    dialects: ['mongodb'],
    bad: [index('users', 'i', 'age')],
    good: [...table({ name: 'n', type: 'integer' }), index('others', 'i', 'n')],
  },
  {
    rule: 'SVC611',
    dialects: ['dynamodb'],
    bad: [{ type: 'dropField', collection: 'users', field: 'note' }],
    good: add({ name: 'city', type: 'text' }),
  },
  { rule: 'SVC612', dialects: ['dynamodb'], bad: [index('users', 'i', 'email')] },
  { rule: 'SVC613', dialects: ['dynamodb'], bad: [index('users', 'i', 'age')] },
  { rule: 'SVC614', dialects: ['dynamodb'], bad: [index('users', 'i', 'status')] },
  {
    rule: 'SVC621',
    dialects: ['cassandra'],
    bad: [{ type: 'renameField', collection: 'users', from: 'note', to: 'notes', strategy: 'copy' }],
  },
  { rule: 'SVC622', dialects: ['cassandra'], bad: [index('users', 'i', 'token')], good: [index('users', 'i', 'age')] },
  { rule: 'SVC623', dialects: ['cassandra'], bad: [{ type: 'dropField', collection: 'users', field: 'note' }] },
  {
    rule: 'SVC624',
    dialects: ['cassandra'],
    bad: [
      {
        type: 'createCollection',
        name: 'others',
        fields: [
          { name: 'on', type: 'boolean', primaryKey: true },
          { name: 'id', type: 'uuid', primaryKey: true },
        ],
      },
    ],
    good: table(),
  },
];

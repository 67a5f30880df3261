import { type Config, type Database, isSvcError, MigrationEngine, migration, Svc } from '@svc/sdk';

/**
 * One set of migrations, six engines, side by side. Each takes the URL of an empty database (a keyspace, a prefix) from
 * the environment, POSTGRESQL_URL and so on; without one PostgreSQL is the embedded PGlite, and the others are left out.
 */

const ENGINES = ['postgresql', 'mysql', 'mariadb', 'mongodb', 'dynamodb', 'cassandra'] as const;

const migrations = [
  migration('20260101_000000_create_orders')
    .createCollection('orders', [
      { name: 'id', type: 'uuid', primaryKey: true },
      { name: 'customer', type: 'string', length: 80 },
      { name: 'total', type: 'decimal', precision: 10, scale: 2 },
      { name: 'status', type: 'enum', enumValues: ['placed', 'paid', 'sent'] },
      { name: 'lines', type: 'array', items: 'string' },
      { name: 'notes', type: 'json' },
      { name: 'paid', type: 'boolean' },
      { name: 'placedAt', type: 'timestamp' },
    ])
    .build(),
  migration('20260102_000000_find_by_customer')
    .createIndex('orders', 'orders_customer', [{ name: 'customer' }])
    .build(),
  migration('20260103_000000_add_currency').addField('orders', { name: 'currency', type: 'string', length: 3 }).build(),
];

const urls = ENGINES.map((engine) => [engine, process.env[`${engine.toUpperCase()}_URL`]] as const);
const databases: Config['databases'] = Object.fromEntries(
  urls
    .map(([engine, url]) => [engine, url ?? (engine === 'postgresql' ? 'pglite://memory' : undefined)] as const)
    .filter(([, url]) => url !== undefined)
    .map(([engine, url]) => [engine, { dialect: engine, url }]),
);
const svc = new Svc({ config: { product: 'shop', env: 'dev', databases } });

interface Ran {
  readonly engine: string;
  readonly server: string;
  /** Milliseconds, by migration. */
  readonly up: readonly string[];
  /** What the catalog then says of the table. */
  readonly fields: ReadonlyMap<string, string>;
  readonly indexes: string;
  readonly left: string;
}

async function run(engine: string): Promise<Ran> {
  const db: Database = await svc.database.connect({ database: engine });
  const { connection, dialect } = db.getAdapter();
  const migrator = new MigrationEngine(db.getAdapter());
  const up: string[] = [];
  for (const one of migrations) {
    const { durationMs } = await migrator.up(one);
    up.push(`${Math.round(durationMs)} ms`);
  }
  const orders = (await connection.introspect(['orders'])).get('orders');
  for (const one of [...migrations].reverse()) await migrator.down(one);
  const left = [...(await connection.introspect()).keys()];
  return {
    engine,
    server: connection.server ?? dialect.name,
    up,
    fields: new Map([...(orders?.fields.values() ?? [])].map(({ name, type }) => [name, dialect.types[type]])),
    indexes: [...(orders?.indexes.keys() ?? [])].join(', '),
    left: left.length === 0 ? 'nothing' : left.join(', '),
  };
}

const ran: Ran[] = [];
for (const engine of Object.keys(databases)) {
  try {
    ran.push(await run(engine));
  } catch (error) {
    const words = isSvcError(error) ? `${error.message} ${error.why ?? ''}` : String(error);
    console.error(`${engine}: ${words}`);
    process.exitCode = 1;
  }
}
await svc.close();

const rows: string[][] = [
  ['', ...ran.map(({ engine }) => engine)],
  ['server', ...ran.map(({ server }) => server)],
  ...migrations.map(({ name, tag }, index) => [name ?? tag.slice(16), ...ran.map(({ up }) => up[index] ?? '')]),
  ...[...new Set(ran.flatMap(({ fields }) => [...fields.keys()]))].map((field) => [
    field,
    ...ran.map(({ fields }) => fields.get(field) ?? ''),
  ]),
  ['indexes', ...ran.map(({ indexes }) => indexes)],
  ['rolled back, left', ...ran.map(({ left }) => left)],
];
const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
for (const row of rows)
  console.log(
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
const missing = ENGINES.filter((engine) => !(engine in databases));
if (missing.length > 0)
  console.log(`\nleft out, without a URL: ${missing.map((name) => `${name.toUpperCase()}_URL`).join(' ')}`);

import { type Config, type Database, isSvcError, MigrationEngine, migration, Svc } from '@svc/sdk';

/**
 * The same migrations on six engines. Each engine needs the URL of an empty database (or keyspace, or table prefix) in
 * the environment: POSTGRESQL_URL and so on. Without a URL, PostgreSQL runs embedded (PGlite); other engines are skipped.
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

interface EngineResult {
  readonly engine: string;
  readonly server: string;
  /** Duration of each migration. */
  readonly durations: readonly string[];
  /** Field types as read from the catalog. */
  readonly fields: ReadonlyMap<string, string>;
  readonly indexes: string;
  readonly remaining: string;
}

async function run(engine: string): Promise<EngineResult> {
  const db: Database = await svc.database.connect({ database: engine });
  const { connection, dialect } = db.getAdapter();
  const migrator = new MigrationEngine(db.getAdapter());
  const durations: string[] = [];
  for (const one of migrations) {
    const { durationMs } = await migrator.up(one);
    durations.push(`${Math.round(durationMs)} ms`);
  }
  const orders = (await connection.introspect(['orders'])).get('orders');
  for (const one of [...migrations].reverse()) await migrator.down(one);
  const remaining = [...(await connection.introspect()).keys()];
  return {
    engine,
    server: connection.server ?? dialect.name,
    durations,
    fields: new Map([...(orders?.fields.values() ?? [])].map(({ name, type }) => [name, dialect.types[type]])),
    indexes: [...(orders?.indexes.keys() ?? [])].join(', '),
    remaining: remaining.length === 0 ? 'nothing' : remaining.join(', '),
  };
}

const results: EngineResult[] = [];
for (const engine of Object.keys(databases)) {
  try {
    results.push(await run(engine));
  } catch (error) {
    const text = isSvcError(error) ? `${error.message} ${error.why ?? ''}` : String(error);
    console.error(`${engine}: ${text}`);
    process.exitCode = 1;
  }
}
await svc.close();

const rows: string[][] = [
  ['', ...results.map(({ engine }) => engine)],
  ['server', ...results.map(({ server }) => server)],
  ...migrations.map(({ name, tag }, index) => [
    name ?? tag.slice(16),
    ...results.map(({ durations }) => durations[index] ?? ''),
  ]),
  ...[...new Set(results.flatMap(({ fields }) => [...fields.keys()]))].map((field) => [
    field,
    ...results.map(({ fields }) => fields.get(field) ?? ''),
  ]),
  ['indexes', ...results.map(({ indexes }) => indexes)],
  ['rolled back, remaining', ...results.map(({ remaining }) => remaining)],
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
  console.log(`\nskipped, no URL: ${missing.map((name) => `${name.toUpperCase()}_URL`).join(' ')}`);

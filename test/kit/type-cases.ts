// What the public types must reject, and accept.

const MAIN = "{ main: { dialect: 'postgresql', url: 'pglite://memory' } }";
const UNKNOWN_DIALECT = /'"postgressql"' is not assignable to type .*Did you mean '"postgresql"'/;
const UNKNOWN_TYPE = /'"strin"' is not assignable to/;

/** Each has one mistake, on the line that is marked. */
export const REJECTED: Readonly<Record<string, readonly [code: string, message: RegExp]>> = {
  'an unknown setting': [
    `defineConfig({
      databse: ${MAIN}, // here
      product: 'shop',
    });`,
    /'databse' does not exist in type '.*Config'/,
  ],
  'an unknown setting of a database': [
    `defineConfig({
      product: 'shop',
      databases: { main: { dialect: 'postgresql', uri: 'pglite://memory' } }, // here
    });`,
    /'uri' does not exist in type 'DatabaseConfig'/,
  ],
  'a setting of the wrong type': [
    `defineConfig({
      product: 'shop',
      environments: { prd: { protected: 'yes' } }, // here
    });`,
    /Type 'string' is not assignable to type 'boolean'/,
  ],
  'an unknown dialect': [
    `defineConfig({
      product: 'shop',
      databases: { main: { dialect: 'postgressql', url: 'pglite://memory' } }, // here
    });`,
    UNKNOWN_DIALECT,
  ],
  'an unknown setting that a function returns': [
    `defineConfig(({ env }) => ({ // here
      product: env ?? 'shop',
      databse: ${MAIN},
    }));`,
    /databse is not a setting/,
  ],
  'an unknown setting of a database that a function returns': [
    `defineConfig(() => ({ // here
      product: 'shop',
      databases: { main: { dialect: 'postgresql', url: 'pglite://memory', uri: 'pglite://memory' } },
    }));`,
    /uri is not a setting/,
  ],
  'an unknown setting of a proxy that a function returns': [
    `defineConfig(() => ({ // here
      product: 'shop',
      approvals: {
        proxy: {
          header: 'x-forwarded-email',
          groupHeader: 'x-forwarded-groups',
          secret: { header: 'x-proxy-secret', value: process.env.PROXY_SECRET },
          peers: ['10.0.0.7'],
        },
      },
    }));`,
    /groupHeader is not a setting/,
  ],
  'an unknown dialect that a function returns': [
    `defineConfig(() => ({ // here
      product: 'shop',
      databases: { main: { dialect: 'postgressql', url: 'pglite://memory' } },
    }));`,
    UNKNOWN_DIALECT,
  ],
  'an unknown setting that a promise resolves to': [
    `defineConfig(async ({ env }) => ({ // here
      product: env ?? 'shop',
      databse: ${MAIN},
    }));`,
    /databse is not a setting/,
  ],
  'an unknown dialect that a promise resolves to': [
    `defineConfig(async () => ({ // here
      product: 'shop',
      databases: { main: { dialect: 'postgressql', url: 'pglite://memory' } },
    }));`,
    UNKNOWN_DIALECT,
  ],
  'an unknown setting in a function with a body': [
    `defineConfig(async () => { // here
      const product = await Promise.resolve('shop');
      return { product, databse: ${MAIN} };
    });`,
    /databse is not a setting/,
  ],
  'an unknown type in db.schema': [`db.schema.addField('users', 'name', 'strin'); // here`, UNKNOWN_TYPE],
  'an unknown type of a field of a new table': [
    `db.schema.create('users', {
      id: { type: 'integer', primaryKey: true },
      first: 'strin', // here
    });`,
    UNKNOWN_TYPE,
  ],
  'an unknown type in a definition': [
    `db.schema.create('users', {
      id: { type: 'integer', primaryKey: true },
      first: { type: 'strin', length: 40 }, // here
    });`,
    UNKNOWN_TYPE,
  ],
  'an unknown property of a field': [
    `db.schema.create('users', {
      id: { type: 'integer', primarykey: true }, // here
    });`,
    /'primarykey' does not exist in type .*Did you mean to write 'primaryKey'/,
  ],
  'an unknown type to change to': [`db.schema.modifyField('users', 'name', { type: 'strin' }); // here`, UNKNOWN_TYPE],
  'an unknown type in the builder': [
    `migration('20260101_000000_users')
      .addField('users', { name: 'first', type: 'strin' }); // here`,
    UNKNOWN_TYPE,
  ],
  'an unknown type in a migration object': [
    `const made: Migration = { tag: '20260101_000000_users', down: [], up: [
      { type: 'addField', collection: 'users', field: { name: 'first', type: 'strin' } }, // here
    ] };`,
    UNKNOWN_TYPE,
  ],
  'a Date in a migration object, which is JSON': [
    `const made: Migration = { tag: '20260101_000000_users', down: [], up: [
      { type: 'addField', collection: 'users', field: { name: 'at', type: 'timestamp', default: new Date() } }, // here
    ] };`,
    /Type 'Date' is not assignable to type/,
  ],
  'the appliedAt of a row with any status': [
    `for (const entry of await engine.getHistory({ all: true })) entry.appliedAt.toISOString(); // here`,
    /'entry.appliedAt' is possibly 'undefined'/,
  ],
  'an unknown type of a constraint': [
    `db.schema.addConstraint('users', { name: 'k', type: 'foreginKey', columns: ['id'] }); // here`,
    /'"foreginKey"' is not assignable to .*Did you mean '"foreignKey"'/,
  ],
  'a foreign key without references': [
    `db.schema.addConstraint('users', { name: 'k', type: 'foreignKey', columns: ['id'] }); // here`,
    /Property 'references' is missing/,
  ],
  'an unknown property of a constraint': [
    `db.schema.addConstraint('users', { name: 'k', type: 'unique', columns: ['id'], uniqe: true }); // here`,
    /'uniqe' does not exist in type/,
  ],
  'a constraint in a variable whose columns are a number': [
    `const key = { name: 'k', type: 'unique', columns: 5 };
    db.schema.addConstraint('users', key); // here`,
    /'number' is not assignable to type 'readonly string\[\]'|Property 'expression' is missing/,
  ],
  'an unknown type of a key': [
    `db.schema.create('users', { id: 'text' }, { dynamoOptions: { partitionKey: { name: 'id', type: 'X' } } }); // here`,
    /'"X"' is not assignable to/,
  ],
  'an unknown option': [
    `db.schema.create('users', { id: 'text' }, { timestmps: true }); // here`,
    /'timestmps' does not exist in type .*Did you mean to write 'timestamps'/,
  ],
  'an unknown property in a variable': [
    `const fields = { id: { type: 'integer', primarykey: true } };
    db.schema.create('users', fields); // here`,
    /is not assignable to/,
  ],
  'an unknown order': [
    `db.schema.create('users', { id: 'text' }, { cassandraOptions: { clusteringOrder: [{ column: 'id', order: 'DSC' }] } }); // here`,
    /'"DSC"' is not assignable to/,
  ],
  'an unknown operator': [
    `db.update({ table: 'users', data: { age: 1 }, where: { age: { $gtt: 3 } } }); // here`,
    /'\$gtt'[\s\S]*"is not an operator"/,
  ],
  'an unknown operator next to a known one': [
    `db.update({ table: 'users', data: { age: 1 }, where: { age: { $gt: 3, $lessThan: 5 } } }); // here`,
    /'\$lessThan'[\s\S]*"is not an operator"/,
  ],
  'a value of $in that is not an array': [
    `db.update({ table: 'users', data: { age: 1 }, where: { age: { $in: 3 } } }); // here`,
    /'\$in'[\s\S]*Type 'number' is not assignable to type .*readonly (Json|FieldValue)\[\]/,
  ],
  'an unknown error code to compare with': [
    `try {} catch (error) { if (isSvcError(error) && error.code === 'colection_exists') throw error; } // here`,
    /'"colection_exists"' have no overlap/,
  ],
  'an unknown error code to throw': [
    `throw new SvcError('colection_exists', 'It exists.'); // here`,
    /'"colection_exists"' is not assignable to/,
  ],
};

/** The package of a dialect, as it is published. */
export const ABACUS = `import { type Plugin } from '@svc/sdk';
declare const plugin: Plugin;
export default plugin;
declare module '@svc/sdk' {
  interface Dialects { abacus: true }
}
`;

/** What must compile. */
export const ACCEPTED = `
  import type {} from 'svc-dialect-abacus';
  defineConfig({ product: 'shop', databases: { main: { dialect: 'abacus', url: 'abacus://beads', options: { beads: 10 } } } });
  defineConfig({ product: 'shop', env: 'dev', databases: ${MAIN}, brokers: { bus: { type: 'rabbitmq', url: process.env.URL, prefetch: 5 } } });
  defineConfig(({ env = 'dev' }) => ({
    product: 'shop',
    env,
    databases: { main: { dialect: 'postgresql', url: { dev: 'pglite://memory', prd: process.env.URL } }, beads: { dialect: 'abacus', url: process.env.URL } },
    environments: { prd: { protected: env === 'prd' } },
    approvals: {
      store: { database: 'main' },
      channels: { ops: { type: 'slack', token: process.env.TOKEN } },
      webhook: { secrets: { 'https://ops.example': [process.env.SECRET] } },
    },
    plugins: ['svc-dialect-abacus', definePlugin({ name: 'own', apply() {} })],
  }));
  defineConfig(async ({ env }) => (env === 'prd' ? { product: 'shop', databases: ${MAIN} } : { product: 'shop', env: 'dev' }));
  const base: Config = { product: 'shop' };
  defineConfig(async () => {
    if (process.env.CI) return base;
    return { ...base, env: await Promise.resolve('dev') };
  });
  new Svc({ config: defineConfig({ product: 'shop' }) });
  new Svc({ config: defineConfig(() => ({ product: 'shop' })) });
  for (const entry of await engine.getHistory()) entry.appliedAt.toISOString();
  for (const entry of await engine.getHistory({})) entry.appliedAt.toISOString();
  (await engine.getStatus({ definedMigrations: [] })).lastApplied?.appliedAt.toISOString();
  const every: AnyHistoryEntry[] = await engine.getHistory({ all: true });
  every[0]?.appliedAt?.toISOString();
  const applied: HistoryEntry[] = every.filter((entry): entry is HistoryEntry => entry.appliedAt !== undefined);
  applied[0]?.appliedAt.toISOString();

  const now = new Date();
  db.schema.create('events', { id: { type: 'integer', primaryKey: true }, at: { type: 'timestamp', default: now }, days: { type: 'array', items: 'timestamp', default: [now] } });
  db.schema.addField('events', 'since', { type: 'timestamp', required: true, default: now });
  db.schema.modifyField('events', 'since', { default: now });
  db.schema.renameField('events', 'since', 'from', { strategy: 'copy', changes: { type: 'timestamp', default: now } });
  migration('20260101_000000_dates')
    .createCollection('events', [{ name: 'at', type: 'timestamp', default: now }])
    .addField('events', { name: 'since', type: 'timestamp', default: now })
    .modifyField('events', 'since', { default: now }, { was: { default: now } })
    .dropField('events', 'since', { was: { type: 'timestamp', default: now } })
    .dropCollection('events', { was: { fields: [{ name: 'at', type: 'timestamp', default: now }] } });
  db.update({ table: 'events', data: { at: now, days: [now] }, where: { at: { $lt: now, $ne: now, $in: [now, '2026-01-01T00:00:00Z', null] } } });
  db.update({ table: 'events', data: { at: now }, where: { at: now, days: [now] } });
  const data = { at: now, days: [now] };
  const where = { at: { $gte: now } };
  db.update({ table: 'events', data, where });
  const value: FieldValue = now;
  db.update({ table: 'events', data: { at: value }, all: true });

  const key = { name: 'k', type: 'foreignKey', columns: ['user'], references: { table: 'users', columns: ['id'], onDelete: 'CASCADE' } };
  db.schema.addConstraint('orders', key);
  const checked = { name: 'c', type: 'check', expression: 'total > 0' };
  db.schema.addConstraint('orders', checked);
  const fields = { id: { type: 'integer', primaryKey: true }, name: { type: 'String', length: 40 }, mood: { type: 'enum', enumValues: ['good', 'bad'], default: 'good' }, data: 'json', tags: { type: 'array', items: 'uuid' }, at: { type: 'timestamp', default: now } };
  const options = {
    timestamps: true,
    sqlOptions: { ifNotExists: true },
    mongoOptions: { validator: { $jsonSchema: { bsonType: 'object', required: ['id'], properties: { id: { bsonType: 'int' } } } }, validationLevel: 'strict' },
    dynamoOptions: {
      partitionKey: { name: 'id', type: 'S' },
      sortKey: { name: 'at', type: 'N' },
      globalSecondaryIndexes: [{ name: 'by_name', partitionKey: { name: 'name', type: 'S' }, projection: 'ALL' }],
      localSecondaryIndexes: [{ name: 'by_mood', sortKey: { name: 'mood', type: 'S' }, projection: 'KEYS_ONLY' }],
    },
    cassandraOptions: { partitionKey: ['id'], clusteringOrder: [{ column: 'at', order: 'DESC' }], compaction: { class: 'LeveledCompactionStrategy' } },
  };
  db.schema.create('users', fields);
  db.schema.create('users', fields, options);
  db.schema.create('users', { id: { type: 'integer', primaryKey: true } }, options);
  db.schema.create('users', { ...fields, more: 'text' }, { timestamps: true });
  const definition = { type: 'string', length: 40 };
  db.schema.addField('users', 'name', definition);
  db.schema.modifyField('users', 'name', definition);
  const copy = { strategy: 'copy', changes: { type: 'bigint' } };
  db.schema.renameField('users', 'n', 'm', copy);
  const columns = [{ name: 'at', order: 'desc' }];
  const sai = { name: 'by_at', cassandraOptions: { using: 'sai' } };
  db.schema.createIndex('users', columns, sai);
  const list = [{ name: 'id', type: 'integer', primaryKey: true }, { name: 'at', type: 'timestamp', default: 'now' }];
  const named = { name: 'at', type: 'timestamp' };
  const was = { fields: list, options };
  const built = migration('20260101_000000_const')
    .createCollection('users', list, options)
    .addField('users', named)
    .modifyField('users', 'at', definition, { was: definition })
    .createIndex('users', 'by_at', columns, { unique: true })
    .addConstraint('orders', key)
    .dropConstraint('orders', 'k', { was: key })
    .dropField('users', 'at', { was: definition })
    .dropCollection('users', { was })
    .build();
  engine.up(built);
  const object = { tag: '20260101_000000_object', name: 'object', up: [{ type: 'createCollection', name: 'users', fields: list, options }, { type: 'addConstraint', collection: 'orders', constraint: key }], down: [{ type: 'dropCollection', collection: 'users' }] };
  engine.up(object);
  engine.down(object);
  engine.getStatus({ definedMigrations: [object, built] });
  MigrationHelpers.checksum(object);
  const every2 = [object];
  engine.getStatus({ definedMigrations: every2 });

  db.schema.create('users', { id: { type: 'Integer', primaryKey: true }, tags: { type: 'ARRAY', items: 'Uuid' }, data: 'json' });
  db.update({ table: 'users', data: { data: { $any: 1 }, age: 1 }, where: { age: { $gt: 3, $lte: 5 }, name: null, id: { $in: [1, 2] }, data: { a: { b: 1 } }, tags: ['x'], born: { $lt: 'now' } } });
`;

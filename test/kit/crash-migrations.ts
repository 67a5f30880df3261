import { migration } from '../../core/migration/builder.ts';
import type { Migration } from '../../core/migration/migration.ts';

const key = { name: 'id', type: 'integer', primaryKey: true } as const;
const effects = migration('20260101_000000_effects')
  .createCollection('effects', [{ name: 'what', type: 'string', primaryKey: true }])
  .build();
const orders = [key, { name: 'total', type: 'decimal', precision: 10, scale: 2 }] as const;
const last = migration('20260105_000000_last').createCollection('orders', orders).build();
/** Creates what `drops` removes, for parts without the other migrations. */
const beforeDrops = migration('20260106_000000_ground')
  .createCollection('users', [key, { name: 'email', type: 'string' }, { name: 'age', type: 'integer' }])
  .createIndex('users', 'users_age', [{ name: 'age' }])
  .createIndex('users', 'users_age_email', [{ name: 'age' }, { name: 'email' }])
  .createCollection('orders', orders)
  .build();
const drops = migration('20260107_000000_away')
  .dropIndex('users', 'users_age', { was: { columns: [{ name: 'age' }] } })
  .dropIndex('users', 'users_age_email', { was: { columns: [{ name: 'age' }, { name: 'email' }] } })
  .dropField('users', 'age', { was: { type: 'integer' } })
  .renameCollection('orders', 'sales')
  .createCollection('doomed', [key])
  .createCollection('pointing', [key, { name: 'doomed', type: 'integer' }])
  .addConstraint('pointing', {
    name: 'pointing_doomed',
    type: 'foreignKey',
    columns: ['doomed'],
    references: { table: 'doomed', columns: ['id'] },
  })
  .dropCollection('doomed', { cascade: true, was: { fields: [key] } })
  .build();

/** A field has two names, then the new one only. */
const name = { name: 'name', type: 'string', length: 20, required: true, unique: true } as const;
const people = { collection: 'people' } as const;
const twoNames: Migration = {
  tag: '20260110_000000_names',
  name: 'names',
  up: [
    { type: 'createCollection', name: 'people', fields: [key, name] },
    { type: 'addField', ...people, field: { ...name, name: 'full_name' }, mirrors: 'name' },
    { type: 'dropField', ...people, field: 'name', mirrors: 'full_name' },
  ],
  down: [
    { type: 'addField', ...people, field: name, mirrors: 'full_name' },
    { type: 'dropField', ...people, field: 'full_name', mirrors: 'name' },
    { type: 'dropCollection', ...people },
  ],
};

/** The rows of the table `effects` if everything happened once. */
const EFFECTS = ['after the index', 'atomic', 'before the index', 'raw'];

const undo = (what: string) => ({ down: `DELETE FROM effects WHERE what = '${what}'` });

/** Migrations, and the expected rows of the table `effects` if they create it. */
export interface CrashPart {
  readonly migrations: readonly Migration[];
  readonly effects?: readonly string[];
}

export function crashMigrations(dialect: string): CrashPart {
  return {
    migrations: [
      ...stepMigrations(dialect),
      ...(dialect === 'postgresql' ? [enumValues] : [everyStatement(dialect), drops, ...objects(dialect), twoNames]),
    ],
    effects: EFFECTS,
  };
}

/**
 * The same migrations in independent parts: interrupting at every statement takes one run of a whole part for each
 * statement.
 */
export function crashParts(dialect: string): readonly CrashPart[] {
  return [
    { migrations: stepMigrations(dialect), effects: EFFECTS },
    { migrations: [everyStatement(dialect)] },
    { migrations: [beforeDrops, drops] },
    { migrations: [beforeDrops, ...objects(dialect)] },
    { migrations: [twoNames] },
  ];
}

const mood = (...labels: readonly string[]) =>
  `CREATE TYPE mood AS ENUM (${labels.map((one) => `'${one}'`).join(', ')})`;

/** A value is added outside of a transaction, and removed inside one. */
const enumValues = migration('20260108_000000_moods')
  .createObject('type', 'mood', mood('a', 'c'))
  .replaceObject('type', 'mood', mood('a', 'b', 'c', 'd'), { was: mood('a', 'c') })
  .createCollection('moods', [key, { name: 'mood', type: 'text', native: 'mood' }])
  .replaceObject('type', 'mood', mood('b', 'c', 'd'), { was: mood('a', 'b', 'c', 'd') })
  .build();

/** Every kind of object is created, replaced and dropped. The server may have no statement that replaces one. */
function objects(dialect: string): readonly Migration[] {
  const definitions = {
    function: (value: number) => `CREATE FUNCTION made() RETURNS int DETERMINISTIC BEGIN RETURN ${value}; END`,
    procedure: (value: number) => `CREATE PROCEDURE noted() BEGIN SELECT ${value}; END`,
    view: (value: number) => `CREATE VIEW named AS SELECT id, ${value} AS value FROM watched`,
    trigger: (value: number) => `CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW SET NEW.age = ${value}`,
    event: (value: number) => `CREATE EVENT nightly ON SCHEDULE EVERY ${value} DAY DISABLE DO DELETE FROM watched`,
  };
  const names = { function: 'made', procedure: 'noted', view: 'named', trigger: 'watched.watch', event: 'nightly' };
  const kinds = Object.keys(definitions) as (keyof typeof definitions)[];
  const build = migration('20260108_000000_objects').createCollection('watched', [
    key,
    { name: 'age', type: 'integer' },
  ]);
  const partitions = (...limits: readonly string[]) =>
    `ALTER TABLE parted PARTITION BY RANGE (id) (${limits.map((limit) => `PARTITION p${limit} VALUES LESS THAN (${limit})`).join(', ')})`;
  const lists = [
    partitions('10', '20'),
    partitions('10', '20', '30'),
    partitions('20', '30'),
    partitions('20', '25', '30'),
  ];
  build.createCollection('parted', [key]).createObject('partitions', 'parted', lists[0] ?? '');
  for (const [at, list] of lists.slice(1).entries())
    build.replaceObject('partitions', 'parted', list, { was: lists[at] ?? '' });
  for (const kind of kinds) build.createObject(kind, names[kind], definitions[kind](1));
  for (const kind of kinds) build.replaceObject(kind, names[kind], definitions[kind](2), { was: definitions[kind](1) });
  const away = migration(`20260109_000000_${dialect}`);
  // The others stay, so that the crash suite compares their definitions.
  for (const kind of kinds.slice(2)) away.dropObject(kind, names[kind], { was: definitions[kind](2) });
  return [build.build(), away.build()];
}

/** Steps inside and outside of a transaction, in every order. */
function stepMigrations(dialect: string): readonly Migration[] {
  const effect = (what: string) => `INSERT INTO effects VALUES ('${what}')`;
  const concurrently = dialect === 'postgresql' ? { sqlOptions: { concurrently: true } } : {};
  return [
    effects,
    migration('20260102_000000_atomic')
      .createCollection('users', [key, { name: 'email', type: 'string', unique: true }])
      .addField('users', { name: 'age', type: 'integer' })
      .raw(dialect, effect('atomic'), undo('atomic'))
      .build(),
    migration('20260103_000000_steps')
      .raw(dialect, effect('before the index'), undo('before the index'))
      .createIndex('users', 'users_age', [{ name: 'age' }], concurrently)
      .raw(dialect, effect('after the index'), undo('after the index'))
      .createIndex('users', 'users_age_email', [{ name: 'age' }, { name: 'email' }], concurrently)
      .build(),
    migration('20260104_000000_unlocked')
      .raw(
        dialect,
        `INSERT INTO effects SELECT 'raw' FROM (SELECT 1 AS one) AS one WHERE NOT EXISTS (SELECT 1 FROM effects WHERE what = 'raw')`,
        { transaction: false, check: `SELECT 1 FROM effects WHERE what = 'raw'`, ...undo('raw') },
      )
      .build(),
    last,
  ];
}

/** With `drops`, every kind of statement that commits by itself. The catalog must show whether each has happened. */
function everyStatement(dialect: string): Migration {
  return migration('20260106_000000_kinds')
    .createCollection('parents', [key, { name: 'code', type: 'string', length: 20 }])
    .createCollection('children', [
      key,
      { name: 'parent', type: 'integer' },
      { name: 'mood', type: 'enum', enumValues: ['a', 'b'] },
    ])
    .addConstraint('children', {
      name: 'children_parent',
      type: 'foreignKey',
      columns: ['parent'],
      references: { table: 'parents', columns: ['id'], onDelete: 'CASCADE' },
    })
    .addField('children', { name: 'token', type: 'uuid', autoGenerate: true, required: true, unique: true })
    .modifyField('parents', 'code', { length: 40, required: true }, { was: { length: 20, required: false } })
    .modifyField('children', 'mood', { enumValues: ['a', 'b', 'c'] }, { was: { enumValues: ['a', 'b'] } })
    .renameField('parents', 'code', 'label')
    .addConstraint('parents', { name: 'parents_label', type: 'unique', columns: ['label'] })
    .addConstraint('parents', { name: 'parents_check', type: 'check', columns: [], expression: 'id > 0' })
    .dropConstraint('parents', 'parents_check', {
      was: { name: 'parents_check', type: 'check', columns: [], expression: 'id > 0' },
    })
    .raw(dialect, 'CREATE VIEW all_parents AS SELECT id FROM parents', {
      check: `SELECT 1 FROM information_schema.views WHERE table_schema = DATABASE() AND table_name = 'all_parents'`,
      down: 'DROP VIEW all_parents',
    })
    .build();
}

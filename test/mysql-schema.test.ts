import * as assert from 'node:assert/strict';
import type { Connection, ConnectOptions, Dialect } from '../core/dialect.ts';
import { applyAll } from '../core/schema/apply.ts';
import { describeDifferences } from '../core/schema/diff.ts';
import type { FieldType, SchemaModel } from '../core/schema/model.ts';
import type { NamedFieldDefinition, Operation } from '../core/schema/operation.ts';
import type { MysqlStep } from '../plugins/dialects/mysql/compile/step.ts';
import { mysql, mysqlTraits } from '../plugins/dialects/mysql/dialect.ts';
import { adaptStatements } from '../plugins/dialects/mysql/run/adapt-to-version.ts';
import { committingEngines } from './kit/engines.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';
import { runOperations } from './suites/run-operations.ts';

interface EngineFixture {
  readonly connection: Connection;
  run(operations: readonly Operation[], from?: SchemaModel): Promise<SchemaModel>;
  connectAgain(options?: ConnectOptions): Promise<EngineFixture>;
  assertModelMatches(model: SchemaModel): Promise<void>;
  rows(text: string): Promise<Readonly<Record<string, unknown>>[]>;
  /** `SHOW CREATE TABLE`, line by line. */
  showCreate(table: string): Promise<string[]>;
}

const id: NamedFieldDefinition = { name: 'id', type: 'integer', primaryKey: true };
const table = (name: string, ...fields: NamedFieldDefinition[]): Operation => ({
  type: 'createCollection',
  name,
  fields: [id, ...fields],
});

for (const engine of committingEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: schema details`, engine.missing);
    continue;
  }
  const { dialect } = engine;
  const on = (name: string, body: (fixture: EngineFixture) => Promise<void>) =>
    test(`${engine.name}: ${name}`, () =>
      engine.withUrl(async (url) => {
        const open: Connection[] = [];
        const connect = async (options: ConnectOptions = {}): Promise<EngineFixture> => {
          // Every table with a row is too large to be copied without permission.
          const connection = await dialect.connect(url, { copyRows: 0, ...options });
          open.push(connection);
          return {
            connection,
            run: (operations, from) => runOperations(dialect, connection, operations, from),
            connectAgain: connect,
            async assertModelMatches(model) {
              assert.deepEqual(
                describeDifferences(await connection.normalize(model), await connection.introspect()),
                [],
              );
            },
            rows: async (text) => [...(await connection.query(text))],
            async showCreate(name) {
              const [row] = await connection.query(`SHOW CREATE TABLE ${name}`);
              return String(row?.['Create Table'])
                .split('\n')
                .map((line) => line.trim().replace(/,$/, ''));
            },
          };
        };
        try {
          await body(await connect());
        } finally {
          for (const connection of open) await connection.close();
        }
      }));

  on('a change keeps every attribute that it does not mention', async ({ connection, run, rows, showCreate }) => {
    await rows(`CREATE TABLE old (
      id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'the key',
      name varchar(20) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'x''y' COMMENT 'it''s \\\\ here',
      changed datetime(6) NOT NULL DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6),
      hidden int INVISIBLE DEFAULT 3,
      twice int AS (hidden * 2) VIRTUAL,
      kept int AS (hidden * 3) STORED,
      size mediumint UNSIGNED NULL,
      mood enum('a','b') COLLATE utf8mb4_bin DEFAULT 'a',
      data json NULL,
      made varchar(40) DEFAULT (concat('a', 'b')),
      price decimal(10,2) unsigned NOT NULL COMMENT 'p',
      padded decimal(8,2) zerofill DEFAULT NULL,
      code char(5) CHARACTER SET ascii COLLATE ascii_bin DEFAULT 'c',
      raw binary(4) DEFAULT NULL,
      stamped timestamp(6) NULL DEFAULT NULL,
      since datetime DEFAULT NULL
    ) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci`);
    const before = await showCreate('old');
    const model = await connection.introspect();
    const changes: readonly [field: string, changes: object, back: object][] = [
      ['name', { required: false }, { required: true }],
      ['name', { length: 30 }, { length: 20 }],
      ['changed', { required: false }, { required: true }],
      ['hidden', { default: 4 }, { default: 3 }],
      ['size', { required: true }, { required: false }],
      ['mood', { enumValues: ['a', 'b', 'c'] }, { enumValues: ['a', 'b'] }],
      ['data', { required: true }, { required: false }],
      ['made', { required: true }, { required: false }],
      ['price', { precision: 12 }, { precision: 10 }],
      ['padded', { precision: 12, scale: 3 }, { precision: 8, scale: 2 }],
      ['code', { length: 6 }, { length: 5 }],
      ['raw', { length: 6 }, { length: 4 }],
      ['stamped', { default: 'now' }, { default: null }],
      ['since', { default: 'now' }, { default: null }],
    ];
    for (const [field, there, back] of changes) {
      const changed = await run([{ type: 'modifyField', collection: 'old', field, changes: there }], model);
      const after = await showCreate('old');
      const differing = after.filter((line) => !before.includes(line));
      assert.equal(differing.length, 1, `${field}: ${differing}`);
      const unchanged = (lines: readonly string[]) =>
        lines.find((one) => one.startsWith(`\`${field}\` `))?.match(/^.\w+. [a-z]+| unsigned| zerofill| COMMENT '.*'/g);
      assert.deepEqual(unchanged(differing), unchanged(before));
      await run([{ type: 'modifyField', collection: 'old', field, changes: back }], changed);
      assert.deepEqual(await showCreate('old'), before, `${field} and back`);
    }
    await expectError(
      run([{ type: 'modifyField', collection: 'old', field: 'nope', changes: { required: true } }], model),
      'field_unknown',
    );
  });

  on('a change keeps a default, NOT NULL and AUTO_INCREMENT that the model does not know', async ({ connectAgain }) => {
    const { run, rows, showCreate } = await connectAgain({ allowCopy: true });
    const model = await run([
      table(
        'grown',
        { name: 'name', type: 'string', length: 20 },
        { name: 'note', type: 'string' },
        { name: 'size', type: 'smallint' },
        { name: 'code', type: 'string', length: 20, default: 'a' },
        { name: 'price', type: 'decimal', precision: 5, scale: 1, default: 1.25 },
        { name: 'mood', type: 'enum', enumValues: ['1', '2'] },
      ),
    ]);
    await rows(`ALTER TABLE grown MODIFY id int NOT NULL AUTO_INCREMENT, MODIFY name varchar(20) NOT NULL DEFAULT 'keep',
      MODIFY note varchar(255) NOT NULL DEFAULT 'it''s', MODIFY size smallint NOT NULL DEFAULT 3, ALTER code SET DEFAULT 'b', MODIFY mood enum('1','2') DEFAULT '2'`);
    const change = (field: string, changes: object): Operation => ({
      type: 'modifyField',
      collection: 'grown',
      field,
      changes,
    });
    const after = await run(
      [
        change('id', { type: 'bigint' }),
        change('name', { length: 30 }),
        change('note', { type: 'text' }),
        change('size', { type: 'integer' }),
        change('code', { length: 30 }),
        change('price', { scale: 2 }),
        change('mood', { type: 'integer' }),
      ],
      model,
    );
    await rows('INSERT INTO grown () VALUES ()');
    // Words that become numbers are texts in between.
    const unchanged = { id: 1, name: 'keep', note: "it's", size: 3, code: 'b', price: '1.25', mood: null };
    assert.deepEqual(
      (await rows('SELECT * FROM grown')).map((row) => ({ ...row, id: Number(row.id) })),
      [unchanged],
    );
    for (const field of ['name', 'note', 'size']) await assert.rejects(rows(`UPDATE grown SET ${field} = NULL`), field);
    await run([change('name', { required: true, default: 'other' }), change('size', { default: 4 })], after);
    assert.match(
      (await showCreate('grown')).join('\n'),
      /`name`.* NOT NULL DEFAULT 'other'\n(.*\n)*`size`.* DEFAULT '?4'?\n/,
    );
  });

  on(
    'a change keeps characters that the catalog replaces with question marks, or is rejected',
    async ({ connection, connectAgain }) => {
      const { run, rows, showCreate } = await connectAgain({ allowCopy: true });
      await rows(`CREATE TABLE party (
      id int PRIMARY KEY AUTO_INCREMENT,
      smile varchar(20) DEFAULT 'é🎉',
      loud varchar(20) NOT NULL DEFAULT '🎉?',
      plain varchar(20) DEFAULT 'what?',
      why enum('why?', 'so') DEFAULT 'why?',
      mood enum('x', 'y🎉'),
      made varchar(20) AS (concat(plain, '🎉')) STORED,
      asked varchar(20) DEFAULT (concat('a', '?')),
      bytes varchar(20) DEFAULT (_latin1 x'e9')
    ) CHARACTER SET utf8mb4`);
      await rows('INSERT INTO party () VALUES ()');
      const model = await connection.introspect();
      const change = (field: string, changes: object): Operation => ({
        type: 'modifyField',
        collection: 'party',
        field,
        changes,
      });
      const required = { required: true };
      await run(
        [
          change('smile', required),
          change('loud', { length: 30 }),
          change('plain', required),
          change('why', required),
          change('asked', required),
        ],
        model,
      );
      // MySQL's catalog returns emoji in expressions, and MariaDB's other character sets.
      const [exact, lost] = dialect === mysql ? ['made', 'bytes'] : ['bytes', 'made'];
      const before = await showCreate('party');
      for (const field of ['mood', lost])
        await expectError(run([change(field, field === 'mood' ? required : { length: 30 })], model), 'not_supported');
      assert.deepEqual(await showCreate('party'), before);
      await run([change(exact, { length: 30 })], model);
      await rows('INSERT INTO party () VALUES ()');
      const found = await rows('SELECT smile, loud, plain, why, made, asked, bytes FROM party');
      const row = { smile: 'é🎉', loud: '🎉?', plain: 'what?', why: 'why?', made: 'what?🎉', asked: 'a?', bytes: 'é' };
      assert.deepEqual(found, [row, row]);
    },
  );

  on('a string default stays a string, even if it looks like a number', async ({ run, assertModelMatches, rows }) => {
    const texts = { zip: '01234', power: '1e3', hex: '0x41', bits: "b'1'", one: '1' };
    const names = Object.keys(texts);
    const fields = Object.entries(texts).map(
      ([name, value]): NamedFieldDefinition => ({ name, type: 'string', default: value }),
    );
    const code: NamedFieldDefinition = { name: 'code', type: 'enum', enumValues: ['1', '01'], default: '01' };
    const model = await run([
      table('texts', ...fields, code),
      ...[...names, 'code'].map(
        (field): Operation => ({ type: 'modifyField', collection: 'texts', field, changes: { required: true } }),
      ),
    ]);
    await assertModelMatches(model);
    await rows('INSERT INTO texts (id) VALUES (1)');
    assert.deepEqual(await rows(`SELECT ${names.join(', ')}, code FROM texts`), [{ ...texts, code: '01' }]);
  });

  on('a change keeps the spatial reference system of a column', async ({ connection, run, rows }) => {
    const [attribute, condition] =
      dialect === mysql
        ? ['SRID 4326', "SELECT srs_id AS sys FROM information_schema.columns WHERE column_name = 'p'"]
        : [
            'REF_SYSTEM_ID=4326',
            "SELECT srid AS sys FROM information_schema.geometry_columns WHERE g_geometry_column = 'p'",
          ];
    await rows(`CREATE TABLE places (id int PRIMARY KEY, p point ${attribute})`);
    const changes = { required: true } as const;
    await run([{ type: 'modifyField', collection: 'places', field: 'p', changes }], await connection.introspect());
    const schema = dialect === mysql ? 'table_schema' : 'g_table_schema';
    assert.deepEqual(
      (await rows(`${condition} AND ${schema} = DATABASE()`)).map(({ sys }) => Number(sys)),
      [4326],
    );
    assert.equal((await connection.introspect()).get('places')?.fields.get('p')?.required, true);
  });

  on(
    'a table that svc did not create is read, and what a model cannot express is reported',
    async ({ connection, rows }) => {
      await rows(`CREATE TABLE legacy (
      id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, Name varchar(20) COMMENT 'who', flag tinyint(1) DEFAULT 1,
      n tinyint NOT NULL DEFAULT 7, body mediumtext, at datetime DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
      price decimal(10,2) UNSIGNED, parent bigint, hits int UNSIGNED, some mediumint UNSIGNED, tags set('a','b'), double_n int AS (n * 2) VIRTUAL,
      KEY by_body (body(10)), UNIQUE KEY by_name (Name, flag), FULLTEXT KEY words (body),
      CONSTRAINT up FOREIGN KEY (parent) REFERENCES legacy (id) ON DELETE CASCADE, CHECK (price > 1)) COMMENT 'old things'`);
      await rows('CREATE VIEW seen_view AS SELECT id FROM legacy');
      await rows('CREATE TRIGGER watcher BEFORE INSERT ON legacy FOR EACH ROW SET NEW.n = 1');
      const legacy = (await connection.introspect()).get('legacy');
      assert.deepEqual(
        [...(legacy?.fields.values() ?? [])].map(({ name, type }) => [name, type]),
        [
          ['id', 'bigint'],
          ['Name', 'string'],
          ['flag', 'boolean'],
          ['n', 'smallint'],
          ['body', 'text'],
          ['at', 'datetime'],
          ['price', 'decimal'],
          ['parent', 'bigint'],
          ['hits', 'bigint'],
          ['some', 'integer'],
          ['tags', 'text'],
          ['double_n', 'integer'],
        ],
      );
      assert.deepEqual([...(legacy?.indexes.keys() ?? [])], ['by_body', 'by_name', 'words']);
      assert.equal(legacy?.indexes.get('by_body')?.native, '(`body`(10))');
      assert.equal(legacy?.indexes.get('words')?.native, 'FULLTEXT (`body`)');
      assert.deepEqual(
        ['n', 'body', 'price', 'hits', 'tags'].map((name) => legacy?.fields.get(name)?.native),
        ['tinyint', 'mediumtext', 'decimal(10,2) unsigned', 'int unsigned', "set('a','b')"],
      );
      assert.equal(legacy?.fields.get('Name')?.comment, 'who');
      assert.match(legacy?.fields.get('at')?.native ?? '', /^datetime on update current_timestamp$/);
      assert.match(legacy?.fields.get('double_n')?.native ?? '', /^int generated always as \(.*\) virtual$/);
      assert.deepEqual([...(legacy?.constraints.values() ?? [])].map(({ type }) => type).sort(), [
        'check',
        'foreignKey',
      ]);
      assert.deepEqual(await connection.unsupportedObjects(), []);
      const objects = (await connection.objects?.()) ?? [];
      assert.deepEqual(objects.map(({ kind }) => kind).sort(), ['trigger', 'view']);
      assert.equal((await connection.introspect(['LEGACY'])).size, 0, 'the catalog ignores case, and svc does not');
    },
  );

  on(
    'indexes that foreign keys need are created and dropped with them',
    async ({ run, assertModelMatches, rows, showCreate }) => {
      const key = (name: string, collection: string, column: string): Operation => ({
        type: 'addConstraint',
        collection,
        constraint: { name, type: 'foreignKey', columns: [column], references: { table: 'parents', columns: ['id'] } },
      });
      const index: Operation = {
        type: 'createIndex',
        collection: 'children',
        index: 'mine',
        columns: [{ name: 'parent' }, { name: 'n' }],
      };
      const field = (name: string): NamedFieldDefinition => ({ name, type: 'integer' });
      let model = await run([
        table('parents'),
        table('children', field('parent'), field('n')),
        key('one', 'children', 'parent'),
        key('two', 'children', 'parent'),
      ]);
      await assertModelMatches(model);
      model = await run([{ type: 'dropConstraint', collection: 'children', constraint: 'one' }], model);
      await assertModelMatches(model);
      assert.ok(
        (await showCreate('children')).includes('KEY `two` (`parent`)'),
        'the other foreign key keeps the index',
      );
      model = await run([index], model);
      await assertModelMatches(model);
      model = await run([{ type: 'dropIndex', collection: 'children', index: 'mine' }], model);
      await assertModelMatches(model);
      model = await run([{ type: 'dropConstraint', collection: 'children', constraint: 'two' }], model);
      await assertModelMatches(model);
      assert.deepEqual(await rows("SHOW INDEX FROM children WHERE Key_name <> 'PRIMARY'"), []);
      model = await run(
        [key('three', 'children', 'n'), { type: 'dropCollection', collection: 'parents', cascade: true }],
        model,
      );
      await assertModelMatches(model);
    },
  );

  on(
    'a field whose default is computed is filled row by row',
    async ({ run, connectAgain, assertModelMatches, rows }) => {
      let model = await run([table('things')]);
      const digits = Array.from({ length: 10 }, (_, digit) => `SELECT ${digit} AS n`).join(' UNION ALL ');
      const d = (name: string) => `(${digits}) AS ${name}`;
      // More than are filled at once.
      const many = 7_000;
      await rows(
        `INSERT INTO things (id) SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n FROM ${d('a')}, ${d('b')}, ${d('c')}, ${d('d')} WHERE d.n < ${many / 1000}`,
      );
      const add = (field: NamedFieldDefinition): Operation => ({ type: 'addField', collection: 'things', field });
      model = await run(
        [
          add({ name: 'code', type: 'uuid', autoGenerate: true, required: true, unique: true }),
          add({ name: 'chance', type: 'double', default: { $expression: 'rand()' }, required: true }),
        ],
        model,
      );
      await assertModelMatches(model);
      // The check of an array is a copy on MySQL.
      const copying = await connectAgain({ allowCopy: true });
      const list = add({ name: 'list', type: 'array', items: 'integer', default: [1, 2], required: true });
      model = await copying.run([list], model);
      await assertModelMatches(model);
      const found = await rows('SELECT * FROM things');
      assert.equal(new Set(found.map(({ code }) => code)).size, many);
      // Random values repeat now and then.
      assert.ok(new Set(found.map(({ chance }) => chance)).size > many - 10);
      assert.ok(found.every(({ list }) => /^\[1, ?2\]$/.test(String(list))));
      await rows('INSERT INTO things (id) VALUES (-1)');
      await assert.rejects(rows(`INSERT INTO things (id, list) VALUES (-2, '{"a": 1}')`), 'an array is an array');
    },
  );

  on(
    'a default of the date zero is not added, and does not block another change',
    async ({ connectAgain, ...fixture }) => {
      const { connection, rows, showCreate } = fixture;
      await rows(`CREATE TABLE zeros (id int PRIMARY KEY, at datetime(3) NULL ON UPDATE current_timestamp(3), ts timestamp NULL ON UPDATE current_timestamp);
      INSERT INTO zeros VALUES (1, '2001-02-03', '2001-02-03');
      SET @mode = @@sql_mode; SET sql_mode = '';
      CREATE TABLE old (id int PRIMARY KEY, d date NOT NULL DEFAULT '0000-00-00', a int, b int); SET sql_mode = @mode;
      INSERT INTO old (id, d, a) VALUES (1, '2001-02-03', 1)`);
      const changing = await connectAgain({ allowCopy: true });
      const { run } = changing;
      let model = await connection.introspect();
      const change = (collection: string, field: string, changes: object): Operation => ({
        type: 'modifyField',
        collection,
        field,
        changes,
      });
      for (const field of ['at', 'ts']) model = await run([change('zeros', field, { required: true })], model);
      const lines = (await showCreate('zeros')).filter((line) => /ON UPDATE/i.test(line));
      assert.equal(lines.length, 2);
      for (const line of lines) assert.match(line, /NOT NULL ON UPDATE/);
      const field: NamedFieldDefinition = { name: 'x', type: 'integer' };
      model = await run(
        [
          { type: 'addField', collection: 'zeros', field },
          { type: 'addField', collection: 'old', field },
          change('old', 'a', { required: true }),
          change('old', 'b', { type: 'text' }),
          change('old', 'a', { type: 'bigint' }),
          { type: 'createIndex', collection: 'old', index: 'old_a', columns: [{ name: 'a' }] },
        ],
        model,
      );
      assert.match((await showCreate('old')).join(), /`d` date NOT NULL DEFAULT '0000-00-00'/);
      const several = [
        { type: 'addField', collection: 'old', field: { ...field, name: 'y' } } as const,
        change('old', 'a', { type: 'integer' }),
      ];
      const failure = await connection.preflight?.(
        several.flatMap((one) => dialect.compile(one, model)),
        [],
      );
      assert.match(String((failure?.failures[0]?.error as Error | undefined)?.message), /would have to be copied/);
      const [mode] = await changing.rows('SELECT @@sql_mode AS mode');
      assert.match(String(mode?.mode), /NO_ZERO_DATE/);
    },
  );

  on('generated values are random, and earlier defaults are still recognised', async (fixture) => {
    const { connection, run, assertModelMatches, rows } = fixture;
    const created = await run([
      table(
        'things',
        { name: 'code', type: 'uuid', autoGenerate: true, required: true },
        { name: 'word', type: 'string', length: 40, autoGenerate: true },
      ),
    ]);
    await assertModelMatches(created);
    await rows('INSERT INTO things (id) VALUES (1), (2)');
    const later: NamedFieldDefinition = { name: 'later', type: 'uuid', autoGenerate: true, required: true };
    const model = await run([{ type: 'addField', collection: 'things', field: later }], created);
    await assertModelMatches(model);
    const found = await rows('SELECT code, word, later FROM things');
    const values = found.flatMap((row) => Object.values(row).map(String));
    assert.equal(new Set(values).size, 6);
    for (const value of values) assert.match(value, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    await rows(
      'ALTER TABLE things MODIFY code char(36) CHARACTER SET ascii NOT NULL DEFAULT (uuid()), MODIFY word varchar(40) DEFAULT (uuid())',
    );
    await assertModelMatches(model);
    await run([{ type: 'modifyField', collection: 'things', field: 'word', changes: { required: true } }], model);
    assert.match((await fixture.showCreate('things')).join(), /`word` varchar\(40\) NOT NULL DEFAULT \(?uuid\(\)/);
    assert.equal((await connection.introspect()).get('things')?.fields.get('word')?.autoGenerate, true);
  });

  test(`${engine.name}: a server without random bytes gets uuid()`, () => {
    const statements = (dialect as Dialect<MysqlStep>).compile(
      table('t', { name: 'code', type: 'uuid', autoGenerate: true }),
      new Map(),
    );
    const [old] = adaptStatements({ traits: { ...mysqlTraits, randomBytesSince: [10, 10, 0] }, version: [10, 6, 1] })(
      statements,
    );
    assert.match(JSON.stringify(old?.run), /DEFAULT \(uuid\(\)\)/);
    assert.match(old?.text ?? '', /DEFAULT \(uuid\(\)\)/);
    assert.doesNotMatch(JSON.stringify(old), /random/);
    assert.equal(adaptStatements({ traits: mysqlTraits, version: [8, 0, 17] })(statements), statements);
  });

  on('filling a field does not change ON UPDATE columns', async ({ connection, run, rows }) => {
    await rows(
      'CREATE TABLE logs (id int PRIMARY KEY, u timestamp NOT NULL DEFAULT current_timestamp ON UPDATE current_timestamp, w datetime(3) NULL ON UPDATE current_timestamp(3))',
    );
    await rows("INSERT INTO logs VALUES (1, '2001-02-03 04:05:06', '2001-02-03 04:05:06'), (2, '2002-02-03', NULL)");
    const unchanged = await rows('SELECT id, u, w FROM logs ORDER BY id');
    const field: NamedFieldDefinition = { name: 'code', type: 'uuid', autoGenerate: true };
    await run([{ type: 'addField', collection: 'logs', field }], await connection.introspect());
    assert.deepEqual(await rows('SELECT id, u, w FROM logs WHERE code IS NOT NULL ORDER BY id'), unchanged);
  });

  on('rows for which a computed default is NULL stay NULL, however many they are', async (fixture) => {
    const { connection, run, rows } = fixture;
    await rows('CREATE TABLE heaps (n int, d json)');
    const digits = '(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4)';
    const many = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `${digits} AS ${name}`).join(', ');
    await rows(`INSERT INTO heaps SELECT a.n, IF(a.n = 4, '{"x": 7}', '{}') FROM ${many}`);
    const field: NamedFieldDefinition = {
      name: 'x',
      type: 'string',
      default: { $expression: "json_extract(d, '$.x')" },
    };
    await run([{ type: 'addField', collection: 'heaps', field }], await connection.introspect());
    const found = await rows('SELECT n, COUNT(*) AS all_of_them, COUNT(x) AS filled FROM heaps GROUP BY n ORDER BY n');
    assert.deepEqual(
      found.map((row) => [row.n, row.all_of_them, row.filled].map(Number)),
      [0, 1, 2, 3, 4].map((n) => [n, 3125, n === 4 ? 3125 : 0]),
    );
  });

  on('a model is normalised on a server that requires primary keys', async ({ run, rows, assertModelMatches }) => {
    if (dialect === mysql) await rows('SET SESSION sql_require_primary_key = 1');
    await assertModelMatches(
      await run([
        table('keyed', { name: 'made', type: 'string', default: { $expression: "concat('a', 'b')" } }),
        {
          type: 'addConstraint',
          collection: 'keyed',
          constraint: { name: 'c', type: 'check', columns: ['made'], expression: "`made` <> ''" },
        },
      ]),
    );
  });

  on('a field in an index created by hand is not removed from it silently', async ({ run, rows, showCreate }) => {
    const model = await run([table('pairs', { name: 'a', type: 'integer' }, { name: 'b', type: 'integer' })]);
    await rows('CREATE UNIQUE INDEX by_hand ON pairs (a, b)');
    const before = await showCreate('pairs');
    const drop: Operation = { type: 'dropField', collection: 'pairs', field: 'b' };
    assert.match((await expectError(run([drop], model), 'field_in_use')).why ?? '', /by_hand/);
    assert.deepEqual(await showCreate('pairs'), before);
    await rows('DROP INDEX by_hand ON pairs');
    await run([drop], model);
  });

  on('a timestamp becomes required only where every row has a value', async ({ connectAgain }) => {
    const { run, assertModelMatches, rows } = await connectAgain({ allowCopy: true });
    const optional: NamedFieldDefinition[] = [
      { name: 'at', type: 'timestamp' },
      { name: 'wall', type: 'datetime' },
      { name: 'written', type: 'string' },
    ];
    const model = await run([table('moments', ...optional)]);
    await rows("INSERT INTO moments VALUES (1, '2001-02-03', '2001-02-03', '2001-02-03'), (2, NULL, NULL, NULL)");
    const before = await rows('SELECT * FROM moments ORDER BY id');
    const required = optional.map(
      ({ name }): Operation => ({
        type: 'modifyField',
        collection: 'moments',
        field: name,
        changes: { type: 'timestamp', required: true, default: 'now' },
      }),
    );
    for (const operation of required) {
      const refusal = await expectError(run([operation], model), 'data_violates');
      assert.match(refusal.why ?? '', /1138|"moments" has 1 such row/);
      await assertModelMatches(model);
    }
    assert.deepEqual(await rows('SELECT * FROM moments ORDER BY id'), before);
    await rows('UPDATE moments SET at = NOW(3), wall = NOW(3), written = NOW(3) WHERE id = 2');
    await assertModelMatches(await run(required, model));
    const created: NamedFieldDefinition = {
      name: 'made',
      type: 'timestamp',
      required: true,
      default: { $expression: 'cast(d as datetime)' },
    };
    const bare = await run([table('bare', { name: 'd', type: 'datetime' })]);
    await rows('INSERT INTO bare (id) VALUES (1)');
    await expectError(run([{ type: 'addField', collection: 'bare', field: created }], bare), 'data_violates');
    assert.deepEqual(await rows('SELECT made FROM bare'), [{ made: null }]);
  });

  on('a field that becomes auto-increment keeps its values, including 0', async ({ connectAgain }) => {
    const { run, assertModelMatches, rows } = await connectAgain({ allowCopy: true });
    const model = await run([table('numbers')]);
    const [mode] = await rows('SELECT @@sql_mode AS mode');
    await rows('INSERT INTO numbers VALUES (0), (1), (7)');
    const changes = { autoGenerate: true };
    await assertModelMatches(await run([{ type: 'modifyField', collection: 'numbers', field: 'id', changes }], model));
    assert.deepEqual(await rows('SELECT id FROM numbers ORDER BY id'), [{ id: 0 }, { id: 1 }, { id: 7 }]);
    assert.deepEqual(await rows('SELECT @@sql_mode AS mode'), [mode]);
  });

  on('a field that becomes auto-increment needs a value in every row', async ({ connectAgain }) => {
    const { run, assertModelMatches, rows } = await connectAgain({ allowCopy: true });
    const field = (type: 'integer' | 'string'): NamedFieldDefinition => ({ name: 'n', type, unique: true });
    let model = await run([table('integers', field('integer')), table('strings', field('string'))]);
    for (const collection of ['integers', 'strings']) {
      await rows(`INSERT INTO ${collection} VALUES (1, NULL), (2, NULL), (3, '5')`);
      const changes = { type: 'integer', autoGenerate: true, unique: true } as const;
      const change: Operation = { type: 'modifyField', collection, field: 'n', changes };
      const refusal = await expectError(run([change], model), 'data_violates');
      assert.match(refusal.why ?? '', /without a value of n, .* 2 such rows/);
      await assertModelMatches(model);
      await rows(`DELETE FROM ${collection} WHERE id < 3`);
      model = await run([change], model);
      await assertModelMatches(model);
    }
  });

  on('values that fit to the last byte and digit are accepted', async ({ run, assertModelMatches }) => {
    const fields = Array.from(
      { length: 64 },
      (_, index): NamedFieldDefinition => ({ name: `s${index}`, type: 'string' }),
    );
    const model = await run([
      table('t', ...fields),
      table('long', { name: 's', type: 'string', length: 16_381 }),
      table(
        'mixed',
        { name: 's', type: 'string', length: 16_376 },
        { name: 't', type: 'time' },
        { name: 'at', type: 'datetime' },
        { name: 'ts', type: 'timestamp' },
      ),
      table(
        'defaults',
        { name: 'at', type: 'timestamp', default: '2038-01-19T03:14:07.999Z' },
        { name: 'd', type: 'decimal', precision: 4, scale: 2, default: 99.994 },
        { name: 'n', type: 'decimal', precision: 18, scale: 2, default: '-9999999999999999.99' },
        { name: 'f', type: 'float', default: 3.4e38 },
      ),
      ...Array.from(
        { length: 63 },
        (_, index): Operation => ({
          type: 'createIndex',
          collection: 'defaults',
          index: `i${index}`,
          columns: [{ name: 'd' }],
        }),
      ),
    ]);
    await assertModelMatches(model);
  });

  on('enum values are converted by word, or the change is rejected', async ({ connectAgain }) => {
    const { run, assertModelMatches, rows } = await connectAgain({ allowCopy: true });
    let model = await run([table('moods', { name: 'm', type: 'string', default: 'b' })]);
    await rows("INSERT INTO moods VALUES (1, 'a'), (2, '1')");
    const change = (changes: object): Operation => ({ type: 'modifyField', collection: 'moods', field: 'm', changes });
    await expectError(run([change({ type: 'enum', enumValues: ['a', 'b'] })], model), 'data_violates');
    await assertModelMatches(model);
    model = await run([change({ type: 'enum', enumValues: ['7', 'a', '1', 'b'] })], model);
    await assertModelMatches(model);
    assert.deepEqual(
      (await rows('SELECT m FROM moods ORDER BY id')).map(({ m }) => m),
      ['a', '1'],
    );
    await rows("UPDATE moods SET m = '7'");
    model = await run([change({ type: 'integer', default: 9 })], model);
    await assertModelMatches(model);
    assert.deepEqual(
      (await rows('SELECT m FROM moods')).map(({ m }) => Number(m)),
      [7, 7],
      'by its word, not by its position',
    );
    await run([change({ type: 'enum', enumValues: ['1', '7'], default: null })], model);
    assert.deepEqual(
      (await rows('SELECT m FROM moods')).map(({ m }) => m),
      ['7', '7'],
    );
  });

  on('an enum value that rows have is neither removed nor spelled differently', async ({ connectAgain }) => {
    const { run, assertModelMatches, rows, showCreate } = await connectAgain({ allowCopy: true });
    const words: NamedFieldDefinition = { name: 'e', type: 'enum', enumValues: ['1', '2', '3', 'draft'] };
    const model = await run([table('listed', words, { name: 's', type: 'string' })]);
    await rows(
      "INSERT INTO listed VALUES (1, '1', 'DRAFT'), (2, '2', 'dräft'), (3, '3', 'draft '), (4, 'draft', 'draft')",
    );
    const [before, texts] = [await showCreate('listed'), () => rows('SELECT e, s FROM listed ORDER BY id')];
    const textsBefore = await texts();
    for (const [field, enumValues, why] of [
      ['e', ['3', '1', 'draft'], /Values of e are not one of 3, 1, draft\. "listed" has 1 such row/],
      ['e', ['1', '2', '3', 'Draft'], / 1 such row/],
      ['s', ['draft'], /Values of s are not one of draft\. "listed" has 3 such rows/],
    ] as const) {
      const change: Operation = {
        type: 'modifyField',
        collection: 'listed',
        field,
        changes: { type: 'enum', enumValues: [...enumValues] },
      };
      assert.match((await expectError(run([change], model), 'data_violates')).why ?? '', why);
      assert.deepEqual([await showCreate('listed'), await texts()], [before, textsBefore]);
    }
    await rows("DELETE FROM listed WHERE e = '2'");
    const enumValues = ['3', 'draft', '1'];
    await assertModelMatches(
      await run([{ type: 'modifyField', collection: 'listed', field: 'e', changes: { enumValues } }], model),
    );
    assert.deepEqual(
      (await texts()).map(({ e }) => e),
      ['1', '3', 'draft'],
    );
  });

  on(
    'values that the new type does not have are rejected with the number of rows, and nothing has changed',
    async (fixture) => {
      const { run, assertModelMatches, rows, showCreate } = await fixture.connectAgain({ allowCopy: true });
      const words = ['1', 'one', '70000', '2026-02-30', '[1]', '07', '7'];
      const model = await run([
        table('crossed', { name: 'n', type: 'integer' }, { name: 'e', type: 'enum', enumValues: words }),
      ]);
      await rows(
        "INSERT INTO crossed VALUES (1, 1, '1'), (2, 2, NULL), (3, 3, 'one'), (4, 3, 'one'), (5, NULL, '70000'), (6, 1, '2026-02-30')",
      );
      const before = await showCreate('crossed');
      const refuse = async (field: string, changes: object, why: RegExp) => {
        const operation: Operation = { type: 'modifyField', collection: 'crossed', field, changes };
        assert.match((await expectError(run([operation], model), 'data_violates')).why ?? '', why);
        assert.deepEqual(await showCreate('crossed'), before, JSON.stringify(changes));
      };
      await refuse('n', { type: 'enum', enumValues: ['1', '2'] }, /not one of 1, 2.* 2 such rows/);
      await refuse('e', { type: 'smallint' }, / 4 such rows/);
      await refuse('e', { type: 'date' }, / 5 such rows/);
      await refuse('e', { type: 'array', items: 'integer' }, / 5 such rows/);
      await rows("UPDATE crossed SET e = '7' WHERE id > 1");
      await rows("UPDATE crossed SET e = '07' WHERE id = 1");
      await refuse('e', { type: 'integer', unique: true }, / such rows?/);
      await rows('UPDATE crossed SET e = NULL WHERE id = 1');
      // Other changes of the field are rejected together with the first statement.
      await assert.rejects(
        run(
          [{ type: 'modifyField', collection: 'crossed', field: 'e', changes: { type: 'integer', required: true } }],
          model,
        ),
      );
      assert.deepEqual(await showCreate('crossed'), before);
      const changed = await run(
        [{ type: 'modifyField', collection: 'crossed', field: 'e', changes: { type: 'integer' } }],
        model,
      );
      await assertModelMatches(changed);
      assert.deepEqual(await rows("SHOW TABLES LIKE '%svc_enum_values%'"), []);
    },
  );

  on('a string that is not a value of the new type is not converted', async (fixture) => {
    const { run, assertModelMatches, rows, showCreate } = await fixture.connectAgain({ allowCopy: true });
    let model = await run([
      table('words', { name: 's', type: 'string' }, { name: 'e', type: 'enum', enumValues: ['1.6', '2'] }),
    ]);
    const id = '0190a8f0-0000-7000-8000-00000000000F';
    const cases = [
      ['integer', ['1.6', '15e-1'], ['7', null]],
      ['boolean', ['5', 'true'], ['0', '1', null]],
      ['uuid', ['garbage', `{${id}}`, id.replaceAll('-', '')], [id, null]],
    ] as const;
    for (const [type, bad, good] of cases) {
      await rows("DELETE FROM words; INSERT INTO words (id, e) VALUES (1, '2'), (2, NULL)");
      const before = await showCreate('words');
      const change: Operation = { type: 'modifyField', collection: 'words', field: 's', changes: { type } };
      for (const value of bad) {
        await rows(`UPDATE words SET s = '${value}' WHERE id = 1`);
        assert.match(
          (await expectError(run([change], model), 'data_violates')).why ?? '',
          /Values of s are .* 1 such row/,
        );
        assert.deepEqual(await showCreate('words'), before, value);
      }
      for (const value of good) {
        await rows(`UPDATE words SET s = ${value === null ? 'NULL' : `'${value}'`} WHERE id = 1`);
        const changed = await run([change], model);
        await assertModelMatches(changed);
        await run([{ ...change, changes: { type: 'string' } }], changed);
      }
    }
    await rows("UPDATE words SET e = '1.6' WHERE id = 1");
    const before = await showCreate('words');
    const crossed: Operation = { type: 'modifyField', collection: 'words', field: 'e', changes: { type: 'bigint' } };
    assert.match((await expectError(run([crossed], model), 'data_violates')).why ?? '', /not whole numbers/);
    assert.deepEqual(await showCreate('words'), before);
    await rows("UPDATE words SET e = '2' WHERE id = 1");
    model = await run([crossed], model);
    await assertModelMatches(model);
    assert.equal(Number((await rows('SELECT e FROM words WHERE id = 1'))[0]?.e), 2);
  });

  on('elements of a list have the new type, or the change is rejected', async ({ connectAgain }) => {
    const { run, assertModelMatches, rows, showCreate } = await connectAgain({ allowCopy: true });
    const model = await run([
      table('lists', { name: 'a', type: 'array', items: 'string' }, { name: 'j', type: 'json' }),
    ]);
    await rows(`INSERT INTO lists VALUES (1, '["1", "2"]', '{"a": 1}'), (2, '[]', '["x"]'), (3, NULL, NULL)`);
    const before = await showCreate('lists');
    const change = (field: string, items: FieldType): Operation => ({
      type: 'modifyField',
      collection: 'lists',
      field,
      changes: { type: 'array', items },
    });
    for (const [operation, why] of [
      [change('a', 'integer'), /Values of a are not lists of integer. .* 1 such row/],
      [change('j', 'double'), / 2 such rows/],
      [change('j', 'text'), / 1 such row/],
    ] as const) {
      assert.match((await expectError(run([operation], model), 'data_violates')).why ?? '', why);
      assert.deepEqual(await showCreate('lists'), before);
    }
    await assertModelMatches(await run([change('a', 'text')], model));
    await rows(`UPDATE lists SET a = '[1, null, 2]', j = '["x", 1]' WHERE id = 1`);
    await assertModelMatches(await run([change('a', 'bigint'), change('j', 'json')], model));
    await rows("INSERT INTO lists VALUES (4, '[3]', '[{}]')");
    await assert.rejects(rows("INSERT INTO lists VALUES (5, '{}', '[]')"), 'an array is an array');
  });

  // MariaDB does not create one.
  if (dialect === mysql) {
    on('the primary key that the server adds to a table without one is not in the model', async (fixture) => {
      const { run, assertModelMatches, rows, connection } = fixture;
      await rows('SET SESSION sql_generate_invisible_primary_key = ON');
      const n: NamedFieldDefinition = { name: 'n', type: 'integer' };
      const model = await run([{ type: 'createCollection', name: 'keyless', fields: [n] }]);
      await rows('INSERT INTO keyless VALUES (7)');
      assert.deepEqual(await rows('SELECT my_row_id, n FROM keyless'), [{ my_row_id: 1, n: 7 }]);
      await assertModelMatches(model);
      const at = { collection: 'keyless' };
      const changed = await run(
        [
          { type: 'addField', ...at, field: { name: 's', type: 'string' } },
          { type: 'modifyField', ...at, field: 'n', changes: { required: true } },
          { type: 'createIndex', ...at, index: 'keyless_s', columns: [{ name: 's' }] },
        ],
        model,
      );
      await assertModelMatches(changed);
      assert.deepEqual(await connection.unsupportedObjects(), []);
    });
  }

  on('a database-wide name of another table is rejected', async ({ run, assertModelMatches }) => {
    const positive = (collection: string, name: string): Operation => ({
      type: 'addConstraint',
      collection,
      constraint: { name, type: 'check', expression: 'n > 0', columns: ['n'] },
    });
    const n: NamedFieldDefinition = { name: 'n', type: 'integer' };
    const model = await run([table('one', n), table('two', n), positive('one', 'pos')]);
    const second = positive('two', 'POS');
    if (dialect !== mysql) return assertModelMatches(await run([second], model));
    assert.throws(
      () => dialect.compile(second, model),
      (error: Error & { code?: string; why?: string }) =>
        error.code === 'constraint_exists' && /"one" has it/.test(error.why ?? ''),
    );
    await assertModelMatches(await run([positive('two', 'pos_two')], model));
  });

  on('constraints that the server renames with their table are found by their old name', async (fixture) => {
    const { connection, rows, assertModelMatches } = fixture;
    const { run } = await fixture.connectAgain({ allowCopy: true });
    await rows(`CREATE TABLE parents (id int PRIMARY KEY);
      CREATE TABLE child (id int PRIMARY KEY, a int, b int, CHECK (b > 0), FOREIGN KEY (a) REFERENCES parents (id),
        CONSTRAINT child_ibfk_9 FOREIGN KEY (b) REFERENCES parents (id), CONSTRAINT child_chk_7 CHECK (id > 0))`);
    const renamed = await run(
      [{ type: 'renameCollection', collection: 'child', to: 'kid' }],
      await connection.introspect(),
    );
    assert.ok((await connection.introspect()).get('kid')?.constraints.has('kid_ibfk_9'));
    await assertModelMatches(renamed);
    const grown = await run([{ type: 'renameCollection', collection: 'kid', to: 'grown' }], renamed);
    await assertModelMatches(grown);
    const back = await run([{ type: 'renameCollection', collection: 'grown', to: 'kid' }], grown);
    let left: SchemaModel = back;
    for (const constraint of ['child_ibfk_1', 'child_ibfk_9', 'child_chk_7']) {
      const drop: Operation = { type: 'dropConstraint', collection: 'kid', constraint };
      const check = dialect.compile(drop, left).at(-1)?.check;
      if (check !== undefined) assert.deepEqual(await rows(check), [], 'it has not taken effect');
      left = await run([drop], left);
      if (check !== undefined) assert.equal((await rows(check)).length, 1, 'it has taken effect');
      await assertModelMatches(left);
    }
    assert.doesNotMatch((await fixture.showCreate('kid')).join(), /_ibfk_/, 'nor are their indexes left');
    const listed = await run([table('listed', { name: 'list', type: 'array' })], left);
    const long = (collection: string): Operation => ({ type: 'renameCollection', collection, to: 'k'.repeat(59) });
    assert.throws(() => dialect.compile(long('kid'), back), { code: 'name_invalid' });
    if (dialect === mysql) assert.throws(() => dialect.compile(long('listed'), listed), { code: 'name_invalid' });
    else await assertModelMatches(await run([long('listed')], listed));
  });

  on('supplementary characters are read exactly', async ({ connection, run, rows, assertModelMatches }) => {
    const smile = "s <> '😀?' or s <> '🎈\ue000'";
    const model = await run([
      table(
        'beyond',
        { name: 's', type: 'string', length: 40, default: { $expression: "concat('🎈', '?')" } },
        { name: 'bytes', type: 'binary', length: 4, default: { $expression: '0x00ff' } },
        { name: 'more', type: 'blob', default: { $expression: '0x00fe' } },
      ),
      {
        type: 'addConstraint',
        collection: 'beyond',
        constraint: { name: 'smiles', type: 'check', expression: smile, columns: ['s'] },
      },
    ]);
    await assertModelMatches(model);
    const { bytes, more } = Object.fromEntries((await connection.introspect()).get('beyond')?.fields ?? []);
    assert.deepEqual([bytes?.default, more?.default], ['AP8=', 'AP4=']);
    const other = applyAll(
      [{ type: 'modifyField', collection: 'beyond', field: 'bytes', changes: { default: { $expression: '0x00fe' } } }],
      model,
    );
    assert.equal(describeDifferences(await connection.normalize(other), await connection.introspect()).length, 1);
    await rows(
      "CREATE TABLE adopted (id int PRIMARY KEY, s varchar(9) DEFAULT '😀' CHECK (s <> 'no 🎈'), CONSTRAINT no_smile CHECK (s <> '🎈?'))",
    );
    const adopted = (await connection.introspect(['adopted'])).get('adopted');
    assert.equal(adopted?.fields.get('s')?.default, '😀');
    const check = adopted?.constraints.get('no_smile');
    assert.match(check?.type === 'check' ? check.expression : '', /🎈\?/);
    await run(
      [{ type: 'modifyField', collection: 'adopted', field: 's', changes: { required: true } }],
      new Map(adopted && [['adopted', adopted]]),
    );
    await assert.rejects(rows("INSERT INTO adopted (id, s) VALUES (1, 'no 🎈')"));
    await rows('INSERT INTO adopted (id) VALUES (1)');
    assert.deepEqual(await rows('SELECT s FROM adopted'), [{ s: '😀' }]);
  });

  on('defaults that a catalog would lose are kept', async ({ run, assertModelMatches, rows }) => {
    const model = await run([
      table(
        'defaults',
        { name: 'smile', type: 'string', default: '😀 it\'s "\\n"' },
        { name: 'long', type: 'text', default: "😀\n'" },
        { name: 'data', type: 'json', default: { '😀': ['\\', "'"] } },
        { name: 'zero', type: 'decimal', precision: 5, scale: 2, default: '9.995' },
      ),
      { type: 'modifyField', collection: 'defaults', field: 'smile', changes: { required: true } },
    ]);
    await assertModelMatches(model);
    await rows('INSERT INTO defaults (id) VALUES (1)');
    const [row] = await rows('SELECT * FROM defaults');
    assert.equal(row?.smile, '😀 it\'s "\\n"');
    assert.equal(row?.long, "😀\n'");
    assert.deepEqual(JSON.parse(String(row?.data)), { '😀': ['\\', "'"] });
  });

  on('non-ASCII strings in expressions are read as they were written, and survive a change', async (fixture) => {
    const { connection, connectAgain, assertModelMatches, rows } = fixture;
    const { run } = await connectAgain({ allowCopy: true });
    const model = await run([
      table(
        'größen',
        { name: 'long', type: 'text', default: 'é日' },
        { name: 'data', type: 'json', default: { é: ['日'] } },
        { name: 'made', type: 'string', default: { $expression: "concat('é', '日')" } },
        { name: 'größen', type: 'array' },
        { name: 'größe', type: 'integer' },
      ),
      {
        type: 'addConstraint',
        collection: 'größen',
        constraint: {
          name: 'größer',
          type: 'check',
          columns: ['größe', 'long'],
          expression: "`größe` > 0 AND `long` <> 'à\\\\'",
        },
      },
    ]);
    await assertModelMatches(model);
    const required = ['long', 'data', 'made'].map(
      (field): Operation => ({ type: 'modifyField', collection: 'größen', field, changes: { required: true } }),
    );
    const changed = await run(
      [...required, { type: 'renameField', collection: 'größen', from: 'größen', to: 'maße' }],
      model,
    );
    await assertModelMatches(changed);
    await rows('INSERT INTO `größen` (id) VALUES (1)');
    const [row] = await rows('SELECT `long`, data, made FROM `größen`');
    assert.deepEqual(
      { ...row, data: JSON.parse(String(row?.data)) },
      { long: 'é日', data: { é: ['日'] }, made: 'é日' },
    );

    await rows(`CREATE TABLE hand (id int PRIMARY KEY, name varchar(20),
      kept varchar(20) AS (concat(name, 'é日')) STORED, seen varchar(20) AS (concat(name, 'é日')) VIRTUAL)`);
    await rows("INSERT INTO hand (id, name) VALUES (1, 'n')");
    for (const field of ['kept', 'seen']) {
      await run(
        [{ type: 'modifyField', collection: 'hand', field, changes: { length: 30 } }],
        await connection.introspect(),
      );
    }
    assert.deepEqual(await rows('SELECT kept, seen FROM hand'), [{ kept: 'né日', seen: 'né日' }]);
  });

  on('a database with another character set gets tables that store every character', async ({ connectAgain, rows }) => {
    const [name] = await rows('SELECT DATABASE() AS name');
    await rows(`ALTER DATABASE ${name?.name} CHARACTER SET latin1`);
    const { run, assertModelMatches, rows: query } = await connectAgain();
    const model = await run([
      table(
        't',
        { name: 's', type: 'string' },
        { name: 'e', type: 'enum', enumValues: ['日', '本'] },
        { name: 'd', type: 'string', default: 'é日' },
      ),
      table('u'),
      {
        type: 'addConstraint',
        collection: 't',
        constraint: { name: 'c', type: 'check', columns: ['s'], expression: "`s` <> '日'" },
      },
    ]);
    const added = await run([{ type: 'addField', collection: 'u', field: { name: 's', type: 'text' } }], model);
    await query("INSERT INTO t VALUES (1, '😀', '本', '')");
    await query("INSERT INTO u VALUES (1, '😀')");
    assert.deepEqual(await query('SELECT t.s FROM t JOIN u ON t.s = u.s'), [{ s: '😀' }]);
    await assertModelMatches(added);
  });

  on(
    'a table copy is rejected with the number of rows, and nothing has changed',
    async ({ run, connectAgain, assertModelMatches, rows }) => {
      const model = await run([
        table('parents'),
        table('big', { name: 'p', type: 'integer' }, { name: 's', type: 'string', length: 20 }),
      ]);
      const foreign: Operation = {
        type: 'addConstraint',
        collection: 'big',
        constraint: {
          name: 'f',
          type: 'foreignKey',
          columns: ['p'],
          references: { table: 'parents', columns: ['id'] },
        },
      };
      const type: Operation = { type: 'modifyField', collection: 'big', field: 's', changes: { type: 'text' } };
      await rows('INSERT INTO big (id) VALUES (1), (2), (3)');
      for (const operation of [foreign, type]) {
        const refusal = await expectError(run([operation], model), 'copy_required');
        assert.match(refusal.message, /"big".* its 3 rows/);
        assert.match(refusal.next.join(), /options: \{ allowCopy: true \}/);
        await assertModelMatches(model);
      }
      const copying = await connectAgain({ allowCopy: true });
      await assertModelMatches(await copying.run([foreign, type], model));
    },
  );

  on('growing, adding, dropping, renaming and indexes need no copy', async ({ run, assertModelMatches, rows }) => {
    let model = await run([
      table('big', { name: 's', type: 'string', length: 20, default: 'x' }, { name: 'n', type: 'integer' }),
    ]);
    await rows('INSERT INTO big (id) VALUES (1), (2), (3)');
    const at = { collection: 'big' } as const;
    model = await run(
      [
        { type: 'modifyField', ...at, field: 's', changes: { length: 30 } },
        { type: 'modifyField', ...at, field: 's', changes: { required: true } },
        { type: 'modifyField', ...at, field: 's', changes: { default: 'y' } },
        {
          type: 'addField',
          ...at,
          field: { name: 'e', type: 'enum', enumValues: ['a'], default: 'a', required: true },
        },
        { type: 'modifyField', ...at, field: 'e', changes: { enumValues: ['a', 'b'] } },
        { type: 'addField', ...at, field: { name: 'u', type: 'integer', unique: true } },
        { type: 'addField', ...at, field: { name: 'text', type: 'text', default: 'x', required: true } },
        { type: 'addField', ...at, field: { name: 'day', type: 'date', default: 'now', required: true } },
        { type: 'addField', ...at, field: { name: 'at', type: 'timestamp', default: 'now', required: true } },
        { type: 'modifyField', ...at, field: 'u', changes: { unique: false } },
        { type: 'createIndex', ...at, index: 'i', columns: [{ name: 's' }] },
        { type: 'renameField', ...at, from: 's', to: 'S' },
        { type: 'dropIndex', ...at, index: 'i' },
        { type: 'dropField', ...at, field: 'n' },
        { type: 'renameCollection', ...at, to: 'Big' },
      ],
      model,
    );
    await assertModelMatches(model);
  });

  on('what the server would change silently is rejected at compile time', async ({ connection }) => {
    const refuse = (operation: Operation, code: string, why: RegExp, model: SchemaModel = new Map()) =>
      assert.throws(
        () => dialect.compile(operation, model),
        (error: Error & { code?: string; why?: string }) => error.code === code && why.test(error.why ?? ''),
        JSON.stringify(operation),
      );
    refuse(
      table('t', { name: 'n', type: 'integer', autoGenerate: true }),
      'not_supported',
      /first field of a key|one auto-increment field/,
    );
    refuse(table('t', { name: 'e', type: 'enum', enumValues: ['a', 'A'] }), 'field_invalid', /equal to the server/);
    refuse(table('t', { name: 'e', type: 'enum', enumValues: ['a '] }), 'field_invalid', /space/);
    refuse(table('t', { name: 'd', type: 'decimal' }), 'field_invalid', /precision/);
    refuse(table('t', { name: 's', type: 'string', length: 20_000 }), 'field_invalid', /16383/);
    refuse(table('t', { name: 's', type: 'string', length: 800, unique: true }), 'not_supported', /3072/);
    refuse(table('t', { name: 's', type: 'text', unique: true }), 'not_supported', /outside the row/);
    refuse(table('x'.repeat(65)), 'name_invalid', /64/);
    refuse(table('x '), 'name_invalid', /space/);
    refuse(table('😀'), 'name_invalid', /Multilingual/);
    refuse(
      { type: 'createCollection', name: 't', fields: [id], options: { sqlOptions: { unlogged: true } } },
      'not_supported',
      /logged/,
    );
    const strings = (count: number) =>
      Array.from({ length: count }, (_, index): NamedFieldDefinition => ({ name: `s${index}`, type: 'string' }));
    refuse(table('t', ...strings(65)), 'not_supported', /65535/);
    const wide: NamedFieldDefinition[] = [
      ...strings(3),
      { name: 'u', type: 'uuid' },
      { name: 'd', type: 'decimal', precision: 20, scale: 2 },
    ];
    const keyed = (columns: string[], index = 'i'): Operation => ({
      type: 'createIndex',
      collection: 't',
      index,
      columns: columns.map((name) => ({ name })),
    });
    const there = applyAll([table('t', ...wide), keyed(['s0'])]);
    refuse(keyed(['s0', 's1', 's2', 'u'], 'wide'), 'not_supported', /3096 bytes.* 3072/, there);
    assert.ok(dialect.compile(keyed(['s0', 's1', 's2', 'd'], 'wide'), there));
    refuse(keyed(['u'], 'I'), 'index_exists', /^$/, there);
    refuse(keyed(['u'], 'Primary'), 'index_exists', /^$/, there);
    refuse(table('t', { name: 'name', type: 'text' }, { name: 'Name', type: 'text' }), 'field_exists', /^$/);
    refuse({ type: 'addField', collection: 't', field: { name: 'U', type: 'text' } }, 'field_exists', /^$/, there);
    refuse({ type: 'renameField', collection: 't', from: 'u', to: 'ID' }, 'field_exists', /^$/, there);
    assert.ok(dialect.compile({ type: 'renameField', collection: 't', from: 'u', to: 'U' }, there));
    const indexed = applyAll([
      table('t', ...wide),
      ...Array.from({ length: 63 }, (_, index) => keyed(['u'], `i${index}`)),
    ]);
    refuse(keyed(['u'], 'i63'), 'not_supported', /64/, indexed);
    for (const [field, why] of [
      [{ type: 'timestamp', default: '2050-01-01T00:00:00Z' }, /2038/],
      [{ type: 'timestamp', default: '1970-01-01T00:00:00Z' }, /1970/],
      [{ type: 'decimal', precision: 4, scale: 2, default: 99.999 }, /2 digits/],
      [{ type: 'float', default: 1e300 }, /float/],
    ] as const)
      refuse(table('t', { name: 'f', ...field }), 'field_invalid', why);
    const model = await connection.introspect();
    const [two] = dialect.compile(
      { type: 'raw', dialect: dialect.name, statement: 'UPDATE a SET b = 1; DELETE FROM c' },
      model,
    );
    assert.equal(two?.transactional, true, 'data can be in a transaction');
    for (const [statement, why] of [
      ['BEGIN; UPDATE a SET b = 1; COMMIT', /BEGIN/],
      ['UPDATE a SET b = 1; COMMIT', /COMMIT/],
      ['START TRANSACTION', /START TRANSACTION/],
      ['SET autocommit = 0', /AUTOCOMMIT/],
      ['SET @x = 1, SESSION autocommit = 0', /AUTOCOMMIT/],
      ['SELECT 1; SET @@autocommit = 0', /AUTOCOMMIT/],
      ['UPDATE a SET b = 1; CREATE TABLE c (d int)', /commits those before it/],
      ['CREATE TABLE event (d int); UPDATE a SET b = 1; COMMIT', /COMMIT/],
      ['CREATE TABLE IF NOT EXISTS `c` (event int); UPDATE a SET b = 1', /CREATE TABLE commits/],
      ['CREATE DEFINER = `root`@`%` VIEW package AS SELECT 1; UPDATE a SET b = 1', /CREATE DEFINER commits/],
      ['CREATE INDEX trigger ON a (b); UPDATE a SET b = 1', /CREATE INDEX commits/],
      ['CREATE PROCEDURE p() SELECT 1; COMMIT', /COMMIT/],
      ['CREATE PROCEDURE p() BEGIN UPDATE a SET b = 1; END; UPDATE a SET b = 1', /CREATE PROCEDURE commits/],
      ['CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW IF 1 THEN SET @a = 1; END IF; COMMIT', /COMMIT/],
      ['CREATE TABLE c (d int); CREATE TABLE e (d int)', /commits/],
      ['UPDATE a SET b = 1; SET STATEMENT max_statement_time = 1 FOR CREATE TABLE c (d int)', /SET STATEMENT commits/],
      ["UPDATE a SET b = 'open", /unclosed/],
      ['/*!50000 COMMIT */', /comment that the server executes/],
      ['DELIMITER //', /client program/],
    ] as const)
      refuse({ type: 'raw', dialect: dialect.name, statement }, 'migration_invalid', why);
    for (const statement of [
      "CREATE PROCEDURE p() BEGIN UPDATE a SET b = ';'; COMMIT; END",
      'CREATE DEFINER=root@localhost FUNCTION f() RETURNS int BEGIN IF 1 THEN SET @a = CASE 1 WHEN 1 THEN 2 END; END IF; RETURN 1; END;',
      'CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW IF 1 THEN IF 1 THEN SET @a = IF(1, 2, 3); END IF; SET @a = 1; END IF',
      'CREATE PROCEDURE p() one: LOOP CASE 1 WHEN 1 THEN COMMIT; END CASE; LEAVE one; END LOOP one',
      'CREATE OR REPLACE PACKAGE BODY p AS PROCEDURE q() BEGIN COMMIT; END; PROCEDURE r() BEGIN COMMIT; END; END',
      'SET STATEMENT lock_wait_timeout = 1 FOR ALTER TABLE a ADD COLUMN c int',
      'SET DEFAULT ROLE NONE',
    ])
      assert.equal(dialect.compile({ type: 'raw', dialect: dialect.name, statement }, model)[0]?.transactional, false);
  });
}

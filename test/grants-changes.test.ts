import * as assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { OBJECTS } from './kit/object-files.ts';
import { assertExit, id, json, project } from './kit/project.ts';
import { onPostgresql } from './kit/roles.ts';

/** Privileges as objects, next to other changes of what they are on. */

const GRANTS = { options: { grants: true } };
const ORDERS = `${OBJECTS}/grants/orders.sql`;
const COLUMNS = `select attname::text as field, attacl::text as acl from pg_attribute where attrelid = 'orders'::regclass and attacl is not null order by 1`;
const TABLE = `select relacl::text as acl from pg_class where oid = 'orders'::regclass`;

for (const [what, fields, flags, privileges, expected] of [
  ['dropped', { id, total: 'integer' }, ['--drop', 'orders.note'], 'SELECT (total)', ['total']],
  [
    'renamed',
    { id, total: 'integer', remark: 'text' },
    ['--rename', 'orders.note:remark'],
    'UPDATE (remark)',
    ['remark'],
  ],
  [
    'renamed without its grant',
    { id, total: 'integer', remark: 'text' },
    ['--rename', 'orders.note:remark'],
    'SELECT (total)',
    ['total'],
  ],
] as const)
  onPostgresql(`a field is ${what} together with an edit of its grants, both ways`, async ({ url, reader, query }) => {
    const { svc, schema, write } = project({ main: url }, {}, {}, GRANTS);
    schema({ orders: { id, total: 'integer', note: 'text' } });
    write(
      ORDERS,
      `GRANT SELECT ON orders TO ${reader};\nGRANT UPDATE (note), INSERT (total, note) ON orders TO ${reader};`,
    );
    assertExit(await svc('db', 'schema', 'generate'));
    assertExit(await svc('db', 'migrate'));
    const all = async () => [await query(TABLE), await query(COLUMNS)];
    const before = await all();

    schema({ orders: fields });
    write(ORDERS, `GRANT SELECT ON orders TO ${reader};\nGRANT ${privileges} ON orders TO ${reader};`);
    assertExit(await svc('db', 'schema', 'generate', ...flags));
    assertExit(await svc('db', 'migrate', '--allow-destructive'));
    assert.deepEqual(
      (await query(COLUMNS)).map(({ field }) => field),
      expected,
    );
    assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    assertExit(await svc('db', 'migrate', 'rollback'));
    assert.deepEqual(await all(), before);
    assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
  });

onPostgresql(
  'the sequence of a field is renamed with its table and its field, and keeps its grants',
  async ({ url, reader, query }) => {
    const { root, svc, schema, write, read } = project({ main: url }, {}, {}, GRANTS);
    const fields = (key: string) => ({ [key]: { ...id, native: 'serial' }, n: { type: 'bigint', autoGenerate: true } });
    const statement = (name: string) => `GRANT SELECT, USAGE ON SEQUENCE ${name} TO ${reader};`;
    const rename = async (from: string, to: string, tables: object, flag: string) => {
      schema(tables);
      rmSync(join(root, OBJECTS, `grants/${from}.sql`));
      write(`${OBJECTS}/grants/${to}.sql`, statement(to));
      assertExit(await svc('db', 'schema', 'generate', '--rename', flag));
      assertExit(await svc('db', 'migrate'));
      assert.match(assertExit(await svc('db', 'schema', 'check', '--strict')).stdout, /^OK/);
    };
    const sequences = async () =>
      (
        await query("select relname::text as name from pg_class where relkind = 'S' and relname !~ '^_svc_' order by 1")
      ).map(({ name }) => name);
    schema({ orders: fields('id') });
    write(`${OBJECTS}/grants/orders_id_seq.sql`, statement('orders_id_seq'));
    assertExit(await svc('db', 'schema', 'generate'));
    assertExit(await svc('db', 'migrate'));
    await rename('orders_id_seq', 'sales_id_seq', { sales: fields('id') }, 'orders:sales');
    assert.deepEqual(await sequences(), ['sales_id_seq', 'sales_n_seq']);
    await rename('sales_id_seq', 'sales_key_seq', { sales: fields('key') }, 'sales.id:key');
    assert.deepEqual(await sequences(), ['sales_key_seq', 'sales_n_seq']);
    const { warnings } = json(assertExit(await svc('db', 'schema', 'pull', '--json')));
    assert.deepEqual(warnings, []);
    assert.match(read(`${OBJECTS}/grants/sales_key_seq.sql`), /GRANT SELECT, USAGE ON SEQUENCE/);
    await query('insert into sales default values');
    assertExit(await svc('db', 'migrate', 'rollback', '--count', '2'));
    assert.deepEqual(await sequences(), ['orders_id_seq', 'orders_n_seq']);
    await query('insert into orders default values');
  },
);

onPostgresql(
  'without the option, files of grants stay, and nothing is compared with them or revoked',
  async ({ url, reader, query }) => {
    const { svc, schema, write, read, files } = project({ main: url }, {}, {}, GRANTS);
    schema({ orders: { id, note: 'text' } });
    write(ORDERS, `GRANT SELECT ON orders TO ${reader};`);
    assertExit(await svc('db', 'schema', 'generate'));
    assertExit(await svc('db', 'migrate'));
    const before = await query(TABLE);
    const text = read(ORDERS);
    const config = JSON.parse(read('svc.config.json'));
    const { options: _, ...main } = config.databases.main;
    write('svc.config.json', { ...config, databases: { main, other: { ...main, ...GRANTS } } });

    const { migrations, objects } = json(assertExit(await svc('db', 'schema', 'pull', '--db', 'main', '--json')));
    assert.deepEqual([migrations, objects, read(ORDERS), files().length], [[], ['grants/orders'], text, 1]);
    assert.match(assertExit(await svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
    assert.match(assertExit(await svc('db', 'schema', 'check', '--db', 'main', '--strict')).stdout, /^OK/);
    for (const [from, to] of [
      ['files', 'main'],
      ['main', 'files'],
      ['other', 'main'],
      ['main', 'other'],
    ] as const) {
      const same = assertExit(
        await svc('db', 'schema', 'diff', '--db', 'main', '--from', from, '--to', to, '--exit-code'),
      );
      assert.deepEqual([same.stdout, /not compared: .*kind grants/.test(same.stderr)], ['', true]);
    }
    write(`${OBJECTS}/grants/type mood.sql`, `GRANT USAGE ON TYPE mood TO ${reader};`);
    assertExit(await svc('db', 'schema', 'pull', '--db', 'main'));
    assert.match(read(`${OBJECTS}/grants/type mood.sql`), /GRANT USAGE/);
    assert.deepEqual(await query(TABLE), before);
  },
);

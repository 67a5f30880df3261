import * as assert from 'node:assert/strict';
import { OBJECTS } from './kit/object-files.ts';
import { assertExit, id, project } from './kit/project.ts';
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

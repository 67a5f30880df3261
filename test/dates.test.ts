import * as assert from 'node:assert/strict';
import { Database } from '../core/database/database.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { MigrationHelpers, migration } from '../core/migration/builder.ts';
import { MigrationEngine } from '../core/migration/migration-engine.ts';
import { sixEngines } from './kit/six-engines.ts';
import { connectTarget } from './kit/target.ts';
import { test } from './kit/test.ts';
import { expectError } from './suites/expect-error.ts';

/** A Date as a default, and in `data` and `where` of db.update: on each engine, its moment is stored. */

const first = new Date('2026-01-31T23:59:59.123Z');
const second = new Date('2026-02-01T00:00:00.456Z');
const between = new Date('2026-02-01T00:00:00.000Z');

const INSERT: Readonly<Record<string, string>> = {
  mongodb: JSON.stringify({ insert: 'events', documents: [{ id: 1 }, { id: 2 }] }),
  dynamodb: JSON.stringify({
    BatchWriteItem: { RequestItems: { events: ['1', '2'].map((N) => ({ PutRequest: { Item: { id: { N } } } })) } },
  }),
  cassandra:
    'BEGIN BATCH INSERT INTO events JSON \'{ "id": 1 }\'; INSERT INTO events JSON \'{ "id": 2 }\'; APPLY BATCH',
};

for (const { name, dialect, missing, createDatabase } of sixEngines) {
  if (missing) {
    test.skip(`${name}: a Date is a value of a timestamp`, missing);
    continue;
  }
  test(`${name}: a Date is a value of a timestamp, as a default, in data and in where`, async () => {
    const { url, drop } = await createDatabase();
    const target = await connectTarget(dialect, url);
    try {
      const db = new Database(target);
      const update = (data: object, where: object) =>
        db.update({ table: 'events', data: { ...data }, where: { ...where } });
      const matched = async (where: object) => (await update({ n: 1 }, where)).matched;
      await db.schema.create('events', { id: { type: 'integer', primaryKey: true }, n: 'integer' });
      await target.connection.query(INSERT[name] ?? 'INSERT INTO events (id) VALUES (1), (2)');

      const { migration: added } = await db.schema.addField('events', 'at', { type: 'timestamp', default: first });
      assert.deepEqual(added.up, [
        {
          type: 'addField',
          collection: 'events',
          field: { name: 'at', type: 'timestamp', default: '2026-01-31T23:59:59.123Z' },
        },
      ]);
      assert.equal(await matched({ at: first }), 2, 'rows have the default');
      assert.equal((await update({ at: second }, { id: 2 })).modified, 1);
      assert.equal(await matched({ at: first }), 1);
      assert.equal(await matched({ at: '2026-02-01T00:00:00.456Z' }), 1, 'the same moment as text');
      assert.equal(await matched({ at: { $lt: between } }), 1);
      assert.equal(await matched({ at: { $gte: first, $lte: second } }), 2);
      assert.equal(await matched({ at: { $ne: second } }), 1);
      assert.equal(await matched({ at: { $in: [second, between] } }), 1);

      await db.schema.addField('events', 'day', 'date');
      await db.schema.addField('events', 'note', 'json');
      for (const [field, value] of Object.entries({ day: first, note: { at: first }, n: first, at: new Date('no') })) {
        const error = await expectError(update({ [field]: value }, { id: 1 }), 'update_invalid');
        assert.match(`${error.message} ${error.why}`, /only a timestamp accepts a Date|is an invalid Date/, field);
        await expectError(update({ n: 2 }, { [field]: { $ne: value } }), 'update_invalid');
      }
      assert.equal(await matched({ n: 1 }), 2, 'nothing was changed');

      const [entry] = await new MigrationEngine(target).getHistory();
      assert.ok(entry && Math.abs(entry.appliedAt.getTime() - Date.now()) < 3_600_000);
    } finally {
      await target.connection.close();
      await drop();
    }
  });
}

test('a migration stores a Date as the text of its moment', () => {
  const tag = '20260101_000000_dates';
  const text = first.toISOString();
  const at = { name: 'at', type: 'timestamp', default: first };
  const days = { name: 'days', type: 'array', items: 'timestamp', default: [first, second] };
  const { up, down } = migration(tag)
    .createCollection('events', [at, days])
    .addField('events', { ...at, name: 'since' })
    .modifyField('events', 'since', { default: second }, { was: { default: first } })
    .renameField('events', 'since', 'later', {
      strategy: 'copy',
      changes: { type: 'timestamp', default: second },
      was: { default: first },
    })
    .dropField('events', 'later', { was: { type: 'timestamp', default: first } })
    .dropCollection('events', { was: { fields: [at] } })
    .build();
  const stored = { ...at, default: text };
  assert.deepEqual(up.slice(0, 3), [
    {
      type: 'createCollection',
      name: 'events',
      fields: [stored, { ...days, default: [text, second.toISOString()] }],
    },
    { type: 'addField', collection: 'events', field: { ...stored, name: 'since' } },
    { type: 'modifyField', collection: 'events', field: 'since', changes: { default: second.toISOString() } },
  ]);
  assert.deepEqual(
    down.map((operation) => JSON.stringify(operation).includes(text)),
    [true, true, true, true, false, false],
  );
  assert.match(MigrationHelpers.checksum({ tag, name: 'dates', up, down }), /^[\da-f]{64}$/);
});

test('a Date that is not the default of a timestamp is rejected', () => {
  const built = (field: { readonly name: string; readonly type: string; readonly default: unknown }) =>
    migration('20260101_000000_dates')
      .addField('events', field as never)
      .build();
  const cases: readonly (readonly [string, unknown, string?])[] = [
    ['datetime', first],
    ['date', first],
    ['time', first],
    ['json', { at: first }],
    ['text', first],
    ['array', [first]],
    ['timestamp', new Date('no')],
    ['timestamp', { at: first }],
    ['nonsense', first],
  ];
  const code: ErrorCode = 'migration_invalid';
  for (const [type, value] of cases) {
    assert.throws(() => built({ name: 'at', type, default: value }), { code }, `${type} ${value}`);
  }
  assert.throws(() => built({ name: 'at', type: 'datetime', default: first }), {
    why: /up\[0\] field\.default is a Date; only a field of type timestamp accepts a Date/,
  });
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  assert.throws(() => built({ name: 'at', type: 'json', default: cyclic }), { code });
});

import * as assert from 'node:assert/strict';
import { migration } from '../core/migration/builder.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import type { DatabaseObject } from '../core/schema/database-object.ts';
import { committingEngines, engines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';

// Objects written as a person does are, once created, the same as in the catalog: a check after them finds no difference.

const twice = (type: string, body: string): DatabaseObject => ({
  kind: 'function',
  name: `twice(${type})`,
  definition: `CREATE FUNCTION twice(${type}) RETURNS ${type} LANGUAGE sql IMMUTABLE AS '${body}'`,
});
const view: DatabaseObject = {
  kind: 'materialized_view',
  name: 'totals',
  definition: `create materialized view totals as select n, count(*) as many from big group by n;
    create unique index totals_n on totals (n); CREATE INDEX totals_many ON totals (many DESC) where n > 0;
    COMMENT ON MATERIALIZED VIEW totals IS 'a; b'`,
};
const domain = (check: string) => `CREATE DOMAIN "zip code" AS text CHECK (VALUE ~ '${check}')`;

for (const engine of engines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: objects are compared in the spelling of the server`, engine.missing);
    continue;
  }
  test(`${engine.name}: objects are compared in the spelling of the server`, () =>
    engine.withDatabase(async (target) => {
      const { connection } = target;
      const assertSame = async (objects: readonly DatabaseObject[]) => {
        const normal = await connection.normalizeObjects?.(objects);
        const found = await connection.objects?.();
        const byName = (all: readonly DatabaseObject[] = []) =>
          new Map(all.map(({ kind, name, definition }) => [`${kind}/${name}`, definition]));
        assert.deepEqual(byName(normal), byName(found));
      };
      const zip = (check: string): DatabaseObject => ({ kind: 'domain', name: 'zip code', definition: domain(check) });
      const overloads = [twice('integer', 'SELECT $1 * 2'), twice('text', 'SELECT $1 || $1')];
      const first = migration('20260101_000000_first')
        .createCollection('big', [
          { name: 'id', type: 'integer', primaryKey: true },
          { name: 'n', type: 'integer' },
        ])
        .createObject('domain', 'zip code', domain('^[0-9]+$'));
      for (const { kind, name, definition } of [...overloads, view]) first.createObject(kind, name, definition);
      const second = migration('20260102_000000_second')
        .replaceObject('domain', 'zip code', domain('^[0-9]{5}$'), { was: domain('^[0-9]+$') })
        .build();
      const files = [first.build(), second].map(definedInCode);
      await migrate(target, files.slice(0, 1));
      await assertSame([zip('^[0-9]+$'), ...overloads, view]);
      await migrate(target, files);
      await assertSame([zip('^[0-9]{5}$'), ...overloads, view]);
      await rollback(target, { count: 1 });
      await assertSame([zip('^[0-9]+$'), ...overloads, view]);
    }));
}

for (const engine of committingEngines) {
  const what = `${engine.name}: an event is the same without what the server adds to it`;
  if (engine.missing !== undefined) {
    test.skip(what, engine.missing);
    continue;
  }
  test(what, () =>
    engine.withDatabase(async (target) => {
      const { connection } = target;
      const event = (schedule: string, body = "DELETE FROM big WHERE n = ' do '") =>
        `CREATE EVENT nightly ON SCHEDULE ${schedule} DO ${body}`;
      const written = event('EVERY 1 DAY');
      const first = migration('20260101_000000_first')
        .createCollection('big', [
          { name: 'id', type: 'integer', primaryKey: true },
          { name: 'n', type: 'string' },
        ])
        .createObject('event', 'nightly', written)
        .build();
      await migrate(target, [definedInCode(first)]);
      const [stored] = (await connection.objects?.()) ?? [];
      const normalized = async (definition: string) =>
        (await connection.normalizeObjects?.([{ kind: 'event', name: 'nightly', definition }]))?.[0]?.definition;
      assert.equal(await normalized(written), stored?.definition);
      for (const other of [
        event('EVERY 2 DAY'),
        event("EVERY 1 DAY STARTS '2001-01-01 00:00:00'"),
        event('EVERY 1 DAY ON COMPLETION PRESERVE'),
        event('EVERY 1 DAY DISABLE'),
        event('EVERY 1 DAY', 'DELETE FROM big'),
      ])
        assert.equal(await normalized(other), other);
    }),
  );
}

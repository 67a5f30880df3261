import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { Json } from '../../core/json.ts';
import { anyDefinition } from '../../core/records.ts';
import { applyAll } from '../../core/schema/apply.ts';
import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import type { DeclareDialectCase } from './dialect-case.ts';
import type { DialectUnderTest, StoredRow } from './dialect-under-test.ts';
import { thing, things } from './record-store-suite.ts';
import { runOperations } from './run-operations.ts';
import { isStoredAs } from './stored-value.ts';
import { ID, isLegal, type SupportedOperations } from './supported-operations.ts';

/** A process east of UTC and one west of it, each with a table. The offsets are not whole hours. */
const ZONES = { moments_east: 'Asia/Kathmandu', moments_west: 'America/St_Johns' } as const;
/** No clock in St. John's had this time: on that day, it went from 2:00 to 3:00. */
const WALL_CLOCK = '2026-03-08 02:30:00.123';
const MOMENT = new Date(`${WALL_CLOCK.replace(' ', 'T')}Z`);
const HALF_AN_HOUR_MS = 1_800_000;

/** The fields of a moment, with its text in an update or a default. */
const TEXTS = { timestamp: MOMENT.toISOString(), datetime: WALL_CLOCK } as const;
const TYPES = ['timestamp', 'datetime'] as const;
const VALUES = TYPES.map((type) => ({ field: type, value: TEXTS[type] }));
const FOUND = 'found';

/** Moments that processes in several time zones exchange. */
export function timeZoneCase(
  on: DeclareDialectCase,
  { dialect, options = {}, notEnforced }: DialectUnderTest,
  { create, isUnsupported, supportedField }: SupportedOperations,
): void {
  on(
    'a moment does not depend on the time zone of the process',
    'Processes in any time zone read the same moments: of records, of their deadlines, of values and defaults of rows, and of `now`.',
    async ({ url, connect, start, engine }) => {
      for (const [table, zone] of Object.entries(ZONES)) {
        const key = `written in ${zone}`;
        const here = await connect();
        const fields: NamedFieldDefinition[] = TYPES.map((type) => ({ name: type, type }));
        const created = create(table, [ID, ...fields, { name: FOUND, type: 'integer' }]);
        const before = await here.withLock(async (epoch) => {
          await here.ensureTables([anyDefinition(things)]);
          return runOperations(dialect, here, [created], new Map(), epoch);
        });
        const collection = before.get(table)!;
        await engine.insert(here, table, [{ id: 1 }, { id: 2 }], collection.fields);
        const first = [{ field: 'id', operator: 'eq', value: 1 }] as const;
        await here.update({ table, collection, key: `one of ${table}`, where: first, set: VALUES });
        await here.records(things).insert({ ...thing(table, 1), expires: MOMENT });
        const now = (await here.now()).getTime();
        await here.close();

        const there = start({ TZ: zone });
        const added = TYPES.map(
          (type): Operation => ({
            type: 'addField',
            collection: table,
            field: supportedField({ name: `new_${type}`, type, default: TEXTS[type] }),
          }),
        ).filter((operation) => isLegal(operation, before) && !isUnsupported(operation, before));
        const found = await there.run('exchangeMoments', url, options, {
          ...{ collection, added, values: VALUES, mark: { field: FOUND, value: 1 } },
          ...{ read: table, write: { ...thing(key, 1), expires: MOMENT } },
        });
        assert.deepEqual(found.expires, MOMENT, `the date of a record, read in ${zone}`);
        const lag = Math.abs(found.now.getTime() - now);
        assert.ok(lag < HALF_AN_HOUR_MS, `now() in ${zone} is ${found.now.toISOString()}`);
        const deadlines = [now + HALF_AN_HOUR_MS, now - HALF_AN_HOUR_MS];
        const { outcomes } = await there.run('replaceAround', url, options, 0, deadlines);
        assert.deepEqual(outcomes, ['replaced', 'late'], `deadlines in half an hour, and half an hour ago, in ${zone}`);

        const back = await connect();
        const stored = (await back.records(things).get(key))?.record.expires;
        assert.deepEqual(stored, MOMENT, `the date of a record, written in ${zone}`);
        const after = applyAll(added, before).get(table)!;
        await engine.insert(back, table, [{ id: 3 }], after.fields);
        const rows = await engine.read(back, table);
        const rowOf = (id: number): StoredRow => rows.find((row) => Number(row.id) === id) ?? {};
        assert.equal(Number(rowOf(1)[FOUND]), 1, `an update in ${zone} did not find a row by its moments`);
        const assertMoment = (id: number, field: string, expected: Json, what: string) => {
          const value = rowOf(id)[field];
          const isRight = isStoredAs(after.fields.get(field)!, value, expected);
          assert.ok(isRight, `${what} in ${zone} is ${inspect(value)} and not ${inspect(expected)}: "${field}"`);
        };
        for (const type of TYPES) assertMoment(2, type, WALL_CLOCK, 'a value of a row, written');
        for (const type of TYPES) {
          if (after.fields.get(`new_${type}`)?.default === undefined) continue;
          for (const id of [1, 2]) assertMoment(id, `new_${type}`, WALL_CLOCK, 'the default of a field, added');
          if (notEnforced?.default === undefined) assertMoment(3, `new_${type}`, WALL_CLOCK, 'a default, defined');
        }
        await back.close();
      }
    },
  );
}

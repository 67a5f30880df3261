import * as assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { Connection, Segment } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { anyDefinition } from '../../core/records.ts';
import { invert } from '../../core/schema/invert.ts';
import type { Field, SchemaModel } from '../../core/schema/model.ts';
import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import type { DeclareDialectCase, EngineOnDatabase } from './dialect-case.ts';
import type { DialectUnderTest, Row, StoredRow } from './dialect-under-test.ts';
import { things } from './record-store-suite.ts';
import { orDeclare } from './row-rules.ts';
import { runOperations } from './run-operations.ts';
import { isStoredAs } from './stored-value.ts';
import { ID, isLegal, type SupportedOperations } from './supported-operations.ts';

/** Values that an engine or a driver may change, and those that look like no value. */
const VALUES: readonly (readonly [field: NamedFieldDefinition, one: Json, other: Json])[] = [
  [{ name: 'integer', type: 'integer' }, -2_147_483_648, 0],
  [{ name: 'smallint', type: 'smallint' }, 32_767, 0],
  [{ name: 'bigint', type: 'bigint' }, '9007199254740993', '-9223372036854775807'],
  [{ name: 'float', type: 'float' }, -0.5, 0],
  [{ name: 'double', type: 'double' }, 1.5e100, 0.1],
  [{ name: 'decimal', type: 'decimal', precision: 20, scale: 4 }, '1234567890123456.7891', '-0.5'],
  // With a letter in each Unicode normalization, and a space at the end.
  [{ name: 'string', type: 'string', length: 40 }, `it's "\u00c9" E\u0301 😀 \uFFFD `, ''],
  [{ name: 'text', type: 'text' }, ' \tfirst\nsecond ', ''],
  [{ name: 'boolean', type: 'boolean' }, false, true],
  [{ name: 'date', type: 'date' }, '2026-01-31', '1999-12-31'],
  [{ name: 'time', type: 'time' }, '23:59:59.123', '00:00:00'],
  [{ name: 'datetime', type: 'datetime' }, '2026-01-31 23:59:59.123', '1999-12-31 00:00:00'],
  [{ name: 'timestamp', type: 'timestamp' }, '2026-01-31 23:59:59.123', '1999-12-31 00:00:00'],
  [{ name: 'uuid', type: 'uuid' }, 'a0000000-0000-4000-8000-00000000000a', '00000000-0000-4000-8000-000000000000'],
  [{ name: 'enum', type: 'enum', enumValues: ['x', "it's"] }, "it's", 'x'],
  // A column that takes numbers would change them.
  [{ name: 'digits', type: 'text' }, '01', '1e3'],
  [{ name: 'code', type: 'enum', enumValues: ['01', '1.50'] }, '01', '1.50'],
  [{ name: 'json', type: 'json' }, { b: [1, null, "it's", { c: 1.5 }], a: '' }, []],
  [{ name: 'binary', type: 'binary', length: 8 }, base64(0, 1, 255, 127, 128), base64(0x7b, 0xc3)],
  [{ name: 'blob', type: 'blob' }, base64(0, 1, 255, 127, 128), base64(0)],
  [{ name: 'spare', type: 'integer' }, 5, 6],
];
const TABLE = 'kept_values';
const KEY: NamedFieldDefinition = { name: 'id', type: 'string', length: 40, primaryKey: true };
/** The keys of the rows: with the first values, with the other ones, and with none. */
const KEYS = ['a:1 😀', "it's", 'ONE'] as const;

const MANY = 'many_rows';
const MANY_ROWS = 1_001;
/** Calls of `insert` at once. */
const CONCURRENCY = 16;
const CLAIMS = 5;
const CLAIMANTS = 4;

/** Cases about the values of rows that exist before a change, also of many rows, and rows that others change at the same time. */
export function valueCases(
  on: DeclareDialectCase,
  { dialect }: DialectUnderTest,
  supported: SupportedOperations,
): void {
  const { create, isUnsupported, isAnyUnsupported, supportedField } = supported;
  const run = (connection: Connection, operations: readonly Operation[], from?: SchemaModel) =>
    runOperations(dialect, connection, operations, from);

  on(
    'values of every type survive every change and its inverse',
    'A change of a field or table changes no other value of a row that exists, whatever its type, and neither does its inverse. A field that is added has its default in every row, or no value, also if a dropped field had its name.',
    async ({ connect, engine }) => {
      const connection = await connect();
      let model = await run(connection, [create(TABLE, [KEY, ...VALUES.map(([field]) => field)])]);
      const { fields } = model.get(TABLE)!;
      const rows = rowsToInsert();
      await engine.insert(connection, TABLE, rows, fields);
      const wanted = storedRows(KEY.name, await engine.read(connection, TABLE));
      for (const row of rows) assertStored(engine, row, fields, wanted.get(String(row.id)));
      /** Runs changes of the table, which is then called `table`, and checks the values of the fields by their new names. */
      const change = async (
        operation: Operation,
        {
          table = TABLE,
          names = new Map<string, string>(),
        }: { table?: string; names?: ReadonlyMap<string, string> } = {},
      ): Promise<void> => {
        model = await run(connection, [operation], model);
        const found = storedRows(KEY.name, await engine.read(connection, table));
        const after = `after ${JSON.stringify(operation)}`;
        assert.deepEqual([...found.keys()].sort(), [...wanted.keys()].sort(), `the keys of the rows ${after}`);
        for (const [key, row] of wanted) {
          const values = (of: StoredRow | undefined, name: (field: string) => string) =>
            Object.fromEntries(
              VALUES.map(([field]) => [field.name, inspect(of?.[name(field.name)] ?? null, { sorted: true })]),
            );
          assert.deepEqual(
            values(found.get(key), (name) => names.get(name) ?? name),
            values(row, (name) => name),
            `the row ${JSON.stringify(key)} ${after}`,
          );
        }
      };
      const isPossible = (operation: Operation) => isLegal(operation, model) && !isUnsupported(operation, model);
      const valuesOf = async (field: string) => (await engine.read(connection, TABLE)).map((row) => row[field] ?? null);

      for (const operation of CHANGES) {
        if (!isPossible(operation)) continue;
        const inverse = invert(operation, model);
        if (operation.type === 'renameCollection') await change(operation, { table: operation.to });
        else await change(operation);
        if (!isAnyUnsupported(inverse, model)) for (const one of inverse) await change(one);
      }
      for (const field of ADDED.map(supportedField)) {
        const operation: Operation = { type: 'addField', collection: TABLE, field };
        if (!isPossible(operation)) continue;
        await change(operation);
        const stored = await valuesOf(field.name);
        const { default: expected } = field;
        const isRight = (value: unknown) =>
          expected === undefined
            ? value === null
            : isStoredAs(model.get(TABLE)!.fields.get(field.name)!, value, expected as Json);
        const found = `${field.name}, added to rows that exist, is ${inspect(stored)}`;
        assert.ok(stored.every(isRight), `${found} and not ${inspect(expected ?? null)}`);
      }
      const names = new Map<string, string>();
      const rename = async (from: string, to: string) => {
        const operation: Operation = { type: 'renameField', collection: TABLE, from, to };
        if (!isPossible(operation)) return false;
        names.set(names.get(to) === from ? to : from, to);
        await change(operation, { names });
        return true;
      };
      for (const [{ name }] of VALUES) {
        const isRenamed = await rename(name, `${name}_2`);
        if (isRenamed && RENAMED_BACK.includes(name)) await rename(`${name}_2`, name);
      }
      const drop: Operation = { type: 'dropField', collection: TABLE, field: 'spare' };
      if (isPossible(drop)) {
        model = await run(connection, [drop], model);
        const spare: Operation = { type: 'addField', collection: TABLE, field: { name: 'spare', type: 'integer' } };
        if (isPossible(spare)) {
          model = await run(connection, [spare], model);
          const returned = 'a field that was dropped and added again has its old values';
          assert.deepEqual(await valuesOf('spare'), [null, null, null], returned);
        }
      }
      // An engine rejects it, or replaces the row.
      await engine.insert(connection, TABLE, [{ id: KEYS[2] }], fields).catch(() => undefined);
      assert.equal(
        (await engine.read(connection, TABLE)).length,
        KEYS.length,
        'a row was added with the key of another',
      );
    },
  );

  on(
    'a change reaches every row',
    'A change, a count and an update reach all rows, also more than the engine reads or writes at a time. A dropped table leaves none.',
    async ({ connect, engine }) => {
      const connection = await connect();
      let model = await run(connection, [create(MANY, [ID, { name: 'n', type: 'integer' }])]);
      const count = engine.manyRows ?? MANY_ROWS;
      const rows = Array.from({ length: count }, (_, n): Row => ({ id: n + 1, n }));
      const { fields } = model.get(MANY)!;
      const share = Math.ceil(count / CONCURRENCY);
      const shares = Array.from({ length: CONCURRENCY }, (_, at) => rows.slice(at * share, (at + 1) * share));
      const filled = shares.filter(({ length }) => length > 0);
      await Promise.all(filled.map((some) => engine.insert(connection, MANY, some, fields)));
      /** The rows of a table in which a value is not the expected one. */
      const assertAll = async (table: string, field: string, expected: (id: number) => Json, when: string) => {
        const stored = await engine.read(connection, table);
        assert.equal(new Set(stored.map(({ id }) => Number(id))).size, count, `rows ${when}`);
        const wrong = stored.filter((row) => String(row[field] ?? null) !== String(expected(Number(row.id))));
        const first = wrong.slice(0, 3).map((row) => inspect(row));
        assert.equal(wrong.length, 0, `${when}, ${wrong.length} of ${count} rows have another "${field}": ${first}`);
      };
      assert.equal(await connection.count(MANY, count + 10), count);
      assert.equal(await connection.count(MANY, count - 1), count - 1, 'a count is at most its limit');
      const added: NamedFieldDefinition = { name: 'note', type: 'string', length: 10, default: 'x' };
      const steps: readonly (readonly [Operation, table: string, field: string, expected: (id: number) => Json])[] = [
        [{ type: 'addField', collection: MANY, field: supportedField(added) }, MANY, 'note', () => 'x'],
        [{ type: 'renameField', collection: MANY, from: 'n', to: 'm' }, MANY, 'm', (id) => id - 1],
        [{ type: 'renameCollection', collection: MANY, to: 'moved_rows' }, 'moved_rows', 'id', (id) => id],
      ];
      let table = MANY;
      for (const [operation, name, field, expected] of steps) {
        if (!isLegal(operation, model) || isUnsupported(operation, model)) continue;
        const isFilled = operation.type !== 'addField' || operation.field.default !== undefined;
        model = await run(connection, [operation], model);
        table = name;
        if (isFilled) await assertAll(table, field, expected, `after ${operation.type}`);
      }
      const collection = model.get(table)!;
      const field = collection.fields.has('m') ? 'm' : 'n';
      const updated = await connection.update({
        table,
        collection,
        key: 'all',
        where: [],
        set: [{ field, value: -1 }],
      });
      assert.deepEqual(updated, { matched: count, modified: count });
      await assertAll(table, field, () => -1, 'after an update');
      const drop: Operation = { type: 'dropField', collection: table, field };
      if (!isUnsupported(drop, model)) {
        model = await run(connection, [drop], model);
        const again: Operation = { type: 'addField', collection: table, field: { name: field, type: 'integer' } };
        if (!isUnsupported(again, model)) {
          model = await run(connection, [again], model);
          await assertAll(table, field, () => null, 'after dropField and addField');
        }
      }
      model = await run(connection, [{ type: 'dropCollection', collection: table }], model);
      model = await run(connection, [create(table, [ID])], model);
      assert.equal(await connection.count(table, count), 0, 'a dropped table left rows');
    },
  );

  on(
    'of concurrent updates of a row, one finds the value that all expect',
    '`update` changes a row only if it still has the values that `where` was compared with: what another connection writes in between is not overwritten.',
    async ({ connect, engine }) => {
      const connections = [await connect(), await connect()];
      const [connection] = connections as [Connection, Connection];
      const model = await run(connection, [create('claims', [ID, { name: 'n', type: 'integer' }])]);
      const collection = model.get('claims')!;
      await engine.insert(connection, 'claims', [{ id: 1, n: 0 }], collection.fields);
      for (let round = 0; round < CLAIMS; round += 1) {
        const free = { field: 'n', operator: 'eq', value: 0 } as const;
        const claim = (by: number) => {
          const job = { table: 'claims', collection, where: [free], key: `claim ${round} ${by}` };
          return connections[by % 2]!.update({ ...job, set: [{ field: 'n', value: by + 1 }] });
        };
        const outcomes = await Promise.all(Array.from({ length: CLAIMANTS }, (_, by) => claim(by)));
        const winners = outcomes.flatMap(({ modified }, by) => (modified > 0 ? [by + 1] : []));
        const [row] = await engine.read(connection, 'claims');
        const found = `${winners.length} of ${CLAIMANTS} updates of a row changed it; a change was overwritten`;
        assert.deepEqual(winners, [Number(row?.n)], found);
        const release = { table: 'claims', collection, where: [], key: `release ${round}` };
        await connection.update({ ...release, set: [{ field: 'n', value: 0 }] });
      }
    },
  );

  on(
    'statements of an earlier epoch change no row',
    'If a statement of an earlier epoch fails with `lock_lost` when it creates a table, so do those that change rows: no row of them is changed.',
    async ({ connect, engine }) => {
      const [connection, other] = [await connect(), await connect()];
      const before = await run(connection, [create('fenced', [ID, { name: 'n', type: 'integer' }])]);
      const late = await connection.withLock(async (epoch) => {
        await connection.ensureTables([anyDefinition(things)]);
        return epoch;
      });
      await other.withLock(async () => {});
      const runLate = async (operation: Operation) => {
        const statements = dialect.compile(operation, before);
        const segments = statements.map(
          (one): Segment => ({ transactional: one.transactional, statements: [one], writes: [] }),
        );
        const { failure } = await connection.run(segments, late);
        return isSvcError(failure?.error) && failure.error.code === 'lock_lost';
      };
      // Otherwise the records of a migration are what an earlier epoch cannot write.
      if (!(await runLate(create('fenced_too', [ID])))) return;
      await engine.insert(connection, 'fenced', [{ id: 1, n: 5 }], before.get('fenced')!.fields);
      for (const operation of FENCED) {
        if (isUnsupported(operation, before)) continue;
        const what = `${JSON.stringify(operation)} of an earlier epoch`;
        assert.ok(await runLate(operation), `${what} did not fail with lock_lost`);
        const stored = await engine.read(connection, 'fenced');
        const values = stored.map(({ id, n, note }) => [Number(id), n === undefined ? n : Number(n), note ?? null]);
        assert.deepEqual(values, [[1, 5, null]], `${what} changed a row`);
      }
    },
  );
}

/** Each one runs and is undone. */
const CHANGES: readonly Operation[] = [
  { type: 'renameCollection', collection: TABLE, to: 'moved_values' },
  { type: 'createIndex', collection: TABLE, index: 'by_integer', columns: [{ name: 'integer', order: 'desc' }] },
  {
    type: 'addConstraint',
    collection: TABLE,
    constraint: { name: 'kept_once', type: 'unique', columns: ['bigint', 'boolean'] },
  },
  { type: 'modifyField', collection: TABLE, field: 'string', changes: { length: 80 } },
  { type: 'modifyField', collection: TABLE, field: 'integer', changes: { default: 4 } },
  { type: 'modifyField', collection: TABLE, field: 'enum', changes: { enumValues: ["it's", 'x', 'y'] } },
];

const ADDED: readonly NamedFieldDefinition[] = [
  { name: 'no_default', type: 'text' },
  { name: 'note', type: 'string', length: 10, default: "it's" },
  { name: 'count', type: 'bigint', default: '9007199254740993' },
  { name: 'flag', type: 'boolean', default: false },
  { name: 'data', type: 'json', default: { a: [1, 'x'] } },
  { name: 'bytes', type: 'binary', length: 8, default: base64(0, 1, 255, 127, 128) },
];

/** The inverse of a rename is a rename: these show that it is one. */
const RENAMED_BACK: readonly string[] = ['bigint', 'text', 'json', 'binary', 'spare'];

const FENCED: readonly Operation[] = [
  { type: 'renameField', collection: 'fenced', from: 'n', to: 'm' },
  { type: 'addField', collection: 'fenced', field: { name: 'note', type: 'string', length: 10, default: 'x' } },
  { type: 'dropField', collection: 'fenced', field: 'n' },
  { type: 'renameCollection', collection: 'fenced', to: 'fenced_moved' },
  { type: 'dropCollection', collection: 'fenced' },
];

function base64(...bytes: readonly number[]): string {
  return Buffer.from(bytes).toString('base64');
}

const rowsToInsert = (): readonly Row[] =>
  KEYS.map((id, at) => ({
    id,
    ...Object.fromEntries(VALUES.map(([{ name }, ...values]) => [name, values[at] ?? null])),
  }));

const storedRows = (key: string, rows: readonly StoredRow[]): ReadonlyMap<string, StoredRow> =>
  new Map(rows.map((row) => [String(row[key]), row]));

/** Checks that the engine has what was inserted, as far as it stores it. */
function assertStored(
  { notEnforced }: EngineOnDatabase,
  row: Row,
  fields: ReadonlyMap<string, Field>,
  stored: StoredRow | undefined,
): void {
  for (const [name, expected] of Object.entries(row)) {
    const [field, value] = [fields.get(name)!, stored?.[name] ?? null];
    if (field.type === 'decimal' && notEnforced?.decimal !== undefined) continue;
    const isRight = expected === null ? value === null : isStoredAs(field, value, expected);
    const found = `the ${field.type} ${JSON.stringify(expected)}, once inserted, is read as ${inspect(value)}`;
    assert.ok(isRight, field.type === 'decimal' ? `${found}; ${orDeclare('decimal')}` : found);
  }
}

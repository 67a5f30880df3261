import * as assert from 'node:assert/strict';
import type { Connection } from '../../core/dialect.ts';
import { isSvcError, type SvcError } from '../../core/errors.ts';
import { describeDifferences } from '../../core/schema/diff.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { AddConstraint, NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import type { DeclareDialectCase, EngineOnDatabase } from './dialect-case.ts';
import type { DialectUnderTest, Row, SqlSyntax, StoredRow } from './dialect-under-test.ts';
import { orDeclare } from './row-rules.ts';
import { runOperations } from './run-operations.ts';
import { textsOfTime } from './stored-value.ts';
import { describeTestError } from './suite.ts';
import { ID, isLegal, type SupportedOperations } from './supported-operations.ts';

const PARENT = 'owners';
const CHILDREN = { pets: 'CASCADE', cars: 'SET NULL' } as const;
/** Changes for which engines recreate a table. */
const PARENT_CHANGES: readonly Operation[] = [
  { type: 'modifyField', collection: PARENT, field: 'n', changes: { type: 'bigint' } },
  {
    type: 'addField',
    collection: PARENT,
    field: { name: 'kind', type: 'string', length: 20, required: true, default: 'x' },
  },
  { type: 'modifyField', collection: PARENT, field: 'n', changes: { required: true } },
  { type: 'dropField', collection: PARENT, field: 'n' },
];
/** No row has this `id`. */
const MISSING_ID = 404;

const EXACT_DECIMAL = '12345678901234567890.0123456789';
const UUID = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Cases about rows that exist before a change, and about values that the engine stores or generates. */
export function rowCases(
  on: DeclareDialectCase,
  { dialect, notEnforced }: DialectUnderTest,
  supported: SupportedOperations,
): void {
  const { unsupported } = dialect.capabilities;
  const { create, isUnsupported } = supported;
  const run = (connection: Connection, operations: readonly Operation[], from?: SchemaModel) =>
    runOperations(dialect, connection, operations, from);
  const insertInto = (engine: EngineOnDatabase, connection: Connection) => {
    return (model: SchemaModel, collection: string, rows: readonly Row[]) =>
      engine.insert(connection, collection, rows, model.get(collection)!.fields);
  };
  const assertUnchanged = async (connection: Connection, model: SchemaModel) =>
    assert.deepEqual(describeDifferences(await connection.normalize(model), await connection.introspect()), []);

  if (!unsupported.foreignKey) {
    on(
      'a change of a referenced table keeps the rows that reference it',
      'A change of a table, even one that recreates it, deletes no rows that reference it and clears no references, whatever ON DELETE says. The foreign keys are enforced afterwards.',
      async ({ connect, engine }) => {
        const connection = await connect();
        const insert = insertInto(engine, connection);
        const parent = create(PARENT, [ID, { name: 'n', type: 'integer' }]);
        let model = await run(connection, [parent]);
        await insert(model, PARENT, [{ id: 1, n: 5 }]);
        for (const [child, onDelete] of Object.entries(CHILDREN)) {
          model = await run(connection, [create(child, CHILD_FIELDS), reference(child, onDelete)], model);
          await insert(model, child, [{ id: 1, owner: 1 }]);
        }
        for (const operation of PARENT_CHANGES) {
          if (!isLegal(operation, model) || isUnsupported(operation, model)) continue;
          model = await run(connection, [operation], model);
          for (const [child, onDelete] of Object.entries(CHILDREN)) {
            const what = `${child}, with ON DELETE ${onDelete}, after ${JSON.stringify(operation)}`;
            // The engine must reject it. If it does not, the row is there.
            await insert(model, child, [{ id: 2, owner: MISSING_ID }]).catch(() => undefined);
            assert.deepEqual(numbers(await engine.read(connection, child), ['id', 'owner']), [[1, 1]], what);
          }
        }
      },
    );

    on(
      'a foreign key that a row violates is rejected',
      'Adding a foreign key fails with `data_violates` if a row references a missing one. The row stays, and there is no constraint.',
      async ({ connect, engine }) => {
        const connection = await connect();
        const insert = insertInto(engine, connection);
        const model = await run(connection, [create(PARENT, [ID]), create('pets', CHILD_FIELDS)]);
        await insert(model, 'pets', [{ id: 1, owner: MISSING_ID }]);
        const error = await rejection(run(connection, [reference('pets', 'CASCADE')], model));
        assert.equal(error?.code, 'data_violates', `a foreign key that a row violates: ${describeRejection(error)}`);
        assert.deepEqual(numbers(await engine.read(connection, 'pets'), ['id', 'owner']), [[1, MISSING_ID]]);
        await assertUnchanged(connection, model);
      },
    );
  }

  if (!unsupported.changeType)
    on(
      'a value that a new type cannot hold is kept',
      'Changing the type of a field is rejected, by `compile` or with `data_violates`, if a row has a value that is not valid for the new type. The value stays.',
      async ({ connect, engine }) => {
        const connection = await connect();
        const insert = insertInto(engine, connection);
        const model = await run(connection, [create('sizes', [ID, { name: 'size', type: 'text' }])]);
        await insert(model, 'sizes', [{ id: 1, size: 'abc' }]);
        const change: Operation = {
          type: 'modifyField',
          collection: 'sizes',
          field: 'size',
          changes: { type: 'integer' },
        };
        const error = await rejection(run(connection, [change], model));
        const isRejected = error !== undefined && error.code !== 'migration_failed';
        assert.ok(isRejected, `the text 'abc' becomes an integer: ${describeRejection(error)}`);
        const stored = await engine.read(connection, 'sizes');
        assert.deepEqual(
          stored.map(({ size }) => size),
          ['abc'],
        );
        await assertUnchanged(connection, model);
      },
    );

  if (!unsupported.generated && notEnforced?.default === undefined)
    on(
      'generated UUIDs differ',
      'Each row that leaves out a field with `autoGenerate` gets a UUID of its own.',
      async ({ connect, engine }) => {
        const connection = await connect();
        const insert = insertInto(engine, connection);
        const model = await run(connection, [
          create('generated', [
            ID,
            { name: 'uuid', type: 'uuid', autoGenerate: true },
            { name: 'string', type: 'string', length: 36, autoGenerate: true },
          ]),
        ]);
        await insert(model, 'generated', [{ id: 1 }]);
        await insert(model, 'generated', [{ id: 2 }]);
        const rows = await engine.read(connection, 'generated');
        const values = rows.flatMap(({ uuid, string }) => [String(uuid), String(string)]);
        for (const value of values) assert.match(value, UUID);
        assert.equal(new Set(values).size, 4, `generated values are repeated: ${values.join(', ')}`);
      },
    );

  if (!unsupported.default && notEnforced?.default === undefined)
    on(
      `the default 'now' is the time of the insert`,
      `A row that leaves out a field with the default 'now' gets the current date and time of the engine, in UTC.`,
      async ({ connect, engine }) => {
        const connection = await connect();
        const insert = insertInto(engine, connection);
        const fields = TEMPORAL.map((type): NamedFieldDefinition => ({ name: `${type}_now`, type, default: 'now' }));
        const model = await run(connection, [create('times', [ID, ...fields])]);
        await insert(model, 'times', [{ id: 1 }]);
        const [row] = await engine.read(connection, 'times');
        const now = (await connection.now()).getTime();
        const wrong = TEMPORAL.filter((type) => !isNow(type, row?.[`${type}_now`], now));
        assert.deepEqual(
          wrong.map((type) => `the default of a ${type} is ${describe(row?.[`${type}_now`])}`),
          [],
          `connection.now() is ${new Date(now).toISOString()}`,
        );
      },
    );

  if (notEnforced?.decimal === undefined)
    on(
      'a decimal keeps all its digits',
      'A decimal within its `precision` and `scale` is stored exactly.',
      async ({ connect, engine }) => {
        const connection = await connect();
        const insert = insertInto(engine, connection);
        const model = await run(connection, [
          create('prices', [ID, { name: 'price', type: 'decimal', precision: 30, scale: 10 }]),
        ]);
        await insert(model, 'prices', [{ id: 1, price: EXACT_DECIMAL }]);
        const [row] = await engine.read(connection, 'prices');
        const changed = `${describe(row?.price)} is not ${EXACT_DECIMAL}`;
        assert.equal(String(row?.price), EXACT_DECIMAL, `${changed}; ${orDeclare('decimal')}`);
      },
    );
}

/** Checks that the engine accepts the expressions that the suite uses as defaults. */
export async function assertDefaultExpressionsWork(
  engine: EngineOnDatabase,
  connection: Connection,
  syntax: SqlSyntax,
): Promise<void> {
  const { dialect, notEnforced } = engine;
  const { unsupported } = dialect.capabilities;
  if (unsupported.default || unsupported.expressionDefault) return;
  for (const [word, type] of [
    ['sum', 'integer'],
    ['now', 'timestamp'],
  ] as const) {
    const field: NamedFieldDefinition = { name: 'n', type, default: { $expression: syntax[word] } };
    try {
      const create: Operation = { type: 'createCollection', name: 'expressions', fields: [ID, field] };
      const model = await runOperations(dialect, connection, [create]);
      const { fields } = model.get('expressions')!;
      if (notEnforced?.default === undefined) await engine.insert(connection, 'expressions', [{ id: 1 }], fields);
      await runOperations(dialect, connection, [{ type: 'dropCollection', collection: 'expressions' }], model);
    } catch (error) {
      const given = `the suite's syntax.${word} is ${JSON.stringify(syntax[word])}, which failed as a default`;
      const next = `if the engine has another expression, pass syntax: { …, ${word}: '…' }`;
      throw new Error(`${given}: ${describeTestError(error)}; ${next}`, { cause: error });
    }
  }
}

/** The error with which a change is rejected; undefined if it succeeds. */
async function rejection(change: Promise<unknown>): Promise<SvcError | undefined> {
  try {
    await change;
    return undefined;
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
}

const describeRejection = (error: SvcError | undefined): string =>
  error ? `rejected with ${describeTestError(error)}` : 'it was accepted';

const CHILD_FIELDS: readonly NamedFieldDefinition[] = [ID, { name: 'owner', type: 'integer' }];

const reference = (collection: string, onDelete: 'CASCADE' | 'SET NULL'): AddConstraint => ({
  type: 'addConstraint',
  collection,
  constraint: {
    name: `${collection}_owner`,
    type: 'foreignKey',
    columns: ['owner'],
    references: { table: PARENT, columns: ['id'], onDelete },
  },
});

/** Drivers return integers as numbers, bigints or text. */
const numbers = (rows: readonly StoredRow[], fields: readonly string[]): (number | null)[][] =>
  rows.map((row) =>
    fields.map((field) => (row[field] === null || row[field] === undefined ? null : Number(row[field]))),
  );

const TEMPORAL = ['date', 'time', 'datetime', 'timestamp'] as const;

/** Whether a stored value is within a minute of a time. */
function isNow(type: (typeof TEMPORAL)[number], value: unknown, now: number): boolean {
  return textsOfTime(value).some((text) => {
    const [, date, time, zone] = TEMPORAL_TEXT.exec(text) ?? [];
    if (type === 'time') {
      const difference = Math.abs(Date.parse(`1970-01-01T${time}Z`) - (now % DAY_MS));
      return Math.min(difference, DAY_MS - difference) <= MINUTE_MS;
    }
    if (type === 'date') {
      return [now - MINUTE_MS, now + MINUTE_MS].some((near) => new Date(near).toISOString().slice(0, 10) === date);
    }
    const offset = zone && /^[+-]\d\d$/.test(zone) ? `${zone}:00` : (zone ?? 'Z');
    return Math.abs(Date.parse(`${date}T${time}${offset}`) - now) <= MINUTE_MS;
  });
}

const TEMPORAL_TEXT = /^(\d{4}-\d\d-\d\d)?[T ]?(\d\d:\d\d:\d\d(?:\.\d{1,3})?)?\d* ?(Z|[+-]\d\d(?::?\d\d)?)?$/;

const describe = (value: unknown): string => (value === undefined ? 'missing' : JSON.stringify(String(value)));

import * as assert from 'node:assert/strict';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { Connection } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import type { apply } from '../../core/schema/apply.ts';
import { invert } from '../../core/schema/invert.ts';
import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import type { DialectUnderTest, Row } from './dialect-under-test.ts';
import { runOperations } from './run-operations.ts';
import { ID, isLegal, type SupportedOperations } from './supported-operations.ts';

const FIELDS: readonly NamedFieldDefinition[] = [
  ID,
  { name: 'name', type: 'string', length: 40 },
  { name: 'n', type: 'integer' },
  { name: 'price', type: 'decimal', precision: 10, scale: 4 },
  { name: 'at', type: 'datetime' },
];
const ROWS: readonly Row[] = [
  { id: 1, name: 'Ada', n: 5, price: 12.3456, at: '2026-01-31 12:34:56' },
  { id: 2, name: "it's", n: 6, price: 0.5, at: '2026-02-01 00:00:00' },
];
const TABLE = { collection: 'kept' };

/** `keeps`: no engine may lose a value. `loses`: every engine does. Otherwise it depends on the engine. */
const CHANGES: readonly (readonly [operation: Operation, outcome?: 'keeps' | 'loses'])[] = [
  [{ type: 'renameField', ...TABLE, from: 'name', to: 'title' }, 'keeps'],
  // The old column is dropped: what a program writes to it during the copy may be lost.
  [{ type: 'renameField', ...TABLE, from: 'name', to: 'title', strategy: 'copy' }],
  [{ type: 'renameCollection', ...TABLE, to: 'moved' }, 'keeps'],
  [{ type: 'addField', ...TABLE, field: { name: 'note', type: 'string', default: 'x' } }, 'keeps'],
  [{ type: 'createIndex', ...TABLE, index: 'by_n', columns: [{ name: 'n' }] }, 'keeps'],
  [{ type: 'addConstraint', ...TABLE, constraint: { name: 'once', type: 'unique', columns: ['name'] } }, 'keeps'],
  [{ type: 'modifyField', ...TABLE, field: 'name', changes: { length: 80 } }, 'keeps'],
  [{ type: 'modifyField', ...TABLE, field: 'n', changes: { default: 4 } }, 'keeps'],
  [{ type: 'modifyField', ...TABLE, field: 'n', changes: { type: 'bigint' } }],
  [{ type: 'modifyField', ...TABLE, field: 'name', changes: { length: 2 } }],
  [{ type: 'modifyField', ...TABLE, field: 'price', changes: { scale: 1 } }],
  [{ type: 'modifyField', ...TABLE, field: 'price', changes: { type: 'integer', precision: null, scale: null } }],
  [{ type: 'modifyField', ...TABLE, field: 'at', changes: { type: 'date' } }],
  [{ type: 'dropField', ...TABLE, field: 'name' }, 'loses'],
  [{ type: 'dropCollection', ...TABLE }, 'loses'],
];

/**
 * Runs each change and its inverse on a table with rows, and compares what happened to their values with `destructive`
 * of the statements.
 */
export async function assertDestructiveIsTrue(
  engine: DialectUnderTest,
  connection: Connection,
  { create, isUnsupported, isAnyUnsupported }: SupportedOperations,
): Promise<void> {
  const { dialect } = engine;
  for (const [operation, outcome] of CHANGES) {
    const model = await runOperations(dialect, connection, [create(TABLE.collection, FIELDS)]);
    const drop = (from: typeof model) =>
      runOperations(
        dialect,
        connection,
        [...from.keys()].map((collection): Operation => ({ type: 'dropCollection', collection })),
        from,
      );
    if (!isLegal(operation, model) || isUnsupported(operation, model)) {
      await drop(model);
      continue;
    }
    await engine.insert(connection, TABLE.collection, ROWS, model.get(TABLE.collection)?.fields ?? new Map());
    const before = await readRows(engine, connection);
    const isDestructive = dialect.compile(operation, model).some(({ destructive }) => destructive);
    const description = JSON.stringify(operation);
    const after = await runUnlessViolated(engine, connection, operation, model);
    const inverse = invert(operation, model);
    if (after === undefined) {
      assert.deepEqual(await readRows(engine, connection), before, `${description} was rejected`);
      await drop(model);
      continue;
    }
    assert.equal(isDestructive || outcome !== 'loses', true, `${description} destroys values: it is destructive`);
    assert.equal(isDestructive && outcome === 'keeps', false, `${description} destroys nothing: it is not destructive`);
    if (isAnyUnsupported(inverse, after)) {
      await drop(after);
      continue;
    }
    await runOperations(dialect, connection, inverse, after);
    const restored = await readRows(engine, connection);
    const lost = `${description} and its inverse changed ${inspect(before)} to ${inspect(restored)}`;
    if (!isDestructive) assert.ok(isDeepStrictEqual(restored, before), `${lost}: it is destructive`);
    await drop(model);
  }
}

/** Returns the model after the operation, or undefined if rows do not allow it. */
async function runUnlessViolated(
  { dialect }: DialectUnderTest,
  connection: Connection,
  operation: Operation,
  model: ReturnType<typeof apply>,
): Promise<ReturnType<typeof apply> | undefined> {
  try {
    return await runOperations(dialect, connection, [operation], model);
  } catch (error) {
    if (isSvcError(error) && error.code === 'data_violates') return undefined;
    throw error;
  }
}

/** The rows of the fields that the table begins with, as text: drivers return objects. */
async function readRows(engine: DialectUnderTest, connection: Connection): Promise<readonly string[]> {
  const rows = await engine.read(connection, TABLE.collection);
  const values = rows.map((row) => FIELDS.map(({ name }) => `${name}: ${inspect(row[name] ?? null)}`).join(', '));
  return values.sort();
}

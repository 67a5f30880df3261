import * as assert from 'node:assert/strict';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { Connection } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { invert } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import type { EngineOnDatabase } from './dialect-case.ts';
import type { Row } from './dialect-under-test.ts';
import { runOperations } from './run-operations.ts';
import { ID, isLegal, type SupportedOperations } from './supported-operations.ts';

const FIELDS: readonly NamedFieldDefinition[] = [
  ID,
  { name: 'name', type: 'string', length: 40 },
  { name: 'n', type: 'integer' },
  { name: 'price', type: 'decimal', precision: 10, scale: 4 },
  { name: 'at', type: 'datetime' },
  { name: 'code', type: 'string', length: 10 },
];
const ROWS: readonly Row[] = [
  { id: 1, name: 'Ada', n: 5, price: 12.3456, at: '2026-01-31 12:34:56', code: '00501' },
  { id: 2, name: "it's", n: 6, price: 0.5, at: '2026-02-01 00:00:00', code: '7' },
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
  [{ type: 'modifyField', ...TABLE, field: 'code', changes: { type: 'integer', length: null } }],
  [{ type: 'dropField', ...TABLE, field: 'name' }, 'loses'],
  [{ type: 'dropCollection', ...TABLE }, 'loses'],
];

/**
 * Runs each change and its inverse on a table with rows, and compares what happened to their values with `destructive`
 * of the statements.
 */
export async function assertDestructiveIsTrue(
  engine: EngineOnDatabase,
  connection: Connection,
  supported: SupportedOperations,
): Promise<void> {
  const { dialect } = engine;
  for (const [operation, outcome] of CHANGES) {
    const model = await runOperations(dialect, connection, [supported.create(TABLE.collection, FIELDS)]);
    const isSupported = isLegal(operation, model) && !supported.isUnsupported(operation, model);
    const last = isSupported ? await assertChange(engine, connection, supported, model, operation, outcome) : model;
    const drops = [...last.keys()].map((collection): Operation => ({ type: 'dropCollection', collection }));
    await runOperations(dialect, connection, drops, last);
  }
}

/** Runs a change and its inverse, if rows and engine allow them. Returns the model at the end. */
async function assertChange(
  engine: EngineOnDatabase,
  connection: Connection,
  { isAnyUnsupported }: SupportedOperations,
  model: SchemaModel,
  operation: Operation,
  outcome: 'keeps' | 'loses' | undefined,
): Promise<SchemaModel> {
  const { dialect } = engine;
  const { collection } = TABLE;
  await engine.insert(connection, collection, ROWS, model.get(collection)?.fields ?? new Map());
  const before = await readRows(engine, connection);
  const isDestructive = dialect.compile(operation, model).some(({ destructive }) => destructive);
  const description = JSON.stringify(operation);
  const after = await runUnlessViolated(engine, connection, operation, model);
  if (after === undefined) {
    assert.deepEqual(await readRows(engine, connection), before, `${description} was rejected`);
    return model;
  }
  assert.ok(isDestructive || outcome !== 'loses', `${description} destroys values: it is destructive`);
  assert.ok(!isDestructive || outcome !== 'keeps', `${description} destroys nothing: it is not destructive`);
  const inverse = invert(operation, model);
  if (isAnyUnsupported(inverse, after)) return after;
  await runOperations(dialect, connection, inverse, after);
  const restored = await readRows(engine, connection);
  const lost = `${description} and its inverse changed ${inspect(before)} to ${inspect(restored)}`;
  assert.ok(isDestructive || isDeepStrictEqual(restored, before), `${lost}: it is destructive`);
  return model;
}

/** Returns the model after the operation, or undefined if rows do not allow it. */
async function runUnlessViolated(
  { dialect }: EngineOnDatabase,
  connection: Connection,
  operation: Operation,
  model: SchemaModel,
): Promise<SchemaModel | undefined> {
  try {
    return await runOperations(dialect, connection, [operation], model);
  } catch (error) {
    if (isSvcError(error) && error.code === 'data_violates') return undefined;
    throw error;
  }
}

/** The rows of the fields that the table begins with, as text: drivers return objects. */
async function readRows(engine: EngineOnDatabase, connection: Connection): Promise<readonly string[]> {
  const rows = await engine.read(connection, TABLE.collection);
  const values = rows.map((row) => FIELDS.map(({ name }) => `${name}: ${inspect(row[name] ?? null)}`).join(', '));
  return values.sort();
}

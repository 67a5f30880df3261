import * as assert from 'node:assert/strict';
import type { Connection, Dialect, Segment } from '../../core/dialect.ts';
import { apply } from '../../core/schema/apply.ts';
import { describeDifferences } from '../../core/schema/diff.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { Operation } from '../../core/schema/operation.ts';

/** Runs operations without a history, each with its steps of a migration. Returns the resulting model; throws the error of the engine. */
export async function runOperations(
  dialect: Dialect,
  connection: Connection,
  operations: readonly Operation[],
  from: SchemaModel = new Map(),
  epoch = 0,
): Promise<SchemaModel> {
  let model = from;
  for (const operation of operations) {
    const segments: Segment[] = [];
    for (const statement of dialect.compile(operation, model)) {
      const { transactional } = statement;
      const last = segments.at(-1);
      if (transactional && last?.transactional)
        segments[segments.length - 1] = { ...last, statements: [...last.statements, statement] };
      else segments.push({ transactional, statements: [statement], writes: [] });
    }
    const { failure } = await connection.run(segments, epoch);
    if (failure) throw failure.error;
    model = apply(model, operation);
  }
  return model;
}

/** Compares the catalog with what the dialect makes of a model. */
export async function assertCatalogMatches(connection: Connection, model: SchemaModel, what = ''): Promise<void> {
  const differences = describeDifferences(await connection.normalize(model), await connection.introspect());
  assert.deepEqual(differences, [], what);
}

/** `runOperations` of a dialect. */
export const runnerOf =
  (dialect: Dialect) =>
  (
    connection: Connection,
    operations: readonly Operation[],
    from?: SchemaModel,
    epoch?: number,
  ): Promise<SchemaModel> =>
    runOperations(dialect, connection, operations, from, epoch);

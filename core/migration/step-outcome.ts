import type { Connection } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import { applyAll } from '../schema/apply.ts';
import type { SchemaModel } from '../schema/model.ts';
import { modelOperations } from '../schema/model-operations.ts';
import type { CreateIndex, DropIndex } from '../schema/operation.ts';
import { affectedCollections } from './affected-collections.ts';
import { drift, withoutUnknownReferences } from './drift.ts';
import { modelFromMigrations } from './history.ts';
import type { JournalStep } from './history-table.ts';
import type { MigrationRun } from './journal.ts';
import { withoutKept } from './kept.ts';
import { operationsOf, type PlannedMigration } from './planned-migration.ts';
import { rememberEffect } from './remember-effect.ts';

/** Whether a started step took effect, by its own check or by the catalog compared with the model before and after. */
export async function stepOutcome(
  run: MigrationRun,
  planned: PlannedMigration,
  step: JournalStep,
): Promise<'done' | 'not done' | 'unknown'> {
  const { connection } = run.target;
  const { operation: first, merged = 1 } = step;
  const operations = operationsOf(planned).slice(first, first + merged);
  const [operation] = operations;
  if (!operation) return 'unknown';
  const check = step.statements.at(-1)?.check;
  const names = modelOperations(operations, run.target.dialect.name).flatMap(affectedCollections);
  if (check !== undefined) {
    const isDone = (await connection.query(check)).length > 0;
    const models = isDone && operation.type === 'raw' ? await modelsAround(run, planned, first, merged) : undefined;
    if (models) await rememberEffect(run, { names, ...models });
    return isDone ? 'done' : 'not done';
  }
  if (operation.type === 'raw' && names.length === 0) return 'unknown';
  const models = await modelsAround(run, planned, first, merged);
  if (!models) return 'unknown';
  const { before, after } = models;
  const found = withoutUnknownReferences(await connection.introspect(names), new Map([...after, ...before]));
  if (await matches(connection, found, after, names)) return 'done';
  if (await matches(connection, found, before, names)) return 'not done';
  if (operation.type === 'raw') return (await rememberEffect(run, { names, before, after })) ? 'done' : 'unknown';
  if (operation.type !== 'createIndex' && operation.type !== 'dropIndex') return 'unknown';
  // Whatever else of the table was changed by hand, the index is there or not.
  const index = withIndexOf(found, operation, found);
  if (await matches(connection, index, withIndexOf(found, operation, after), names)) return 'done';
  if (await matches(connection, index, withIndexOf(found, operation, before), names)) return 'not done';
  return 'unknown';
}

/** `found`, where the table has only the index of the operation, as it is in `model`, if it is there. */
function withIndexOf(
  found: SchemaModel,
  { collection: name, index }: CreateIndex | DropIndex,
  model: SchemaModel,
): SchemaModel {
  const collection = found.get(name);
  const definition = model.get(name)?.indexes.get(index);
  if (!collection) return found;
  const indexes = new Map(definition ? [[index, definition]] : []);
  return new Map([...found, [name, { ...collection, indexes }]]);
}

/** The models before and after `count` operations of a migration; undefined if they cannot be applied to its model. */
export async function modelsAround(
  run: MigrationRun,
  planned: PlannedMigration,
  index: number,
  count = 1,
): Promise<{ readonly before: SchemaModel; readonly after: SchemaModel } | undefined> {
  const start = planned.before ?? (await modelBefore(run, planned));
  const slice = (from: number, to: number) =>
    modelOperations(operationsOf(planned).slice(from, to), run.target.dialect.name);
  try {
    const before = applyAll(slice(0, index), start);
    return { before: withoutKept(before), after: withoutKept(applyAll(slice(index, index + count), before)) };
  } catch (error) {
    if (isSvcError(error)) return undefined;
    throw error;
  }
}

/** For a journal of an older SDK. A migration that is being rolled back counts as completed. */
async function modelBefore({ target, history }: MigrationRun, planned: PlannedMigration): Promise<SchemaModel> {
  const completed = await history.completedMigrations(target.connection);
  const seq = history.records.get(planned.tag)?.row.seq ?? 0;
  const migrations = completed.map(({ row, migration }) => ({ seq: row.seq, migration }));
  if (planned.direction === 'down') migrations.push({ seq, migration: planned.migration });
  return modelFromMigrations(
    migrations.sort((a, b) => a.seq - b.seq).map(({ migration }) => migration),
    target,
  );
}

async function matches(
  connection: Connection,
  found: SchemaModel,
  model: SchemaModel,
  names: readonly string[],
): Promise<boolean> {
  const expected = new Map([...model].filter(([name]) => names.includes(name)));
  return (await drift(connection, expected, found)).length === 0;
}

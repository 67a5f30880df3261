import type { Connection } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import { replay } from '../schema/apply.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { Operation } from '../schema/operation.ts';
import { drift, withoutForeign } from './drift.ts';
import type { Execution } from './execution.ts';
import type { JournalStep } from './history.ts';
import { modelOf } from './ledger.ts';
import type { PlannedMigration } from './plan.ts';
import { touches } from './touches.ts';

/** Whether a step that was started took effect: its own check, or the catalog against the model before and after it. */
export async function outcomeOf(
  run: Execution,
  planned: PlannedMigration,
  step: JournalStep,
): Promise<'done' | 'not done' | 'unknown'> {
  const { connection } = run.adapter;
  const operation = planned.migration[planned.direction][step.operation];
  if (!operation) return 'unknown';
  const check = step.statements.at(-1)?.check;
  if (check !== undefined) return (await connection.query(check)).length > 0 ? 'done' : 'not done';
  if (operation.type === 'raw') return 'unknown';
  const models = around(planned, step.operation, operation, planned.before ?? (await modelBefore(run, planned)));
  if (!models) return 'unknown';
  const { before, after } = models;
  const names = touches(operation);
  const found = withoutForeign(await connection.introspect(names), new Map([...after, ...before]));
  if (await equals(connection, found, after, names)) return 'done';
  if (await equals(connection, found, before, names)) return 'not done';
  return 'unknown';
}

/** The models between which an operation leads; none where it does not apply to what is known of the time before it. */
function around(
  { migration, direction }: PlannedMigration,
  at: number,
  operation: Operation,
  first: SchemaModel,
): { readonly before: SchemaModel; readonly after: SchemaModel } | undefined {
  try {
    const before = replay(migration[direction].slice(0, at), first);
    return { before, after: replay([operation], before) };
  } catch (error) {
    if (isSvcError(error)) return undefined;
    throw error;
  }
}

/** For a journal of an older SDK: of the completed migrations. A migration that was on its way down counts as one of them. */
async function modelBefore({ adapter, ledger }: Execution, planned: PlannedMigration): Promise<SchemaModel> {
  const completed = await ledger.migrations(adapter.connection);
  const seq = ledger.entries.get(planned.tag)?.row.seq ?? 0;
  const migrations = completed.map((entry) => ({ seq: entry.row.seq, migration: entry.migration }));
  if (planned.direction === 'down') migrations.push({ seq, migration: planned.migration });
  return modelOf(
    migrations.sort((a, b) => a.seq - b.seq).map(({ migration }) => migration),
    adapter.connection,
  );
}

async function equals(
  connection: Connection,
  found: SchemaModel,
  model: SchemaModel,
  names: readonly string[],
): Promise<boolean> {
  const part = new Map([...model].filter(([name]) => names.includes(name)));
  return (await drift(connection, part, found)).length === 0;
}

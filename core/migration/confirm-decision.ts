import { SvcError } from '../errors.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';
import { modelOperations } from '../schema/model-operations.ts';
import { affectedCollections } from './affected-collections.ts';
import { drift, withoutUnknownReferences } from './drift.ts';
import { type HistoryRecord, isRollback, modelFromMigrations } from './history.ts';
import type { HistoryRow } from './history-table.ts';
import type { Migration } from './migration.ts';
import { resolveCommands } from './reconcile.ts';
import { replayMigrations } from './replay.ts';
import type { Target } from './target.ts';

/**
 * Throws `drift` if the catalog contradicts that the migration is applied or rolled back. A difference that it has from
 * the schema both with and without the migration is not about the migration. Returns the collections that were created
 * by hand, for the dialect to remember.
 */
export async function assertConfirmed(
  { connection, dialect }: Target,
  row: HistoryRow,
  action: 'applied' | 'rolled-back',
  completed: readonly Required<HistoryRecord>[],
): Promise<readonly Collection[]> {
  const { tag, migration } = row;
  const operations = modelOperations([...migration.up, ...migration.down], dialect.name);
  if (operations.length === 0) return [];
  const others = completed.filter((one) => one.row.tag !== tag);
  const withIt = migrationsOf([...others, { row, migration }].sort((a, b) => a.row.seq - b.row.seq));
  const applied = await modelFromMigrations(withIt, { connection, dialect });
  const rolledBack = await modelFromMigrations(migrationsOf(others), { connection, dialect });
  const [expected, opposite] = action === 'applied' ? [applied, rolledBack] : [rolledBack, applied];
  const names = new Set(operations.flatMap(affectedCollections));
  // Only the catalog knows an unmanaged table, so it cannot contradict.
  for (const name of replayMigrations(withIt, dialect.name).unmanaged) names.delete(name);
  if (action === 'rolled-back') for (const name of row.found ?? []) names.delete(name);
  if (names.size === 0) return [];
  const catalog = new Map(await connection.introspect([...names]));
  const createdByHand: Collection[] = [];
  for (const name of names) {
    const collection = opposite.has(name) ? undefined : expected.get(name);
    const found = collection && (await connection.introspectAs?.(collection));
    if (!found) continue;
    catalog.set(name, found);
    createdByHand.push(collection);
  }
  const differencesFrom = (model: SchemaModel) =>
    drift(
      connection,
      new Map([...model].filter(([name]) => names.has(name))),
      withoutUnknownReferences(catalog, model),
    );
  const found = await differencesFrom(expected);
  const unrelated = new Set(found.length > 0 ? await differencesFrom(opposite) : []);
  const differences = found.filter((one) => !unrelated.has(one));
  if (differences.length === 0) return createdByHand;
  throw contradictedError(row, action, differences);
}

const migrationsOf = (records: readonly { readonly migration: Migration }[]): readonly Migration[] =>
  records.map(({ migration }) => migration);

function contradictedError(
  row: HistoryRow,
  action: 'applied' | 'rolled-back',
  differences: readonly string[],
): SvcError {
  const { tag, status, journal } = row;
  const schema = action === 'applied' ? 'with' : 'without';
  const retry = journal ? resolveCommands(row, isRollback(row)).filter((line) => line.includes('--retry')) : [];
  return new SvcError('drift', `The database does not match the schema ${schema} "${tag}".`, {
    why: differences.join('; '),
    state: 'Nothing was changed.',
    next: [
      ...(status === 'completed' ? ['svc db migrate rollback    rolls back the last applied migration'] : retry),
      'Correct the named differences by hand, then decide again.',
    ],
    details: { tag, differences },
  });
}

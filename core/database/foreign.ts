import type { Connection } from '../dialect.ts';
import { isSvcError, sentences } from '../errors.ts';
import type { Migration } from '../migration/migration.ts';
import { planMigration } from '../migration/plan.ts';
import { needs } from '../migration/touches.ts';
import { Draft } from '../schema/draft.ts';
import type { Operation } from '../schema/operation.ts';
import type { Adapter } from './adapter.ts';

/** Puts tables into the model that svc did not make, as the catalog has them, so that a way back can be written for them too. */
export async function readForeign(
  operation: Operation,
  draft: Draft,
  connection: Connection,
): Promise<ReadonlySet<string>> {
  const mayExist = operation.type === 'createCollection' && operation.options?.sqlOptions?.ifNotExists === true;
  const missing = (mayExist ? [operation.name] : needs(operation)).filter((name) => !draft.has(name));
  const found = missing.length > 0 ? await connection.introspect(missing) : new Map();
  for (const [name, collection] of found) draft.set(name, collection);
  return new Set(found.keys());
}

/** Says what a way back would lose of tables that svc did not make, and takes it away where it cannot be run at all. */
export async function withDoubts(
  migration: Migration,
  foreign: ReadonlySet<string>,
  draft: Draft,
  adapter: Adapter,
): Promise<Migration> {
  const why = await noWayBack(migration, draft, adapter);
  if (why !== undefined) return { ...migration, down: [], irreversible: why };
  if (!migration.up.some(({ type }) => type === 'dropCollection' || type === 'dropField')) return migration;
  const unreadable = (await adapter.connection.unreadable()).filter(
    ({ collection }) => collection === undefined || foreign.has(collection),
  );
  const lost = unreadable.map(({ collection, field, what }) => {
    const of = field === undefined ? `table ${collection}` : `field ${collection}.${field}`;
    return `The ${collection === undefined ? 'database' : of} ${what}: that is not brought back.`;
  });
  return lost.length === 0 ? migration : { ...migration, lossy: [...(migration.lossy ?? []), ...lost] };
}

async function noWayBack(migration: Migration, draft: Draft, adapter: Adapter): Promise<string | undefined> {
  const trial = new Draft(draft);
  await planMigration(adapter, migration, 'up', 'api', trial);
  try {
    await planMigration(adapter, migration, 'down', 'api', trial);
    return undefined;
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return sentences(error);
  }
}

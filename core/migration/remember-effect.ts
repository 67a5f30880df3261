import type { Connection } from '../dialect.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';
import { drift, withoutUnknownReferences } from './drift.ts';
import type { MigrationRun } from './journal.ts';

/** What a raw statement makes. */
export interface ExpectedEffect {
  /** The collections that it makes or changes. */
  readonly names: readonly string[];
  readonly before: SchemaModel;
  readonly after: SchemaModel;
}

/** The collections as the statement leaves them. */
export const collectionsAfter = ({ names, after }: ExpectedEffect): SchemaModel =>
  new Map([...after].filter(([name]) => names.includes(name)));

/** The differences between what a raw statement makes and the catalog. */
export async function effectDifferences(connection: Connection, effect: ExpectedEffect): Promise<readonly string[]> {
  const found = withoutUnknownReferences(await connection.introspect(effect.names), effect.after);
  return drift(connection, collectionsAfter(effect), found);
}

/**
 * Whether the catalog is as a raw statement makes it, once the engine remembers the changed tables so: where a catalog does not
 * have all of a table, it is read with what svc has stored of it, which is the table of before. If not, that stays stored.
 */
export async function rememberEffect({ target, epoch }: MigrationRun, effect: ExpectedEffect): Promise<boolean> {
  const { connection } = target;
  const changed = effect.names.filter((name) => effect.before.has(name) && effect.after.has(name));
  if (!connection.adopt || changed.length === 0) return false;
  const described = (model: SchemaModel): readonly Collection[] => changed.flatMap((name) => model.get(name) ?? []);
  await connection.adopt(described(effect.after), epoch);
  if ((await effectDifferences(connection, effect)).length === 0) return true;
  await connection.adopt(described(effect.before), epoch);
  return false;
}

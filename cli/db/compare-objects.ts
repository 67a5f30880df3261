import type { Migration } from '../../core/migration/migration.ts';
import { objectDrift, readObjects, unreadAmong } from '../../core/migration/objects.ts';
import { rawMentions } from '../../core/migration/raw-mentions.ts';
import type { Target } from '../../core/migration/target.ts';
import { type DatabaseObject, nameInTable, objectsAfter } from '../../core/schema/database-object.ts';

/** The differences of the objects that are not tables. One that no migration makes, but could, counts if `counts` says so. */
export async function compareObjects(
  { connection, dialect }: Target,
  completed: readonly Migration[],
  counts: (key: string) => boolean,
): Promise<{
  readonly different: readonly string[];
  readonly unmanaged: readonly string[];
  /** Those of the unmanaged ones that no migration can make, because of what they use. */
  readonly usingOthers: readonly DatabaseObject[];
}> {
  const expected = objectsAfter(completed.flatMap(({ up }) => up));
  for (const key of unreadAmong(connection, expected).keys()) expected.delete(key);
  const all = await readObjects(connection);
  const findRaw = rawMentions(completed, dialect.name);
  const unmanaged = [...all].flatMap(([key, object]) =>
    expected.has(key) || findRaw(nameInTable(object)) !== undefined ? [] : [key],
  );
  const usingOthers = unmanaged.flatMap((key) => all.get(key) ?? []).filter(({ uses }) => uses !== undefined);
  const isMakeable = (key: string): boolean => all.get(key)?.uses === undefined;
  const compared = new Set([...expected.keys(), ...unmanaged.filter((key) => counts(key) && isMakeable(key))]);
  const found = new Map([...all].filter(([key]) => compared.has(key)));
  return { different: await objectDrift(connection, expected, found), unmanaged, usingOthers };
}

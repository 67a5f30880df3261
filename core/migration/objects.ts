import type { Connection, Dialect, Statement } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import {
  type DatabaseObject,
  describeObjectDifferences,
  type ObjectModel,
  objectKey,
  objectModel,
} from '../schema/database-object.ts';
import type { ObjectOperation } from '../schema/operation.ts';
import { wouldDestroyData } from './raw-effect.ts';

/** Throws `not_supported` for a kind that the engine does not have, and `migration_invalid`. */
export function compileObject<Step>(dialect: Dialect<Step>, operation: ObjectOperation): readonly Statement<Step>[] {
  assertKind(dialect, operation);
  const statements = dialect.objects?.compile(operation) ?? [];
  // A text may have more statements than the one that creates the object.
  const destructive = operation.type !== 'dropObject' && wouldDestroyData(operation.definition);
  return destructive ? statements.map((statement) => ({ ...statement, destructive })) : statements;
}

export function assertKind({ name, objects }: Dialect, object: Pick<DatabaseObject, 'kind' | 'name'>): void {
  if (objects?.kinds.includes(object.kind)) return;
  throw new SvcError('not_supported', `The dialect ${name} cannot create "${objectKey(object)}".`, {
    why: objects ? `Its kinds are ${objects.kinds.join(', ')}.` : 'It creates tables only.',
    state: 'Nothing was changed.',
    next: ['Write a raw statement for it instead.'],
  });
}

/** The objects of the catalog; none on an engine without them. */
export const readObjects = async (connection: Connection): Promise<ObjectModel> =>
  objectModel((await connection.objects?.()) ?? []);

/** Those of the objects that the connection does not read: nothing is known of them. */
export const unreadAmong = ({ unreadKinds }: Pick<Connection, 'unreadKinds'>, objects: ObjectModel): ObjectModel =>
  new Map([...objects].filter(([, { kind }]) => unreadKinds?.has(kind)));

/** The differences between expected objects and those of the catalog, in words. */
export async function objectDrift(
  connection: Connection,
  expected: ObjectModel,
  found: ObjectModel,
): Promise<readonly string[]> {
  return describeObjectDifferences(await withServerTexts(connection, expected, found), found);
}

/** The expected objects, each with the text of the catalog if that is what the server makes of it. */
export async function withServerTexts(
  connection: Connection,
  expected: ObjectModel,
  found: ObjectModel,
): Promise<ObjectModel> {
  const different = [...expected.values()].filter((object) => {
    const other = found.get(objectKey(object));
    return other !== undefined && other.definition !== object.definition;
  });
  const normal = different.length > 0 ? await connection.normalizeObjects?.(different) : undefined;
  return new Map([...expected, ...objectModel(normal ?? [])]);
}

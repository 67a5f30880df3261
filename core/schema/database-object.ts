import type { MigrationOperation, ObjectOperation } from './operation.ts';

/** What is not a table and is defined by a text in the language of the engine: a view, a function, a trigger, a type. */
export interface DatabaseObject {
  /** The folder of its file, such as `view`. The dialect lists its kinds. */
  readonly kind: string;
  /** Unique among its kind. What belongs to a table has the name of it first: `users.audit`. */
  readonly name: string;
  /** Without the last semicolon. */
  readonly definition: string;
  /** Of an object of a catalog: what it uses that migrations do not create, such as `table audit.log`. */
  readonly uses?: string;
}

/** The objects of a database, by `kind/name`. */
export type ObjectModel = ReadonlyMap<string, DatabaseObject>;

export const objectKey = ({ kind, name }: Pick<DatabaseObject, 'kind' | 'name'>): string => `${kind}/${name}`;

/** The name without that of the table it belongs to, and without what distinguishes it from others of its name. */
export const nameInTable = ({ name }: Pick<DatabaseObject, 'name'>): string =>
  name.slice(name.indexOf('.') + 1).replace(/\(.*\)$/s, '');

export const objectModel = (objects: Iterable<DatabaseObject>): ObjectModel =>
  new Map([...objects].map((object) => [objectKey(object), object]));

export function isObjectOperation(operation: MigrationOperation): operation is ObjectOperation {
  return operation.type === 'createObject' || operation.type === 'replaceObject' || operation.type === 'dropObject';
}

export function applyToObjects(draft: Map<string, DatabaseObject>, operation: ObjectOperation): void {
  const { kind, name } = operation;
  if (operation.type === 'dropObject') draft.delete(objectKey(operation));
  else draft.set(objectKey(operation), { kind, name, definition: operation.definition });
}

/** The objects after operations in order. */
export function objectsAfter(operations: Iterable<MigrationOperation>): Map<string, DatabaseObject> {
  const draft = new Map<string, DatabaseObject>();
  for (const operation of operations) if (isObjectOperation(operation)) applyToObjects(draft, operation);
  return draft;
}

/** The operation that undoes another. */
export function invertObjectOperation(operation: ObjectOperation): ObjectOperation {
  const { kind, name } = operation;
  switch (operation.type) {
    case 'createObject':
      return { type: 'dropObject', kind, name, was: operation.definition };
    case 'replaceObject':
      return { type: 'replaceObject', kind, name, definition: operation.was, was: operation.definition };
    case 'dropObject':
      return { type: 'createObject', kind, name, definition: operation.was };
  }
}

/** The differences between expected and actual objects, in words. */
export function describeObjectDifferences(expected: ObjectModel, found: ObjectModel): string[] {
  const lines: string[] = [];
  for (const [key, { definition }] of expected) {
    const other = found.get(key);
    if (!other) lines.push(`${key} is missing`);
    else if (other.definition !== definition) lines.push(`${key} has another definition`);
  }
  for (const key of found.keys()) if (!expected.has(key)) lines.push(`${key} is not expected`);
  return lines;
}

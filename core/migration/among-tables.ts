import type { ObjectRules } from '../dialect.ts';
import { isPlainObject } from '../json.ts';
import type { DatabaseObject } from '../schema/database-object.ts';
import type { Operation } from '../schema/operation.ts';

/** Which text names what. */
interface Naming {
  readonly rules: ObjectRules;
  names(text: string, name: string): boolean;
  /** Whether the engine would not drop `other` without `object`. */
  dependsOn(object: DatabaseObject, other: DatabaseObject): boolean;
}

/** Whether an operation changes nothing that a new object could have to wait for. */
export const isCreation = ({ type }: Operation): boolean =>
  type === 'createCollection' || type === 'createIndex' || type === 'addConstraint';

/**
 * The operations with those of the objects that new tables need: each is after the new tables and the objects that it is bound
 * to, which come earlier for it, and before what names it. Where a table and an object name each other, one of them has the
 * name of something else: a type is created before the table then, and a view after it.
 */
export function amongTables(
  naming: Naming,
  operations: readonly Operation[],
  objects: readonly DatabaseObject[],
): readonly (Operation | DatabaseObject)[] {
  const { rules } = naming;
  const texts = new Map(operations.map((operation) => [operation, nativeTexts(operation).join(' ')]));
  const all = [...texts.values()].join(' ');
  const named = objects.flatMap((object) => {
    const name = rules.referredName(object);
    return name !== undefined && naming.names(all, name) ? [{ object, name }] : [];
  });
  if (named.length === 0) return operations;

  const tables = new Map(operations.flatMap((one) => (one.type === 'createCollection' ? [[one.name, one]] : [])));
  const keys = operations.filter(isKey);
  const placed = new Set<Operation | DatabaseObject>();
  const begunTables = new Set<Operation>();
  /** With the number of tables that were begun then: what one of these needs waits, and what does not is in a circle of objects. */
  const begunObjects = new Map<DatabaseObject, number>();
  /** Whether all that the text names are there. */
  const placeTables = (text: string, alsoKeys: boolean): boolean => {
    let isPlaced = true;
    for (const [name, table] of tables) {
      if (!naming.names(text, name)) continue;
      isPlaced = place(table, false) && isPlaced;
      for (const key of alsoKeys ? keys : []) if (key.collection === name) place(key, false);
    }
    return isPlaced;
  };
  const placeObject = (object: DatabaseObject): boolean => {
    if (placed.has(object)) return true;
    const begun = begunObjects.get(object);
    if (begun !== undefined) return begun === begunTables.size;
    begunObjects.set(object, begunTables.size);
    const isPlaced =
      objects.every((other) => !naming.dependsOn(object, other) || placeObject(other)) &&
      (placeTables(rules.boundText(object), true) || rules.beforeTables.has(object.kind));
    begunObjects.delete(object);
    if (isPlaced) placed.add(object);
    return isPlaced;
  };
  const place = (operation: Operation, isLast: boolean): boolean => {
    if (placed.has(operation)) return true;
    if (begunTables.has(operation)) return false;
    begunTables.add(operation);
    const text = texts.get(operation) ?? '';
    const isOfTable = (object: DatabaseObject): boolean =>
      operation.type === 'createCollection' &&
      !rules.beforeTables.has(object.kind) &&
      naming.names(rules.boundText(object), operation.name);
    const isPlaced =
      text === '' ||
      named.every(
        ({ object, name }) => !naming.names(text, name) || placeObject(object) || isLast || isOfTable(object),
      );
    if (isPlaced && text !== '' && operation.type === 'createCollection') placeTables(text, false);
    begunTables.delete(operation);
    if (isPlaced) placed.add(operation);
    return isPlaced;
  };
  for (const operation of operations) place(operation, true);
  return [...placed];
}

/** A view may group by it, and a foreign key of a partition refer to it. */
const isKey = (operation: Operation): operation is Extract<Operation, { type: 'createIndex' | 'addConstraint' }> =>
  operation.type === 'createIndex'
    ? operation.unique === true
    : operation.type === 'addConstraint' && /^(?:unique|primaryKey)$/.test(operation.constraint.type);

/** The texts in the language of the engine that are in operations on tables. */
export function nativeTexts(value: unknown, key = ''): readonly string[] {
  if (typeof value === 'string') return NATIVE_KEYS.has(key) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((item) => nativeTexts(item, key));
  if (!isPlainObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => nativeTexts(member, name));
}

const NATIVE_KEYS: ReadonlySet<string> = new Set(['native', 'expression', '$expression', 'statement']);

import type { ChangeOfRead, ObjectRules } from '../dialect.ts';
import { type DatabaseObject, type ObjectModel, objectKey } from '../schema/database-object.ts';
import { inPlaces } from '../schema/in-places.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { MigrationOperation, ModelOperation, ObjectOperation, Operation } from '../schema/operation.ts';
import { PathWords, schemasIn } from '../schema/path-words.ts';
import { amongTables, isCreation, nativeTexts } from './among-tables.ts';
import { assertPlaces, movedForPlaces } from './object-places.ts';

export interface ObjectChange {
  readonly before: ObjectModel;
  readonly after: ObjectModel;
  /** The tables before, whose fields may be of a type that is replaced. */
  readonly tables?: SchemaModel;
}

/** Which object uses which, read from the words of their texts. */
class References {
  readonly rules: ObjectRules;
  readonly #paths: PathWords;
  readonly #words = new Map<string, ReadonlySet<string>>();

  constructor(rules: ObjectRules, schemas: readonly string[]) {
    this.rules = rules;
    this.#paths = new PathWords(schemas);
  }

  names(text: string, name: string): boolean {
    const words = this.#wordsOf(text);
    const path = this.#paths.wordOf(name);
    return path === undefined ? [...this.#wordsOf(name)].every((word) => words.has(word)) : words.has(path);
  }

  #wordsOf(text: string): ReadonlySet<string> {
    const known = this.#words.get(text);
    if (known) return known;
    const words = new Set(this.#paths.wordsOf(text));
    this.#words.set(text, words);
    return words;
  }

  refersTo(object: DatabaseObject, other: DatabaseObject): boolean {
    const name = this.rules.referredName(other);
    if (name === undefined || objectKey(object) === objectKey(other)) return false;
    // Its text has the name of both: an aggregate calls a function of its name, which does not call it.
    if (object.kind !== other.kind && this.rules.referredName(object) === name)
      return this.rank(other) < this.rank(object);
    return this.names(object.definition, name);
  }

  rank({ kind }: DatabaseObject): number {
    return this.rules.kinds.indexOf(kind);
  }

  /** Whether the engine would not drop `other` without `object`. */
  dependsOn(object: DatabaseObject, other: DatabaseObject): boolean {
    return this.refersTo({ ...object, definition: this.rules.boundText(object) }, other);
  }

  /** An order in which each object comes after those that its text names. In a circle, the kinds decide. */
  inOrder(objects: readonly DatabaseObject[]): DatabaseObject[] {
    const sorted = [...objects].sort((a, b) => this.rank(a) - this.rank(b) || (a.name < b.name ? -1 : 1));
    const byWord = new Map<string, DatabaseObject[]>();
    for (const object of sorted) {
      const name = this.rules.referredName(object) ?? '';
      const word = this.#paths.wordOf(name) ?? [...this.#wordsOf(name)][0] ?? '';
      byWord.set(word, [...(byWord.get(word) ?? []), object]);
    }
    const ordered = new Set<DatabaseObject>();
    const visited = new Set<DatabaseObject>();
    const visit = (object: DatabaseObject): void => {
      if (visited.has(object)) return;
      visited.add(object);
      const named = [...this.#wordsOf(object.definition)].flatMap((word) => byWord.get(word) ?? []);
      for (const other of named) if (this.refersTo(object, other)) visit(other);
      ordered.add(object);
    };
    for (const object of sorted) visit(object);
    return inPlaces([...ordered], objectKey, (object) => this.rules.place?.(object)?.nextTo);
  }
}

/**
 * The operations that lead from some objects to others, around operations on tables: what tables use comes before them, or
 * between them if it needs some of them, what reads them after them, and what prevents a change of a field is dropped before it
 * and created again. Which object uses which is read from the names in their texts.
 */
export function arrangeObjects(
  rules: ObjectRules,
  operations: readonly Operation[],
  change: ObjectChange,
): MigrationOperation[] {
  const { before, after } = change;
  if (before.size + after.size === 0) return [...operations];
  assertPlaces(rules, before, after);
  const references = new References(rules, schemasIn([...before.values(), ...after.values()]));
  const removed = [...before.values()].filter((object) => !after.has(objectKey(object)));
  const aside = inTheWay(references, operations, change, removed);
  const dropped = references.inOrder([...removed, ...aside.values()]).reverse();
  const wanted = [...after.values()].filter((object) => {
    const known = before.get(objectKey(object));
    return known?.definition !== object.definition || aside.has(objectKey(object));
  });
  const touched = new Set(operations.flatMap(tablesOf));
  const texts = nativeTexts(operations).join(' ');
  const ordered = references.inOrder(wanted);
  const needed = neededByTables(references, ordered, texts);
  const created = operations.flatMap((one) => (one.type === 'createCollection' ? [one.name] : []));
  const changed = new Set(operations.filter((one) => !isCreation(one)).flatMap(tablesOf));
  const isNew = (object: DatabaseObject): boolean =>
    rules.rowTypes === true &&
    !before.has(objectKey(object)) &&
    ![...changed].some((table) => references.names(object.definition, table));
  const isEarly = (object: DatabaseObject): boolean => {
    if (!rules.beforeTables.has(object.kind)) return false;
    if (rules.independent?.has(object.kind)) return true;
    if (!needed.has(object)) return ![...touched].some((table) => references.names(object.definition, table));
    return !(isNew(object) && created.some((table) => references.names(rules.boundText(object), table)));
  };
  const early = new Set<DatabaseObject>();
  const among: DatabaseObject[] = [];
  const late: DatabaseObject[] = [];
  for (const object of ordered) {
    const isAfter = (others: readonly DatabaseObject[]): boolean =>
      others.some((other) => references.refersTo(object, other));
    if (isEarly(object) && !isAfter(among) && !isAfter(late)) early.add(object);
    else (isNew(object) && !isAfter(late) ? among : late).push(object);
  }
  const placed = new Set<MigrationOperation | DatabaseObject>(amongTables(references, operations, among));
  const droppedTables = operations.flatMap((one) => (one.type === 'dropCollection' ? [one.collection] : []));
  const isDroppedLast = (object: DatabaseObject): boolean =>
    rules.beforeTables.has(object.kind) &&
    !aside.has(objectKey(object)) &&
    (rules.independent?.has(object.kind) || !droppedTables.some((table) => references.names(object.definition, table)));
  const make = (object: DatabaseObject): ObjectOperation => {
    const { kind, name, definition } = object;
    const known = aside.has(objectKey(object)) ? undefined : before.get(objectKey(object));
    return known
      ? { type: 'replaceObject', kind, name, definition, was: known.definition }
      : { type: 'createObject', kind, name, definition };
  };
  const first = [...early].map(make);
  // Each is a migration of its own, which must not come between a drop and what creates the object again.
  const alone = first.filter((operation) => rules.compile(operation).some(({ transactional }) => !transactional));
  const renamed = wanted.flatMap((object) => {
    const known = before.get(objectKey(object));
    return known ? (rules.renamedValues?.(known, object) ?? []) : [];
  });
  return [
    ...defaultsAside(operations, renamed),
    ...alone,
    ...dropped.filter((object) => !isDroppedLast(object)).map(drop),
    ...first.filter((operation) => !alone.includes(operation)),
    ...[...placed].map((one) => ('type' in one ? one : make(one))),
    ...ordered.filter((object) => !early.has(object) && !placed.has(object)).map(make),
    ...dropped.filter(isDroppedLast).map(drop),
  ];
}

/** What the texts of tables name, and what that depends on. `ordered` has each object after those that it names. */
function neededByTables(
  references: References,
  ordered: readonly DatabaseObject[],
  texts: string,
): ReadonlySet<DatabaseObject> {
  const { rules } = references;
  const needed = new Set<DatabaseObject>();
  for (const object of ordered.toReversed()) {
    const name = rules.referredName(object);
    if (name === undefined || !rules.beforeTables.has(object.kind)) continue;
    if (references.names(texts, name) || [...needed].some((other) => references.dependsOn(other, object)))
      needed.add(object);
  }
  return needed;
}

/** A default that is a renamed value is taken away before and set after, so that each rollback has the value that it sets. */
function defaultsAside(operations: readonly Operation[], renamed: readonly string[]): readonly Operation[] {
  return operations.flatMap((operation): readonly Operation[] => {
    if (operation.type !== 'modifyField' || !renamed.some((value) => value === operation.changes.default)) return [];
    const { type, collection, field } = operation;
    return [{ type, collection, field, changes: { default: null } }];
  });
}

function drop({ kind, name, definition }: DatabaseObject): ObjectOperation {
  return { type: 'dropObject', kind, name, was: definition };
}

/** The objects that prevent one of the operations and stay, with those that need them. */
function inTheWay(
  references: References,
  operations: readonly Operation[],
  { before, after, tables = new Map() }: ObjectChange,
  removed: readonly DatabaseObject[],
): ReadonlyMap<string, DatabaseObject> {
  const { rules } = references;
  const moved = [...before.values()].filter((object) => {
    const next = after.get(objectKey(object));
    return next !== undefined && next.definition !== object.definition && rules.movesFields?.(object, next) === true;
  });
  const changes = [
    ...changesByFormerName(operations),
    ...moved.flatMap((type) => fieldsOf(references, tables, type)),
  ].flatMap((change) => [change, ...inObjects(references, before, change)]);
  // A table has rows, which would be lost.
  const isMovable = ({ kind }: DatabaseObject): boolean => !rules.tables?.has(kind);
  const remaining = new Map([...before].filter(([key, object]) => after.has(key) && isMovable(object)));
  const aside = new Map<string, DatabaseObject>();
  const isBlocking = (object: DatabaseObject): boolean => {
    const bound = { ...object, definition: rules.boundText(object) };
    const next = after.get(objectKey(object));
    // A text that follows a rename is valid only after it, and the one before it only after the rename is undone.
    const isEdited = next?.definition !== object.definition;
    const isBlocked = ({ change, ...fields }: ChangedFields) =>
      rules.isInTheWay(object.kind, isEdited && change === 'rename' ? 'drop' : change) &&
      reads(references, bound, fields);
    if (changes.some(isBlocked)) return true;
    if (rules.isInTheWay(object.kind, 'type') && moved.some((type) => references.dependsOn(object, type))) return true;
    if (next === undefined || !isEdited || rules.isReplacedInPlace(object, next)) return false;
    return [...remaining.values()].some((other) => references.dependsOn(other, object));
  };
  const isMoved = (object: DatabaseObject): boolean =>
    [...aside.values(), ...removed].some((other) => references.dependsOn(object, other));
  for (let found = true; found; ) {
    found = false;
    for (const [key, object] of remaining) {
      if (!isBlocking(object) && !isMoved(object)) continue;
      remaining.delete(key);
      aside.set(key, object);
      found = true;
    }
  }
  const inOrder = (objects: readonly DatabaseObject[]) => references.inOrder(objects);
  for (const object of movedForPlaces(rules, { before, after, aside, inOrder })) aside.set(objectKey(object), object);
  return aside;
}

interface ChangedFields {
  readonly change: ChangeOfRead;
  readonly table: string;
  /** Absent: the whole table. */
  readonly field?: string;
}

/** The fields of a type that is replaced. */
function fieldsOf(references: References, tables: SchemaModel, type: DatabaseObject): readonly ChangedFields[] {
  const name = references.rules.referredName(type);
  if (name === undefined) return [];
  return [...tables.values()].flatMap(({ name: table, fields }) =>
    [...fields.values()]
      .filter(({ native }) => native !== undefined && references.names(native, name))
      .map((field): ChangedFields => ({ change: 'type', table, field: field.name })),
  );
}

/** The changes, with the names that the texts of objects have before all of them. */
function changesByFormerName(operations: readonly Operation[]): readonly ChangedFields[] {
  const tables = new Map<string, string>();
  const fields = new Map<string, string>();
  const formerTable = (table: string): string => tables.get(table) ?? table;
  const keyOf = (table: string, field: string): string => JSON.stringify([formerTable(table), field]);
  return operations.flatMap((operation) => {
    const changes = changedFields(operation).map(({ change, table, field }) => ({
      change,
      table: formerTable(table),
      ...(field !== undefined && { field: fields.get(keyOf(table, field)) ?? field }),
    }));
    if (operation.type === 'renameCollection') tables.set(operation.to, formerTable(operation.collection));
    if (operation.type === 'renameField') {
      const { collection, from, to } = operation;
      fields.set(keyOf(collection, to), fields.get(keyOf(collection, from)) ?? from);
    }
    return changes;
  });
}

/** The fields whose readers an engine would not leave as they are. */
function changedFields(operation: Operation): readonly ChangedFields[] {
  switch (operation.type) {
    case 'dropCollection':
      return [{ change: 'drop', table: operation.collection }];
    case 'renameCollection':
      return [{ change: 'rename', table: operation.collection }];
    case 'dropField':
      return [{ change: 'drop', table: operation.collection, field: operation.field }];
    case 'modifyField': {
      const { type, native, length, precision, scale, items, enumValues } = operation.changes;
      const isTypeChange = [type, native, length, precision, scale, items, enumValues].some((one) => one !== undefined);
      return isTypeChange ? [{ change: 'type', table: operation.collection, field: operation.field }] : [];
    }
    case 'renameField':
      return [
        {
          change: operation.strategy === 'copy' ? 'drop' : 'rename',
          table: operation.collection,
          field: operation.from,
        },
      ];
    case 'dropIndex':
      return [{ change: 'index', table: operation.collection, field: operation.index }];
    case 'dropConstraint':
      return [{ change: 'index', table: operation.collection, field: operation.constraint }];
    default:
      return [];
  }
}

/** The same change in the objects that are tables with the fields of the changed one. */
function inObjects(references: References, before: ObjectModel, change: ChangedFields): readonly ChangedFields[] {
  const { tables } = references.rules;
  if (!tables) return [];
  const found = new Map<string, ChangedFields>();
  const visit = ({ table }: ChangedFields): void => {
    for (const { kind, name, definition } of before.values()) {
      if (!tables.has(kind) || found.has(name) || !references.names(definition, table)) continue;
      const same = { ...change, table: name };
      found.set(name, same);
      visit(same);
    }
  };
  visit(change);
  return [...found.values()];
}

function reads(
  references: References,
  { definition }: DatabaseObject,
  { table, field }: Omit<ChangedFields, 'change'>,
): boolean {
  if (!references.names(definition, table)) return false;
  return field === undefined || references.names(definition, field) || definition.includes('*');
}

function tablesOf(operation: Operation): readonly string[] {
  if (operation.type === 'raw') return (operation.makes ?? []).flatMap((made: ModelOperation) => tablesOf(made));
  if (operation.type === 'renameCollection') return [operation.collection, operation.to];
  return [operation.type === 'createCollection' ? operation.name : operation.collection];
}

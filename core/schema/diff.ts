import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import { applyInPlace } from './apply.ts';
import { toCreateCollection, toCreateIndex, toFieldDefinition } from './define.ts';
import { diffField } from './define-field.ts';
import { collectionOf } from './find-or-throw.ts';
import { dependentsOfCollection, primaryKeyFields, sameColumns, uniqueKeys } from './keys.ts';
import { mirrorToEnd } from './mirror.ts';
import type { Collection, Constraint, ForeignKey, Index, SchemaModel } from './model.ts';
import { MutableSchema, referencedTables } from './mutable-schema.ts';
import { fieldsInTextOfConstraint, fieldsInTextOfIndex } from './native.ts';
import type { AddConstraint, Operation } from './operation.ts';
import {
  assertRenames,
  mapNames,
  type NameMap,
  NO_RENAMES,
  orderedRenames,
  type Renames,
  renameConstraint,
  renameIndex,
  renameOptions,
} from './rename/renames.ts';

/** The operations so far and the model they result in. Emitting an invalid operation throws. */
interface Script {
  readonly operations: Operation[];
  readonly draft: MutableSchema;
  readonly names: NameMap;
}

/**
 * The operations from one model to another, in an order in which each is valid: foreign keys are dropped first and added
 * last. Anything not in `renames` is dropped and added. Throws `options_cannot_change`.
 */
export function diff(from: SchemaModel, to: SchemaModel, renames: Renames = NO_RENAMES): Operation[] {
  assertRenames(from, to, renames);
  const names = mapNames(from, to, renames);
  const pairs: CollectionPair[] = [];
  const removed: Collection[] = [];
  for (const before of from.values()) {
    const name = names.collection(before.name);
    const after = name === undefined ? undefined : to.get(name);
    if (after) pairs.push({ before, after });
    else removed.push(before);
  }
  const changed = pairs.filter(
    ({ before, after }) => !isDeepStrictEqual(before, after) || !areNamesUnchanged(before, names),
  );
  const paired = new Set(pairs.map(({ after }) => after.name));
  const added = [...to.values()].filter(({ name }) => !paired.has(name));
  if (changed.length === 0 && removed.length === 0 && added.length === 0) return [];

  for (const pair of changed) assertOptionsUnchanged(pair, names);
  const script: Script = { operations: [], draft: new MutableSchema(from), names };
  const byOldName = new Map(pairs.map((pair) => [pair.before.name, pair]));
  dropForeignKeys(script, pairs, byOldName);
  dropCollections(script, removed);
  for (const pair of changed) dropIndexesAndConstraints(script, pair);
  renameCollections(script, pairs);
  for (const collection of added) emit(script, toCreateCollection(collection));
  for (const pair of changed) changeFields(script, pair);
  const wanted = [...pairs.map(({ after }) => after), ...added];
  for (const collection of wanted) createIndexes(script, collection);
  for (const collection of wanted) addConstraints(script, collection, (type) => type !== 'foreignKey');
  for (const collection of wanted) addConstraints(script, collection, (type) => type === 'foreignKey');
  return script.operations;
}

function emit({ operations, draft }: Script, operation: Operation): void {
  applyInPlace(draft, operation);
  operations.push(operation);
}

/** Equal tables may still need changes: a field was dropped and another one renamed to its name. */
function areNamesUnchanged({ name, fields }: Collection, names: NameMap): boolean {
  return names.collection(name) === name && [...fields.keys()].every((field) => names.field(name, field) === field);
}

function assertOptionsUnchanged({ before, after }: CollectionPair, names: NameMap): void {
  if (isDeepStrictEqual(renameOptions(before, names), after.options)) return;
  throw new SvcError('options_cannot_change', `The options of the table "${after.name}" cannot be changed.`, {
    why: `They are ${JSON.stringify(before.options)} and would become ${JSON.stringify(after.options)}.`,
    next: [
      'Change them with a raw migration whose `makes` drops the table and creates it with the new options, or create a table under another name and move the rows.',
    ],
  });
}

function dropForeignKeys(
  script: Script,
  pairs: readonly CollectionPair[],
  byOldName: ReadonlyMap<string, CollectionPair>,
): void {
  for (const pair of pairs) {
    for (const constraint of pair.before.constraints.values()) {
      if (constraint.type !== 'foreignKey') continue;
      // The referenced table existed before it became part of the model.
      const adopted = !script.draft.has(constraint.references.table);
      if (adopted && isDeepStrictEqual(pair.after.constraints.get(constraint.name), constraint)) continue;
      if (isForeignKeyUnchanged(constraint, pair, byOldName.get(constraint.references.table), script.names)) continue;
      emit(script, { type: 'dropConstraint', collection: pair.before.name, constraint: constraint.name });
    }
  }
}

/** Unreferenced tables first. Dropping foreign keys breaks a cycle. */
function dropCollections(script: Script, removed: readonly Collection[]): void {
  const { draft } = script;
  const remaining = new Set(removed.map(({ name }) => name));
  const isFree = (name: string) => draft.referringTables(name).every((referrer) => referrer === name);
  const free = [...remaining].filter(isFree);
  for (let next = 0; remaining.size > 0; ) {
    const name = free[next++] ?? [...remaining][0];
    if (name === undefined || !remaining.delete(name)) continue;
    for (const drop of dependentsOfCollection(draft, name)) emit(script, drop);
    const freed = referencedTables(collectionOf(draft, name));
    emit(script, { type: 'dropCollection', collection: name });
    for (const target of freed) if (remaining.has(target) && isFree(target)) free.push(target);
  }
}

function dropIndexesAndConstraints(script: Script, pair: CollectionPair): void {
  const collection = pair.before.name;
  for (const constraint of pair.before.constraints.values()) {
    if (constraint.type === 'foreignKey' || isConstraintUnchanged(constraint, pair, script.names)) continue;
    emit(script, { type: 'dropConstraint', collection, constraint: constraint.name });
  }
  for (const index of pair.before.indexes.values()) {
    if (!isIndexUnchanged(index, pair, script.names))
      emit(script, { type: 'dropIndex', collection, index: index.name });
  }
}

function renameCollections(script: Script, pairs: readonly CollectionPair[]): void {
  const renames = pairs.map(({ before, after }) => [before.name, after.name] as const);
  for (const [collection, to] of orderedRenames(renames, script.draft.keys())) {
    emit(script, { type: 'renameCollection', collection, to });
  }
}

function changeFields(script: Script, { before, after }: CollectionPair): void {
  const { draft, names } = script;
  const collection = after.name;
  const successor = (field: string) => names.field(before.name, field);
  const removed = [...before.fields.keys()].filter((field) => successor(field) === undefined);
  const remaining = new Map([...before.fields.keys()].flatMap((old) => newToOld(old, successor(old))));
  const added = [...after.fields.values()].filter((field) => !remaining.has(field.name));
  const dropRemoved = () => {
    for (const field of removed)
      emit(script, { type: 'dropField', collection, field, ...mirrorToEnd(collectionOf(draft, collection), field) });
  };
  // Some engines do not allow tables without fields.
  const replacesAll = remaining.size === 0;
  if (!replacesAll) dropRemoved();
  const renames = [...remaining].map(([name, old]) => [old, name] as const);
  for (const [from, to] of orderedRenames(renames, collectionOf(draft, collection).fields.keys())) {
    emit(script, { type: 'renameField', collection, from, to });
  }
  for (const field of added) emit(script, { type: 'addField', collection, field: toFieldDefinition(field) });
  if (replacesAll) dropRemoved();
  for (const [name] of remaining) {
    const oldField = collectionOf(draft, collection).fields.get(name);
    const newField = after.fields.get(name);
    const changes = oldField && newField && diffField(oldField, newField);
    if (changes) emit(script, { type: 'modifyField', collection, field: name, changes });
  }
}

function newToOld(old: string, name: string | undefined): [name: string, old: string][] {
  return name === undefined ? [] : [[name, old]];
}

/** Creates all missing indexes, including those dropped earlier in the script. */
function createIndexes(script: Script, wanted: Collection): void {
  for (const index of wanted.indexes.values()) {
    if (collectionOf(script.draft, wanted.name).indexes.has(index.name)) continue;
    emit(script, toCreateIndex(wanted.name, index));
  }
}

function addConstraints(script: Script, wanted: Collection, includes: (type: Constraint['type']) => boolean): void {
  for (const constraint of wanted.constraints.values()) {
    if (!includes(constraint.type)) continue;
    if (collectionOf(script.draft, wanted.name).constraints.has(constraint.name)) continue;
    emit(script, addConstraint(wanted.name, constraint));
  }
}

function addConstraint(collection: string, constraint: Constraint): AddConstraint {
  return { type: 'addConstraint', collection, constraint };
}

/** A table that exists in both models. */
interface CollectionPair {
  readonly before: Collection;
  readonly after: Collection;
}

/** Whether an index with renamed columns equals the target index. */
function isIndexUnchanged(index: Index, pair: CollectionPair, names: NameMap): boolean {
  const { before, after } = pair;
  const wanted = after.indexes.get(index.name);
  if (!wanted || !isDeepStrictEqual(renameIndex(index, before.name, names), wanted)) return false;
  return fieldsInTextOfIndex(index).every((field) => isFieldUnchanged(field, pair, names));
}

/** The same for a constraint. Its text does not change when a field that it reads gets another name or type. */
function isConstraintUnchanged(constraint: Constraint, pair: CollectionPair, names: NameMap): boolean {
  const { before, after } = pair;
  const wanted = after.constraints.get(constraint.name);
  if (!wanted || !isDeepStrictEqual(renameConstraint(constraint, before.name, names), wanted)) return false;
  return fieldsInTextOfConstraint(constraint, before.fields.keys()).every((field) =>
    isFieldUnchanged(field, pair, names),
  );
}

function isFieldUnchanged(field: string, pair: CollectionPair, names: NameMap): boolean {
  return names.field(pair.before.name, field) === field && isTypeUnchanged(field, pair, names);
}

/** A foreign key is changed if a key or type it depends on is dropped, even if that is added again. */
function isForeignKeyUnchanged(
  foreignKey: ForeignKey,
  pair: CollectionPair,
  target: CollectionPair | undefined,
  names: NameMap,
): boolean {
  if (!target || !isConstraintUnchanged(foreignKey, pair, names)) return false;
  const { columns } = foreignKey.references;
  return (
    foreignKey.columns.every((column) => isTypeUnchanged(column, pair, names)) &&
    columns.every((column) => isTypeUnchanged(column, target, names)) &&
    areKeysUnchanged(columns, target, names)
  );
}

function isTypeUnchanged(column: string, { before, after }: CollectionPair, names: NameMap): boolean {
  const old = before.fields.get(column);
  const next = after.fields.get(names.field(before.name, column) ?? '');
  return (
    old !== undefined &&
    next !== undefined &&
    old.type === next.type &&
    old.items === next.items &&
    old.native === next.native
  );
}

/** Checks every unique key over these columns, because an engine may use any of them for the foreign key. */
function areKeysUnchanged(columns: readonly string[], pair: CollectionPair, names: NameMap): boolean {
  const { before, after } = pair;
  return uniqueKeys(before)
    .filter((key) => sameColumns(key.columns, columns))
    .every(({ source }) => {
      if ('constraint' in source) return isConstraintUnchanged(source.constraint, pair, names);
      if ('index' in source) return isIndexUnchanged(source.index, pair, names);
      const renamed = columns.map((column) => names.field(before.name, column) ?? '');
      if ('field' in source) return renamed.every((column) => after.fields.get(column)?.unique);
      return sameColumns(new Set(primaryKeyFields(after)), renamed);
    });
}

/** The differences between an expected and an actual model, in words. Empty if they are equal. */
export function describeDifferences(expected: SchemaModel, found: SchemaModel): string[] {
  const lines: string[] = [];
  for (const [name, collection] of expected) {
    const other = found.get(name);
    if (other) lines.push(...collectionDifferences(collection, other));
    else lines.push(`table ${name} is missing`);
  }
  for (const name of found.keys()) if (!expected.has(name)) lines.push(`table ${name} is not expected`);
  return lines;
}

function collectionDifferences(expected: Collection, found: Collection): string[] {
  const lines: string[] = [];
  for (const kind of ['fields', 'indexes', 'constraints'] as const) {
    const word = { fields: 'field', indexes: 'index', constraints: 'constraint' }[kind];
    for (const [name, part] of expected[kind]) {
      const other = found[kind].get(name);
      if (!other) lines.push(`${word} ${expected.name}.${name} is missing`);
      else if (!isDeepStrictEqual(part, other))
        lines.push(`${word} ${expected.name}.${name}: ${propertyDifferences(part, other)}`);
    }
    for (const name of found[kind].keys()) {
      if (!expected[kind].has(name)) lines.push(`${word} ${expected.name}.${name} is not expected`);
    }
  }
  if (!isDeepStrictEqual(expected.options, found.options))
    lines.push(`options of ${expected.name}: ${propertyDifferences(expected.options, found.options)}`);
  return lines;
}

function propertyDifferences(expected: object, found: object): string {
  const want = expected as Record<string, unknown>;
  const have = found as Record<string, unknown>;
  return [...new Set([...Object.keys(want), ...Object.keys(have)])]
    .filter((key) => !isDeepStrictEqual(want[key], have[key]))
    .map((key) => `${key} is ${valueText(have[key])}, expected ${valueText(want[key])}`)
    .join(', ');
}

function valueText(value: unknown): string {
  return value === undefined ? 'not set' : JSON.stringify(value);
}

import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import { change } from './apply.ts';
import { writtenCollection, writtenConstraint, writtenField, writtenIndex } from './define.ts';
import { dependentsOfCollection } from './dependents.ts';
import { Draft, targets } from './draft.ts';
import { fieldChanges } from './field-changes.ts';
import { keepsConstraint, keepsForeignKey, keepsIndex, type Pair } from './kept.ts';
import { collectionOf } from './lookup.ts';
import type { Collection, Constraint, SchemaModel } from './model.ts';
import type { AddConstraint, Operation } from './operation.ts';
import { orderedRenames } from './rename-order.ts';
import { checkRenames, followOptions, type Naming, NO_RENAMES, naming, type Renames } from './renames.ts';

/** Operations under way, and the model they have led to so far: an illegal one throws where it is emitted. */
interface Script {
  readonly operations: Operation[];
  readonly draft: Draft;
  readonly names: Naming;
}

/**
 * Operations that lead from one model to another, in an order in which each is legal: foreign keys go first and
 * come last. What `renames` does not name is dropped and added. Throws `options_cannot_change`.
 */
export function diff(from: SchemaModel, to: SchemaModel, renames: Renames = NO_RENAMES): Operation[] {
  checkRenames(from, to, renames);
  const names = naming(from, to, renames);
  const pairs: Pair[] = [];
  const gone: Collection[] = [];
  for (const before of from.values()) {
    const name = names.collection(before.name);
    const after = name === undefined ? undefined : to.get(name);
    if (after) pairs.push({ before, after });
    else gone.push(before);
  }
  const changed = pairs.filter(({ before, after }) => !isDeepStrictEqual(before, after) || !keepsNames(before, names));
  const stayed = new Set(pairs.map(({ after }) => after.name));
  const made = [...to.values()].filter(({ name }) => !stayed.has(name));
  if (changed.length === 0 && gone.length === 0 && made.length === 0) return [];

  for (const pair of changed) checkOptions(pair, names);
  const script: Script = { operations: [], draft: new Draft(from), names };
  const byOldName = new Map(pairs.map((pair) => [pair.before.name, pair]));
  dropForeignKeys(script, pairs, byOldName);
  dropCollections(script, gone);
  for (const pair of changed) dropSupport(script, pair);
  renameCollections(script, pairs);
  for (const collection of made) emit(script, writtenCollection(collection));
  for (const pair of changed) changeFields(script, pair);
  const wanted = [...pairs.map(({ after }) => after), ...made];
  for (const collection of wanted) createIndexes(script, collection);
  for (const collection of wanted) addConstraints(script, collection, (type) => type !== 'foreignKey');
  for (const collection of wanted) addConstraints(script, collection, (type) => type === 'foreignKey');
  return script.operations;
}

function emit({ operations, draft }: Script, operation: Operation): void {
  change(draft, operation);
  operations.push(operation);
}

/** Two tables can be equal and yet not the same: a field was dropped and another one got its name. */
function keepsNames({ name, fields }: Collection, names: Naming): boolean {
  return names.collection(name) === name && [...fields.keys()].every((field) => names.field(name, field) === field);
}

function checkOptions({ before, after }: Pair, names: Naming): void {
  if (isDeepStrictEqual(followOptions(before, names), after.options)) return;
  throw new SvcError('options_cannot_change', `The options of the table "${after.name}" cannot be changed.`, {
    why: `They are ${JSON.stringify(before.options)} and would become ${JSON.stringify(after.options)}.`,
    next: ['Create a table with the new options under another name and move the rows, or write a raw migration.'],
  });
}

function dropForeignKeys(script: Script, pairs: readonly Pair[], byOldName: ReadonlyMap<string, Pair>): void {
  for (const pair of pairs) {
    for (const constraint of pair.before.constraints.values()) {
      if (constraint.type !== 'foreignKey') continue;
      // It points at a table that was there before the model knew it.
      const adopted = !script.draft.has(constraint.references.table);
      if (adopted && isDeepStrictEqual(pair.after.constraints.get(constraint.name), constraint)) continue;
      if (keepsForeignKey(constraint, pair, byOldName.get(constraint.references.table), script.names)) continue;
      emit(script, { type: 'dropConstraint', collection: pair.before.name, constraint: constraint.name });
    }
  }
}

/** Those nobody points at first; a circle is opened by dropping foreign keys. */
function dropCollections(script: Script, gone: readonly Collection[]): void {
  const { draft } = script;
  const remaining = new Set(gone.map(({ name }) => name));
  const isFree = (name: string) => draft.referrers(name).every((referrer) => referrer === name);
  const free = [...remaining].filter(isFree);
  for (let next = 0; remaining.size > 0; ) {
    const name = free[next++] ?? [...remaining][0];
    if (name === undefined || !remaining.delete(name)) continue;
    for (const drop of dependentsOfCollection(draft, name)) emit(script, drop);
    const freed = targets(collectionOf(draft, name));
    emit(script, { type: 'dropCollection', collection: name });
    for (const target of freed) if (remaining.has(target) && isFree(target)) free.push(target);
  }
}

function dropSupport(script: Script, pair: Pair): void {
  const collection = pair.before.name;
  for (const constraint of pair.before.constraints.values()) {
    if (constraint.type === 'foreignKey' || keepsConstraint(constraint, pair, script.names)) continue;
    emit(script, { type: 'dropConstraint', collection, constraint: constraint.name });
  }
  for (const index of pair.before.indexes.values()) {
    if (!keepsIndex(index, pair, script.names)) emit(script, { type: 'dropIndex', collection, index: index.name });
  }
}

function renameCollections(script: Script, pairs: readonly Pair[]): void {
  const renames = pairs.map(({ before, after }) => [before.name, after.name] as const);
  for (const [collection, to] of orderedRenames(renames, script.draft.keys())) {
    emit(script, { type: 'renameCollection', collection, to });
  }
}

function changeFields(script: Script, { before, after }: Pair): void {
  const { draft, names } = script;
  const collection = after.name;
  const successor = (field: string) => names.field(before.name, field);
  const gone = [...before.fields.keys()].filter((field) => successor(field) === undefined);
  const stayed = new Map([...before.fields.keys()].flatMap((old) => pairOf(old, successor(old))));
  const made = [...after.fields.values()].filter((field) => !stayed.has(field.name));
  const dropGone = () => {
    for (const field of gone) emit(script, { type: 'dropField', collection, field });
  };
  // A table without any field is not a table on every engine.
  const nothingStays = stayed.size === 0;
  if (!nothingStays) dropGone();
  const renames = [...stayed].map(([name, old]) => [old, name] as const);
  for (const [from, to] of orderedRenames(renames, collectionOf(draft, collection).fields.keys())) {
    emit(script, { type: 'renameField', collection, from, to });
  }
  for (const field of made) emit(script, { type: 'addField', collection, field: writtenField(field) });
  if (nothingStays) dropGone();
  for (const [name] of stayed) {
    const was = collectionOf(draft, collection).fields.get(name);
    const will = after.fields.get(name);
    const changes = was && will && fieldChanges(was, will);
    if (changes) emit(script, { type: 'modifyField', collection, field: name, changes });
  }
}

function pairOf(old: string, name: string | undefined): [name: string, old: string][] {
  return name === undefined ? [] : [[name, old]];
}

/** Whatever is wanted and not there: never made, or dropped on the way. */
function createIndexes(script: Script, wanted: Collection): void {
  for (const index of wanted.indexes.values()) {
    if (collectionOf(script.draft, wanted.name).indexes.has(index.name)) continue;
    emit(script, writtenIndex(wanted.name, index));
  }
}

function addConstraints(script: Script, wanted: Collection, takes: (type: Constraint['type']) => boolean): void {
  for (const constraint of wanted.constraints.values()) {
    if (!takes(constraint.type)) continue;
    if (collectionOf(script.draft, wanted.name).constraints.has(constraint.name)) continue;
    emit(script, added(wanted.name, constraint));
  }
}

function added(collection: string, constraint: Constraint): AddConstraint {
  return { type: 'addConstraint', collection, constraint: writtenConstraint(constraint) };
}

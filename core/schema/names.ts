import { createHash } from 'node:crypto';
import { SvcError } from '../errors.ts';
import type { Collection, SchemaModel } from './model.ts';

export type NameSuffix = 'idx' | 'key' | 'fkey' | 'check' | 'pkey';

/** How long names may be. */
export interface NameLimit {
  readonly most: number;
  readonly of: 'bytes' | 'characters';
}

export type NameKind = 'table' | 'field' | 'index' | 'constraint';

/** Which names an engine takes as they are. */
export interface NameRules extends NameLimit {
  /** Why a name within the limit cannot be used, in a sentence; nothing where it can. */
  problem?(name: string, kind: NameKind): string | undefined;
  /** Names that a table takes in the whole database, its own among them: no other table may take one of them. */
  shared?(collection: Collection): readonly string[];
}

/** Every engine of ours that has constraints takes a name of so many bytes: PostgreSQL's limit is the shortest. */
export const PORTABLE: NameLimit = { most: 63, of: 'bytes' };

/**
 * `<table>_<columns>_<suffix>`; over the limit it is cut, never inside a character, and ends in the first eight
 * hexadecimal digits of the full name's sha256: the same everywhere and every time.
 */
export function derivedName(
  table: string,
  columns: readonly string[],
  suffix: NameSuffix,
  limit: NameLimit = PORTABLE,
): string {
  const full = [table, ...columns, suffix].join('_');
  if (nameLength(full, limit) <= limit.most) return full;
  const ending = `_${createHash('sha256').update(full).digest('hex').slice(0, 8)}`;
  let kept = '';
  let length = nameLength(ending, limit);
  for (const character of full) {
    length += nameLength(character, limit);
    if (length > limit.most) break;
    kept += character;
  }
  return kept + ending;
}

const nameLength = (name: string, { of }: NameLimit): number =>
  of === 'bytes' ? Buffer.byteLength(name) : [...name].length;

/** Refuses a name that the engine would cut or cannot store. */
export function checkNameFits(engine: string, rules: NameRules, name: string, kind: NameKind): string {
  const length = nameLength(name, rules);
  const why =
    length > rules.most ? `It has ${length} ${rules.of}; the limit is ${rules.most}.` : rules.problem?.(name, kind);
  if (why === undefined) return name;
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a ${kind} on ${engine}.`, {
    why,
    next: [length > rules.most ? 'Choose a shorter name.' : 'Choose another name.'],
  });
}

/** Refuses a model in which two tables take one name of the whole database. */
export function checkSharedNames(engine: string, rules: NameRules, model: SchemaModel): void {
  const taken = new Map<string, string>();
  for (const collection of model.values()) {
    for (const name of sharedNames(rules, collection)) {
      const other = taken.get(name);
      if (other !== undefined) throw takenTwice(engine, name, other, collection.name);
      taken.set(name, collection.name);
    }
  }
}

/** Refuses a name that a table of the model takes, did not take `before`, and another one has. */
export function checkNewNames(
  engine: string,
  rules: NameRules,
  model: SchemaModel,
  collection: Collection,
  before: Collection | undefined,
): void {
  const had = new Set(before && sharedNames(rules, before));
  const fresh = new Set(sharedNames(rules, collection).filter((name) => !had.has(name)));
  if (fresh.size === 0) return;
  for (const other of model.values()) {
    const name = other === collection ? undefined : sharedNames(rules, other).find((one) => fresh.has(one));
    if (name !== undefined) throw takenTwice(engine, name, other.name, collection.name);
  }
}

function takenTwice(engine: string, name: string, one: string, other: string): SvcError {
  return new SvcError('name_invalid', `The name "${name}" is taken twice: by "${one}" and "${other}".`, {
    why: `On ${engine} the tables, indexes and keys of a database share their names.`,
    next: ['Give one of them another "name".'],
  });
}

/** A collection is of one engine and never changes, and each new one is compared with all the others. */
const known = new WeakMap<Collection, readonly string[]>();

function sharedNames({ shared }: NameRules, collection: Collection): readonly string[] {
  if (!shared) return [];
  const found = known.get(collection) ?? shared(collection);
  known.set(collection, found);
  return found;
}

/** Refuses what no engine can store as a name; limits of length and character are the dialect's. */
export function checkName(name: unknown, kind: string): asserts name is string {
  const why = nameProblem(name);
  if (why === undefined) return;
  throw new SvcError('name_invalid', `${JSON.stringify(name) ?? 'undefined'} cannot be the name of a ${kind}.`, {
    why,
    next: ['Choose another name.'],
  });
}

/** The same for a table, whose name may not be one of ours. */
export function checkTableName(name: unknown): asserts name is string {
  checkName(name, 'table');
  if (!name.startsWith('_svc_')) return;
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a table.`, {
    why: 'Names that begin with _svc_ are kept for the tables of svc itself.',
    next: ['Choose another name.'],
  });
}

function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'A name is a string.';
  if (name === '') return 'It is empty.';
  if (name.includes('\0')) return 'It contains a NUL character.';
  if (/\p{Surrogate}/u.test(name)) return 'It contains half of a surrogate pair.';
  return undefined;
}

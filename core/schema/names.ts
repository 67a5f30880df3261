import { createHash } from 'node:crypto';
import { SvcError } from '../errors.ts';
import type { Collection, SchemaModel } from './model.ts';
import type { MutableSchema } from './mutable-schema.ts';

export type NameSuffix = 'idx' | 'key' | 'fkey' | 'check' | 'pkey' | 'mirror';

/** The maximum length of names. */
export interface NameLimit {
  readonly max: number;
  readonly unit: 'bytes' | 'characters';
}

export type NameKind = 'table' | 'field' | 'index' | 'constraint';

/** The names an engine accepts. */
export interface NameRules extends NameLimit {
  /** The name of a table may begin with a schema and a dot. Each of the two has the limit. */
  readonly schemas?: true;
  /** Why a name within the limit is invalid, as a sentence; undefined if it is valid. */
  problem?(name: string, kind: NameKind): string | undefined;
  /**
   * Names of a table and its objects that must be unique in the whole database, each once. Without it, only the names of
   * tables are.
   */
  databaseWideNames?(collection: Collection): readonly string[];
}

/** The limit of PostgreSQL, the shortest of all engines with constraints. */
export const PORTABLE_NAME_LIMIT: NameLimit = { max: 63, unit: 'bytes' };

/** The limit of the names that svc derives: portable ones, unless the engine's names are shorter. */
export const derivedNameLimit = (rules: NameLimit): NameLimit =>
  rules.max < PORTABLE_NAME_LIMIT.max ? rules : PORTABLE_NAME_LIMIT;

/**
 * `<table>_<columns>_<suffix>`, of the table's name in its schema. A name over the limit is cut at a character boundary and ends with the first eight
 * hexadecimal digits of the SHA-256 of the full name.
 */
export function derivedName(
  table: string,
  columns: readonly string[],
  suffix: NameSuffix,
  limit: NameLimit = PORTABLE_NAME_LIMIT,
): string {
  return shortName([nameInSchema(table), ...columns, suffix].join('_'), limit);
}

/** The name of a table without its schema, or whatever else is before the first dot. */
export const nameInSchema = (table: string): string => table.slice(table.indexOf('.') + 1);

/** A name within the limit, which stays the same for the same `full`. */
export function shortName(full: string, limit: NameLimit): string {
  if (nameLength(full, limit) <= limit.max) return full;
  const ending = `_${createHash('sha256').update(full).digest('hex').slice(0, 8)}`;
  let prefix = '';
  let length = nameLength(ending, limit);
  for (const character of full) {
    length += nameLength(character, limit);
    if (length > limit.max) break;
    prefix += character;
  }
  return prefix + ending;
}

const nameLength = (name: string, { unit }: NameLimit): number =>
  unit === 'bytes' ? Buffer.byteLength(name) : [...name].length;

/** Throws `name_invalid` for a name that the engine truncates or cannot store. */
export function assertNameFits(engine: string, rules: NameRules, name: string, kind: NameKind): string {
  const isInSchema = rules.schemas && kind === 'table' && name.includes('.');
  const parts = isInSchema ? [name.slice(0, name.indexOf('.')), nameInSchema(name)] : [name];
  const length = Math.max(...parts.map((part) => nameLength(part, rules)));
  const isEmpty = parts.includes('');
  const why =
    length > rules.max
      ? `It has ${length} ${rules.unit}; the limit is ${rules.max}.`
      : isEmpty
        ? 'Its schema or its name is empty.'
        : rules.problem?.(name, kind);
  if (why === undefined) return name;
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a ${kind} on ${engine}.`, {
    why,
    next: [length > rules.max ? 'Choose a shorter name.' : 'Choose another name.'],
  });
}

/** Throws `name_invalid` if two tables of a model use the same database-wide name. */
export function assertDistinctNames(engine: string, rules: NameRules, model: SchemaModel): void {
  const taken = new Map<string, string>();
  for (const collection of model.values()) {
    for (const name of rules.databaseWideNames?.(collection) ?? []) {
      const other = taken.get(name);
      if (other === collection.name && usesOf(collection, name, rules) < 2) throw repeatedName(engine, name, other);
      if (other !== undefined) throw nameConflict(engine, name, other, collection.name);
      taken.set(name, collection.name);
    }
  }
}

/** Throws `name_invalid` if a database-wide name new in `collection` is used by another table of the model. */
export function assertNewNamesFree(
  engine: string,
  rules: NameRules,
  model: MutableSchema,
  collection: Collection,
  before: Collection | undefined,
): void {
  const { databaseWideNames } = rules;
  if (!databaseWideNames) return;
  const previous = before && databaseWideNames(before);
  for (const name of databaseWideNames(collection)) {
    if (previous?.includes(name)) continue;
    const other = model.tablesNamed(name, databaseWideNames).find((table) => table !== collection.name);
    if (other !== undefined) throw nameConflict(engine, name, other, collection.name);
  }
}

/** How often a table uses a name, with those that are derived for the flags of its fields. */
function usesOf({ name: table, fields, indexes, constraints }: Collection, name: string, rules: NameRules): number {
  const limit = derivedNameLimit(rules);
  const all = [...fields.values()];
  return [
    table,
    ...indexes.keys(),
    ...constraints.keys(),
    ...(all.some((field) => field.primaryKey) ? [derivedName(table, [], 'pkey', limit)] : []),
    ...all.flatMap((field) => (field.unique ? [derivedName(table, [field.name], 'key', limit)] : [])),
  ].filter((one) => one === name).length;
}

const repeatedName = (engine: string, name: string, table: string): SvcError =>
  new SvcError(
    'plugin_invalid',
    `The dialect "${engine}" returned the name "${name}" twice for the table "${table}".`,
    {
      why: 'names.databaseWideNames returns each name of a table once.',
      next: ['Report this to the author of the plugin.'],
    },
  );

function nameConflict(engine: string, name: string, one: string, other: string): SvcError {
  return new SvcError(
    'name_invalid',
    `The name "${name}" is used twice: ${one === other ? `in "${one}"` : `by "${one}" and "${other}"`}.`,
    {
      why: `On ${engine}, all tables, indexes and keys of a database share one namespace.`,
      next: ['Give one of them another "name".'],
    },
  );
}

/** Throws `name_invalid` for a name that is invalid on every engine. Dialects check length and characters. */
export function assertName(name: unknown, kind: string): asserts name is string {
  const why = nameProblem(name);
  if (why === undefined) return;
  throw new SvcError('name_invalid', `${JSON.stringify(name) ?? 'undefined'} cannot be the name of a ${kind}.`, {
    why,
    next: ['Choose another name.'],
  });
}

/** The beginning of the name that a dropped table or field has while it is kept. */
export const KEPT_PREFIX = '_svc_kept_';

/** Whether a table or a field is kept after it was dropped: it is in the catalog, and not in the schema. */
export const isKeptName = (name: string): boolean => name.startsWith(KEPT_PREFIX);

/** Like `assertName`, and rejects names reserved for the SDK. */
export function assertTableName(name: unknown): asserts name is string {
  assertName(name, 'table');
  if (!name.startsWith('_svc_')) return;
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a table.`, {
    why: 'Names that begin with _svc_ are reserved for the tables of svc.',
    next: ['Choose another name.'],
  });
}

/** Like `assertName`, and rejects names of what is kept. */
export function assertFieldName(name: unknown): asserts name is string {
  assertName(name, 'field');
  if (!isKeptName(name)) return;
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a field.`, {
    why: `Names that begin with ${KEPT_PREFIX} are reserved for what svc db migrate --keep keeps.`,
    next: ['Choose another name.'],
  });
}

function nameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'A name must be a string.';
  if (name === '') return 'It is empty.';
  if (name.includes('\0')) return 'It contains a NUL character.';
  if (/\p{Surrogate}/u.test(name)) return 'It contains half of a surrogate pair.';
  return undefined;
}

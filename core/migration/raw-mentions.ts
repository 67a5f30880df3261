import { isDeepStrictEqual } from 'node:util';
import { containsWord } from '../match-text.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';
import type { Migration } from './migration.ts';

/** Statements that change rows only. */
const ROWS_ONLY = /\b(?:insert|replace)\s+(?:ignore\s+)?into\b/gi;
/** The words of SQL, and the beginnings of command names, that define something. */
const DEFINES = /\b(?:create|alter|rename|drop)|\binto\b|\bcollmod\b|\bupdatetable\b/i;

/** Returns the tag of the first migration whose raw statement may make or change what has all of these names. */
export type FindRawMention = (...names: readonly string[]) => string | undefined;

/** Searches the raw statements of a dialect that do not say what they make. */
export function rawMentions(migrations: readonly Migration[], dialect: string): FindRawMention {
  const statements = migrations.flatMap(({ tag, up }) =>
    up.flatMap((operation) =>
      operation.type === 'raw' &&
      operation.dialect === dialect &&
      operation.makes === undefined &&
      DEFINES.test(operation.statement.replace(ROWS_ONLY, ''))
        ? [{ tag, text: operation.statement }]
        : [],
    ),
  );
  return (...names) => statements.find(({ text }) => names.every((name) => containsWord(text, name)))?.tag;
}

/** A table, or a member of one as `table.member`, that a raw statement may have made or changed, and its migration. */
export interface RawMade {
  readonly name: string;
  readonly tag: string;
}

/**
 * The catalog as it would be without what raw statements may have made: their differences from `known`, a normal form of
 * the migrations, are undone.
 */
export function withoutRawMade(
  found: SchemaModel,
  known: SchemaModel,
  find: FindRawMention,
): { readonly found: SchemaModel; readonly rawMade: readonly RawMade[] } {
  const rawMade: RawMade[] = [];
  const result = new Map<string, Collection>();
  for (const [name, collection] of found) {
    const expected = known.get(name);
    const tag = find(name);
    if (tag === undefined) result.set(name, collection);
    else if (expected) result.set(name, withoutRawMembers(collection, expected, find, rawMade));
    else rawMade.push({ name, tag });
  }
  for (const [name, expected] of known) {
    const tag = found.has(name) ? undefined : find(name);
    if (tag === undefined) continue;
    rawMade.push({ name, tag });
    result.set(name, expected);
  }
  return { found: result, rawMade };
}

function withoutRawMembers(
  collection: Collection,
  expected: Collection,
  find: FindRawMention,
  rawMade: RawMade[],
): Collection {
  const { name: table } = collection;
  const resolve = <T>(
    found: ReadonlyMap<string, T>,
    known: ReadonlyMap<string, T>,
    columnsOf: (member: T) => readonly string[],
  ): Map<string, T> => {
    const members = new Map(found);
    for (const member of new Set([...found.keys(), ...known.keys()])) {
      const [current, former] = [found.get(member), known.get(member)];
      if (isDeepStrictEqual(current, former)) continue;
      const columns = [current, former].flatMap((one) => (one === undefined ? [] : columnsOf(one)));
      const tag = find(table, member) ?? (columns.length > 0 ? find(table, ...columns) : undefined);
      if (tag === undefined) continue;
      rawMade.push({ name: `${table}.${member}`, tag });
      if (former === undefined) members.delete(member);
      else members.set(member, former);
    }
    return members;
  };
  const fields = resolve(collection.fields, expected.fields, () => []);
  const indexes = resolve(collection.indexes, expected.indexes, ({ columns }) => columns.map(({ name }) => name));
  const constraints = resolve(collection.constraints, expected.constraints, ({ columns }) => columns);
  return {
    ...collection,
    fields,
    indexes: new Map([...indexes].filter(([, { columns }]) => columns.every(({ name }) => fields.has(name)))),
    constraints: new Map([...constraints].filter(([, { columns }]) => columns.every((name) => fields.has(name)))),
  };
}

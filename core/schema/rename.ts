import { isDeepStrictEqual } from 'node:util';
import type { Collection, Field, SchemaModel } from './model.ts';
import { naming, type Renames } from './renames.ts';

/** Something went and something like it came: a rename, or a drop and an add? Only the user knows. */
export interface UndecidedRename {
  readonly kind: 'field' | 'collection';
  /** The table, by its new name. */
  readonly collection: string;
  readonly from: string;
  readonly to: string;
  /**
   * A `renamedFrom` that may be one of long ago: the new name is there already, and what has it would be dropped
   * ("replaces"), or the old name is still declared and would begin empty ("stays").
   */
  readonly doubt?: 'replaces' | 'stays';
}

/** What a person said about names that are gone: renamed, or dropped. */
export interface Decisions {
  readonly renames: readonly UndecidedRename[];
  /** As `dropKey` spells them. */
  readonly drops: ReadonlySet<string>;
}

export const UNDECIDED: Decisions = { renames: [], drops: new Set() };

export function dropKey({ kind, collection, from }: Omit<UndecidedRename, 'to'>): string {
  return kind === 'collection' ? from : `${collection}.${from}`;
}

/** Pairs that might be renames and that `renames` does not decide. */
export function undecided(from: SchemaModel, to: SchemaModel, renames: Renames): UndecidedRename[] {
  const names = naming(from, to, renames);
  const found: UndecidedRename[] = [];
  const gone: Collection[] = [];
  const stayed = new Set<string>();
  for (const before of from.values()) {
    const name = names.collection(before.name);
    const after = name === undefined ? undefined : to.get(name);
    if (!after) {
      gone.push(before);
      continue;
    }
    stayed.add(after.name);
    if (before !== after) found.push(...undecidedFields(before, after, (field) => names.field(before.name, field)));
  }
  if (gone.length === 0) return found;
  for (const after of to.values()) {
    if (stayed.has(after.name)) continue;
    for (const before of gone) {
      if (isMostly(before, after))
        found.push({ kind: 'collection', collection: after.name, from: before.name, to: after.name });
    }
  }
  return found;
}

function undecidedFields(
  before: Collection,
  after: Collection,
  successor: (field: string) => string | undefined,
): UndecidedRename[] {
  const gone: Field[] = [];
  const stayed = new Set<string>();
  for (const field of before.fields.values()) {
    const name = successor(field.name);
    if (name === undefined) gone.push(field);
    else stayed.add(name);
  }
  if (gone.length === 0) return [];
  return [...after.fields.values()]
    .filter((field) => !stayed.has(field.name))
    .flatMap((field) =>
      gone
        .filter((old) => isLike(old, field))
        .map((old) => ({ kind: 'field' as const, collection: after.name, from: old.name, to: field.name })),
    );
}

/** The same kind of value: flags and defaults may have changed with the name. */
function isLike(a: Field, b: Field): boolean {
  return a.type === b.type && a.items === b.items && isDeepStrictEqual(a.enumValues, b.enumValues);
}

/** More than half of the fields of the larger one are in both, by name and kind. */
function isMostly(a: Collection, b: Collection): boolean {
  const shared = [...a.fields.values()].filter((field) => {
    const other = b.fields.get(field.name);
    return other && isLike(field, other);
  });
  return shared.length * 2 > Math.max(a.fields.size, b.fields.size);
}

import { isDeepStrictEqual } from 'node:util';
import type { Collection, Field, SchemaModel } from '../model.ts';
import { mapNames, type Renames } from './renames.ts';

/** A removal and a similar addition: the user decides whether it is a rename. */
export interface UndecidedRename {
  readonly kind: 'field' | 'collection';
  /** The new name of the table. */
  readonly collection: string;
  readonly from: string;
  readonly to: string;
  /**
   * Why an old `renamedFrom` may no longer apply. `newNameExists`: the data under the new name would be dropped.
   * `oldNameDeclared`: the old name is still declared, and the field or table of that name would be empty.
   */
  readonly ambiguity?: 'newNameExists' | 'oldNameDeclared';
}

/** The user's decisions about removed names: renamed or dropped. */
export interface RenameDecisions {
  readonly renames: readonly UndecidedRename[];
  /** In the format of `dropKey`. */
  readonly drops: ReadonlySet<string>;
  /** Both names of a field exist for a time, so that nothing over the new one takes a name from the old one. */
  readonly expand?: boolean;
}

export const NO_DECISIONS: RenameDecisions = { renames: [], drops: new Set() };

export function dropKey({ kind, collection, from }: Omit<UndecidedRename, 'to'>): string {
  return kind === 'collection' ? from : `${collection}.${from}`;
}

/** Possible renames that are not in `renames`. */
export function undecidedRenames(from: SchemaModel, to: SchemaModel, renames: Renames): UndecidedRename[] {
  const names = mapNames(from, to, renames);
  const found: UndecidedRename[] = [];
  const removed: Collection[] = [];
  const matched = new Set<string>();
  for (const before of from.values()) {
    const name = names.collection(before.name);
    const after = name === undefined ? undefined : to.get(name);
    if (!after) {
      removed.push(before);
      continue;
    }
    matched.add(after.name);
    if (before !== after) found.push(...undecidedFields(before, after, (field) => names.field(before.name, field)));
  }
  if (removed.length === 0) return found;
  for (const after of to.values()) {
    if (matched.has(after.name)) continue;
    for (const before of removed) {
      if (isSimilar(before, after))
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
  const removed: Field[] = [];
  const matched = new Set<string>();
  for (const field of before.fields.values()) {
    const name = successor(field.name);
    if (name === undefined) removed.push(field);
    else matched.add(name);
  }
  if (removed.length === 0) return [];
  return [...after.fields.values()]
    .filter((field) => !matched.has(field.name))
    .flatMap((field) =>
      removed
        .filter((old) => isSameKind(old, field))
        .map((old) => ({ kind: 'field' as const, collection: after.name, from: old.name, to: field.name })),
    );
}

/** Whether two fields hold the same kind of value. Flags and defaults may differ. */
function isSameKind(a: Field, b: Field): boolean {
  return a.type === b.type && a.items === b.items && isDeepStrictEqual(a.enumValues, b.enumValues);
}

/** Whether both tables share more than half of the fields of the larger one, by name and kind. */
function isSimilar(a: Collection, b: Collection): boolean {
  const shared = [...a.fields.values()].filter((field) => {
    const other = b.fields.get(field.name);
    return other && isSameKind(field, other);
  });
  return shared.length * 2 > Math.max(a.fields.size, b.fields.size);
}

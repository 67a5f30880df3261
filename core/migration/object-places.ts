import type { ObjectRules } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import { type DatabaseObject, type ObjectModel, objectKey } from '../schema/database-object.ts';

/*
 * Objects that run one after another in the order of their creation, such as triggers of one event. What is created again would
 * run last: those that were created after it are created again too.
 */

interface PlaceChange {
  readonly before: ObjectModel;
  readonly after: ObjectModel;
  /** The keys of those that are created again anyway. */
  readonly aside: { has(key: string): boolean };
  readonly inOrder: (objects: readonly DatabaseObject[]) => readonly DatabaseObject[];
}

/** The objects to drop and create again for their places, as they are before the change. */
export function movedForPlaces(
  rules: ObjectRules,
  { before, after, aside, inOrder }: PlaceChange,
): readonly DatabaseObject[] {
  const moved = new Set<DatabaseObject>();
  const move = (key: string): void => {
    const object = before.get(key);
    if (object && after.has(key)) moved.add(object);
  };
  // A rollback creates in the order of before.
  for (const model of rules.place ? [before, after] : []) {
    const changedIn = new Map<string, string>();
    for (const object of inOrder([...model.values()])) {
      const group = rules.place?.(object)?.group;
      if (group === undefined) continue;
      const key = objectKey(object);
      const changed = changedIn.get(group);
      if (changed !== undefined) {
        move(changed);
        move(key);
      } else if (aside.has(key) || before.get(key)?.definition !== after.get(key)?.definition)
        changedIn.set(group, key);
    }
  }
  return [...moved];
}

/** Throws `schema_invalid` if the text of an object places it next to one that is removed. */
export function assertPlaces(rules: ObjectRules, before: ObjectModel, after: ObjectModel): void {
  for (const object of after.values()) {
    const other = rules.place?.(object)?.nextTo;
    if (other === undefined || after.has(other) || !before.has(other)) continue;
    throw new SvcError('schema_invalid', `The ${object.kind} "${object.name}" has its place next to a removed one.`, {
      why: `Its text names "${other}", and could not be created without it.`,
      state: 'Nothing was written.',
      next: ['Edit its file.'],
    });
  }
}

import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import { fieldOf } from './find-or-throw.ts';
import type { Collection, Field, SchemaModel } from './model.ts';
import type { MigrationOperation } from './operation.ts';

/*
 * A field has two names for a time: `addField` with `mirrors` adds the second one, a trigger gives each what is written to the
 * other, and `dropField` with `mirrors` drops either.
 */

/** Throws `field_invalid` if a trigger could not keep the two in step, `field_unknown` and `field_in_use`. */
export function addMirror(collection: Collection, field: Field, mirrors: string): Pick<Collection, 'mirrors'> {
  const other = fieldOf(collection, mirrors);
  assertNotMirrored(collection, mirrors);
  const why = mirrorProblem(field, other);
  if (why !== undefined) {
    throw new SvcError('field_invalid', `"${collection.name}.${field.name}" cannot mirror "${mirrors}": ${why}.`, {
      why: 'A trigger gives each of the two fields what is written to the other.',
      next: [
        'Rename the field without --expand or "mirrors", or change its definition before, in a migration of its own.',
      ],
    });
  }
  return { mirrors: [...(collection.mirrors ?? []), [field.name, mirrors]] };
}

/** Throws `field_invalid` if the two are not kept in step. */
export function endMirror(collection: Collection, field: string, mirrors: string): Pick<Collection, 'mirrors'> {
  const { mirrors: all = [] } = collection;
  const left = all.filter((mirror) => !(mirror.includes(field) && mirror.includes(mirrors)));
  if (field === mirrors || left.length === all.length) {
    throw new SvcError('field_invalid', `"${collection.name}.${field}" does not mirror "${mirrors}".`, {
      why: 'No earlier operation adds one of them with "mirrors".',
      next: ['Remove "mirrors": the values of the field are then lost.'],
    });
  }
  return { mirrors: left };
}

/** What drops one of two that are kept in step; nothing for any other field. */
export function mirrorToEnd({ mirrors = [] }: Collection, field: string): { readonly mirrors?: string } {
  const other = mirrors.find((mirror) => mirror.includes(field))?.find((name) => name !== field);
  return other === undefined ? {} : { mirrors: other };
}

/** The model of a database, which does not say which of its fields mirror another, with those of the operations before it. */
export function withMirrors(model: SchemaModel, operations: readonly MigrationOperation[]): SchemaModel {
  const found = new Map(model);
  for (const operation of operations) {
    if (operation.type !== 'addField') continue;
    const { field, mirrors } = operation;
    const collection = found.get(operation.collection);
    if (!collection?.fields.has(field.name)) continue;
    const others = (collection.mirrors ?? []).filter((mirror) => !mirror.includes(field.name));
    const own = mirrors !== undefined && collection.fields.has(mirrors) ? [[field.name, mirrors] as const] : [];
    found.set(collection.name, { ...collection, mirrors: [...others, ...own] });
  }
  return found;
}

/** Throws `field_in_use` if a trigger names the field; without `field`, if one names the table. */
export function assertNotMirrored({ name, mirrors = [] }: Collection, field?: string): void {
  const found = mirrors.find((mirror) => field === undefined || mirror.includes(field));
  if (!found) return;
  throw new SvcError('field_in_use', `A trigger keeps "${name}.${found[0]}" and "${name}.${found[1]}" in step.`, {
    why: 'It names both, and every write to the table runs it.',
    next: ['First drop the old one: svc db migrate contract'],
  });
}

function mirrorProblem(field: Field, other: Field): string | undefined {
  if (!isDeepStrictEqual(storageOf(field), storageOf(other))) return 'they have different types';
  if ([field, other].some(({ primaryKey, autoGenerate }) => primaryKey || autoGenerate))
    return 'one of them is a primary key or has "autoGenerate"';
  if (field.default !== undefined && other.default !== undefined)
    return 'both have a default, so that a value that was written looks like one that was not';
  return undefined;
}

const storageOf = ({ type, length, precision, scale, enumValues, items, native }: Field): readonly unknown[] => [
  type,
  length,
  precision,
  scale,
  enumValues,
  items,
  native,
];

/** Whether a change leaves a trigger as it is: of a field with the same type, and without a default where it had none. */
export const isUntouchedMirror = (from: Field, to: Field): boolean =>
  isDeepStrictEqual(storageOf(from), storageOf(to)) &&
  from.primaryKey === to.primaryKey &&
  from.autoGenerate === to.autoGenerate &&
  isDeepStrictEqual(from.default, to.default);

/** Of two that keep each other in step, the one that has a value only if somebody wrote it. */
export const withoutDefault = (field: Field, other: Field): Field => (field.default === undefined ? field : other);

export const mirrorsUnsupported = (engine: string): SvcError =>
  new SvcError('not_supported', `svc cannot keep two fields of ${engine} in step.`, {
    why: 'That takes a trigger that runs for each row that is written.',
    state: 'Nothing was changed.',
    next: ['Rename the field in one migration, without --expand or "mirrors".'],
  });

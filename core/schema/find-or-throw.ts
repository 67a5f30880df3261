import type { ErrorCode } from '../error-codes.ts';
import { SvcError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import type { Collection, Field, SchemaModel } from './model.ts';

type Kind = 'collection' | 'field' | 'index' | 'constraint';

const KIND_NAMES: Readonly<Record<Kind, string>> = {
  collection: 'table',
  field: 'field',
  index: 'index',
  constraint: 'constraint',
};

/** The maximum number of names listed in an error. */
const MAX_LISTED = 12;

export function collectionOf(model: SchemaModel, name: string): Collection {
  const collection = model.get(name);
  if (collection) return collection;
  throw unknownError('collection', name, model.keys());
}

export function fieldOf(collection: Collection, name: string): Field {
  const field = collection.fields.get(name);
  if (field) return field;
  throw unknownError('field', name, collection.fields.keys(), collection.name);
}

/** `<kind>_unknown`, with a suggestion if a similar name exists. */
export function unknownError(kind: Kind, name: string, known: Iterable<string>, table?: string): SvcError {
  const names = [...known];
  const near = nearest(name, names);
  const listed = names.slice(0, MAX_LISTED).join(', ') || 'none';
  return new SvcError(
    `${kind}_unknown` satisfies ErrorCode,
    `The ${KIND_NAMES[kind]} ${quoted(name, table)} does not exist.`,
    {
      why: `Known: ${listed}${names.length > MAX_LISTED ? `, and ${names.length - MAX_LISTED} more` : ''}.`,
      ...(near !== undefined && { next: [`Did you mean "${near}"?`] }),
    },
  );
}

/** `<kind>_exists`. The text "already exists" is part of the public contract: callers match it. */
export function alreadyExistsError(kind: Kind, name: string, table?: string): SvcError {
  return new SvcError(
    `${kind}_exists` satisfies ErrorCode,
    `The ${KIND_NAMES[kind]} ${quoted(name, table)} already exists.`,
    {
      next: [`Use another name, or drop or rename the existing ${KIND_NAMES[kind]}.`],
    },
  );
}

function quoted(name: string, table: string | undefined): string {
  return table === undefined ? `"${name}"` : `"${table}.${name}"`;
}

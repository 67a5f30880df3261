import { type ErrorCode, SvcError } from '../errors.ts';
import { nearest } from '../nearest.ts';
import type { Collection, Field, SchemaModel } from './model.ts';

type Kind = 'collection' | 'field' | 'index' | 'constraint';

const WORDS: Readonly<Record<Kind, string>> = {
  collection: 'table',
  field: 'field',
  index: 'index',
  constraint: 'constraint',
};

/** Names an error lists at most. */
const LISTED = 12;

export function collectionOf(model: SchemaModel, name: string): Collection {
  const collection = model.get(name);
  if (collection) return collection;
  throw unknown('collection', name, model.keys());
}

export function fieldOf(collection: Collection, name: string): Field {
  const field = collection.fields.get(name);
  if (field) return field;
  throw unknown('field', name, collection.fields.keys(), collection.name);
}

/** `<kind>_unknown`, with the name that was probably meant. */
export function unknown(kind: Kind, name: string, known: Iterable<string>, table?: string): SvcError {
  const names = [...known];
  const near = nearest(name, names);
  const listed = names.slice(0, LISTED).join(', ') || 'none';
  return new SvcError(
    `${kind}_unknown` satisfies ErrorCode,
    `The ${WORDS[kind]} ${quoted(name, table)} does not exist.`,
    {
      why: `Known: ${listed}${names.length > LISTED ? `, and ${names.length - LISTED} more` : ''}.`,
      ...(near !== undefined && { next: [`Did you mean "${near}"?`] }),
    },
  );
}

/** `<kind>_exists`; the text is promised: callers look for "already exists". */
export function exists(kind: Kind, name: string, table?: string): SvcError {
  return new SvcError(
    `${kind}_exists` satisfies ErrorCode,
    `The ${WORDS[kind]} ${quoted(name, table)} already exists.`,
    {
      next: ['Use another name, or drop or rename the one that is there.'],
    },
  );
}

function quoted(name: string, table: string | undefined): string {
  return table === undefined ? `"${name}"` : `"${table}.${name}"`;
}

import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { Collection, Index } from '../../../../core/schema/model.ts';
import { defaultValueOf } from '../data/default-values.ts';
import { allIndexSpecs, isSameIndex, PRIMARY_KEY_INDEX } from './indexes.ts';
import { assertName } from './names.ts';
import { ID } from './types.ts';
import { checkClause, checkConstraints, fieldRule, forbidsField, userValidator } from './validator.ts';

/** Throws for names, types, defaults, checks and indexes that MongoDB does not support. */
export function assertValidCollection(collection: Collection): void {
  for (const field of collection.fields.values()) {
    assertName(field.name, 'field');
    fieldRule(field);
    defaultValueOf(field);
  }
  for (const check of checkConstraints(collection)) checkClause(check);
  for (const index of collection.indexes.values()) assertExpiry(collection, index);
  const specs = allIndexSpecs(collection);
  for (const { name } of specs) assertName(name, 'index');
  for (const [at, spec] of specs.entries()) {
    const other = specs.slice(0, at).find(({ name }) => name === spec.name);
    if (!other || isSameIndex(other, spec)) continue;
    throw new SvcError('index_exists', `The table "${collection.name}" would have two indexes "${spec.name}".`, {
      why: `On MongoDB, primary keys, unique fields and unique constraints are indexes too, named "${PRIMARY_KEY_INDEX}", "<field>_key" and after the constraint.`,
      next: ['Choose another name.'],
    });
  }
}

/** The server accepts a TTL index on any field, but only deletes documents by a date. */
function assertExpiry({ name: table, fields }: Collection, { name, columns, mongoOptions }: Index): void {
  const seconds = mongoOptions?.expireAfterSeconds;
  // A key as MongoDB has it may be any that the server takes.
  if (seconds === undefined || mongoOptions?.key !== undefined) return;
  const [only, ...others] = columns;
  const isDate = ['date', 'datetime', 'timestamp'].includes(fields.get(only?.name ?? '')?.type ?? '');
  if (others.length === 0 && isDate && Number.isInteger(seconds) && seconds >= 0 && seconds <= 2_147_483_647) return;
  throw new SvcError('schema_invalid', `The index "${name}" of "${table}" cannot delete expired documents.`, {
    why: 'expireAfterSeconds must be a whole number from 0 to 2147483647, on an index of one field with a date.',
  });
}

/** Throws if a check or a validator of the user refers to the field, which would no longer exist. */
export function assertFieldNotRead(collection: Collection, field: string, change: string): void {
  const path = `"${collection.name}.${field}"`;
  if (field === ID) {
    throw new SvcError('not_supported', `The field ${path} cannot be ${change}.`, {
      why: 'The _id of a MongoDB document cannot be changed.',
      next: ['Add another field, and fill it with db.update.'],
    });
  }
  const index = [...collection.indexes.values()].find(({ columns, mongoOptions: { key, ...options } = {} }) => {
    const isOwn = change === 'dropped' && columns.some(({ name }) => name === field);
    return (key !== undefined && !isOwn && mentions(key, field)) || mentions(options as Json, field);
  });
  if (index) {
    throw new SvcError('field_in_use', `The field ${path} cannot be ${change}: an index uses it.`, {
      why: `The index "${index.name}" reads it in its mongoOptions.`,
      next: ['Drop the index first, and create it again afterwards.'],
    });
  }
  const reader = checkConstraints(collection).find(({ expression }) => mentions(JSON.parse(expression), field));
  const validator = userValidator(collection);
  if (!reader && !(validator && mentions(validator, field))) return;
  throw new SvcError(
    'field_in_use',
    `The field ${path} cannot be ${change}: a ${reader ? 'check' : 'validator'} uses it.`,
    {
      why: reader ? `The check "${reader.name}" reads it.` : 'The validator in the mongoOptions of the table reads it.',
      next: reader
        ? ['Drop the check first, and add it again afterwards.']
        : ['Change the validator with raw collMod first.'],
    },
  );
}

/** Throws if the validator of the user rejects every document with this field. */
export function assertFieldAllowed(collection: Collection, field: string): void {
  if (!forbidsField(collection, field)) return;
  throw new SvcError('not_supported', `The table "${collection.name}" cannot have the field "${field}".`, {
    why: 'The validator in the mongoOptions of the table has "additionalProperties": false, and does not name it.',
    next: ['Change the validator with raw collMod first, then: svc db schema pull'],
  });
}

/** Whether a text or a key anywhere in the value is the field or a path that begins with it. */
function mentions(value: Json, field: string): boolean {
  if (typeof value === 'string')
    return [value, value.slice(1)].some((text) => text === field || text.startsWith(`${field}.`));
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some((one: Json) => mentions(one, field));
  return Object.entries(value).some(([key, one]) => mentions(key, field) || mentions(one, field));
}

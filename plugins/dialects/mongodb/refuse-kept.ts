import { SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import type { Collection } from '../../../core/schema/model.ts';
import { checksOf, writtenValidator } from './validator.ts';

/** What text of the user reads would read nothing any more, or keep its old name. */
export function refuseKept(collection: Collection, field: string, what: string): void {
  const place = `"${collection.name}.${field}"`;
  if (field === '_id') {
    throw new SvcError('not_supported', `The field ${place} cannot be ${what}.`, {
      why: 'MongoDB keeps the _id of a document for its life.',
      next: ['Add another field, and fill it with db.update.'],
    });
  }
  const reader = checksOf(collection).find(({ expression }) => mentions(JSON.parse(expression), field));
  const written = writtenValidator(collection);
  if (!reader && !(written && mentions(written, field))) return;
  throw new SvcError('field_in_use', `The field ${place} cannot be ${what}: something reads it.`, {
    why: reader ? `The check "${reader.name}" does.` : 'The validator in the mongoOptions of the table does.',
    next: reader ? ['Drop the check first, and add it again.'] : ['Change the validator with raw collMod first.'],
  });
}

/** Whether a piece of text or a key anywhere in it is the field or a path that begins with it. */
function mentions(value: Json, field: string): boolean {
  if (typeof value === 'string')
    return [value, value.slice(1)].some((text) => text === field || text.startsWith(`${field}.`));
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some((one: Json) => mentions(one, field));
  return Object.entries(value).some(([key, one]) => mentions(key, field) || mentions(one, field));
}

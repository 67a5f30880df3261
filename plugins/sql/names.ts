import { SvcError } from '../../core/errors.ts';
import type { Collection, Field } from '../../core/schema/model.ts';
import { derivedName } from '../../core/schema/names.ts';
import type { Grammar } from './grammar.ts';

/** Refuses a name that the engine would cut or cannot store. */
export function checkIdentifier(grammar: Grammar, name: string, kind: string): string {
  const bytes = Buffer.byteLength(name);
  if (kind === 'field' && grammar.systemColumns.has(name)) {
    throw new SvcError('name_invalid', `"${name}" cannot be the name of a field on ${grammar.name}.`, {
      why: 'Every table has a system column of that name.',
      next: ['Choose another name.'],
    });
  }
  if (name !== '' && bytes <= grammar.identifierBytes && !name.includes('\0')) return name;
  throw new SvcError('name_invalid', `"${name}" cannot be the name of a ${kind} on ${grammar.name}.`, {
    why:
      name === ''
        ? 'It is empty.'
        : name.includes('\0')
          ? 'It contains a NUL character.'
          : `It has ${bytes} bytes; the limit is ${grammar.identifierBytes}.`,
    next: ['Choose a shorter name.'],
  });
}

/** Names of the constraints that flags of fields stand for: always a function of the model. */
export const primaryKeyName = (table: string): string => derivedName(table, [], 'pkey');
export const uniqueName = (table: string, field: string): string => derivedName(table, [field], 'key');
export const enumCheckName = (table: string, field: string): string => derivedName(table, [field], 'check');

/** Fields of the primary key that flags declare, in the order of the columns. */
export function primaryKeyFields(collection: Pick<Collection, 'fields'>): string[] {
  return [...collection.fields.values()].filter((field) => field.primaryKey).map((field) => field.name);
}

/** Constraints that follow from the flags of one field, by the name they have in a table. */
export function derivedConstraints(grammar: Grammar, field: Field): ((table: string, field: string) => string)[] {
  return [...(field.unique ? [uniqueName] : []), ...(grammar.enumCheck(field) === undefined ? [] : [enumCheckName])];
}

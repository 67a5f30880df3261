import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import { checkNameFits } from '../../../core/schema/names.ts';
import { ENGINE, nameRules } from './names.ts';

/** What is kept in the registry alone is said where people look. */
export function withNotes(cql: string, fields: readonly Field[]): string {
  const kept = fields.flatMap((field) => {
    const what = [
      ...(field.required && !field.primaryKey ? ['required'] : []),
      ...(field.default === undefined ? [] : ['default']),
      ...(field.autoGenerate ? ['autoGenerate'] : []),
      ...(field.length === undefined ? [] : ['length']),
      ...(field.precision === undefined ? [] : ['precision']),
      ...(field.enumValues === undefined ? [] : ['enumValues']),
    ];
    return what.length > 0 ? [`${field.name} (${what.join(', ')})`] : [];
  });
  if (kept.length === 0) return cql;
  return `-- for svc's own writes only, Cassandra does not enforce it: ${kept.join('; ').replaceAll('\n', ' ')}\n${cql}`;
}

export function checkField(field: Field, table: string): void {
  checkNameFits(ENGINE, nameRules, field.name, 'field');
  if (field.type !== 'array' || field.items !== 'array') return;
  throw new SvcError('field_invalid', `The field "${table}.${field.name}" cannot be used on Cassandra.`, {
    why: 'A list of lists has no type of its own.',
    next: ['Use the type json.'],
  });
}

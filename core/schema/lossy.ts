import { changedField } from './field-changes.ts';
import { collectionOf, fieldOf } from './lookup.ts';
import type { Field, SchemaModel } from './model.ts';
import type { FieldChanges, Operation } from './operation.ts';
import type { FieldType } from './types.ts';

/** Types a value of which every value of the first fits into, and comes back from unharmed. */
const WIDER: Readonly<Partial<Record<FieldType, readonly FieldType[]>>> = {
  smallint: ['integer', 'bigint', 'double', 'text'],
  integer: ['bigint', 'double', 'text'],
  bigint: ['text'],
  float: ['double'],
  decimal: ['text'],
  string: ['text'],
  enum: ['text'],
  uuid: ['text'],
  binary: ['blob'],
  blob: ['binary'],
};

/** What an operation throws away that no way back brings back, in words; nothing for most. */
export function lossy(operation: Operation, before: SchemaModel): string[] {
  switch (operation.type) {
    case 'dropCollection':
      return [`Rows of ${operation.collection} are not brought back.`];
    case 'dropField':
      return [`Values of ${operation.collection}.${operation.field} are not brought back.`];
    case 'modifyField':
      return narrowed(operation.collection, operation.field, operation.changes, before);
    case 'renameField':
      return operation.changes ? narrowed(operation.collection, operation.from, operation.changes, before) : [];
    default:
      return [];
  }
}

function narrowed(table: string, name: string, changes: FieldChanges, before: SchemaModel): string[] {
  const field = fieldOf(collectionOf(before, table), name);
  const narrower = narrowing(field, changedField(field, changes, table));
  return narrower === undefined ? [] : [`Values of ${table}.${name} may not survive the change from ${narrower}.`];
}

function narrowing(from: Field, to: Field): string | undefined {
  if (from.type !== to.type) {
    if (to.type === 'string' && from.type === 'enum' && fits(from.enumValues ?? [], to)) return undefined;
    return WIDER[from.type]?.includes(to.type) && to.length === undefined ? undefined : `${from.type} to ${to.type}`;
  }
  if (shrinks(from.length, to.length)) return `length ${from.length ?? 'default'} to ${to.length ?? 'default'}`;
  if (from.precision !== to.precision || from.scale !== to.scale) {
    const whole = shrinks(digits(from), digits(to));
    if (whole || (to.scale ?? 0) < (from.scale ?? 0)) return `decimal(${parts(from)}) to decimal(${parts(to)})`;
  }
  if (from.items !== to.items && !(from.items && to.items && WIDER[from.items]?.includes(to.items))) {
    return `items of ${from.items} to ${to.items}`;
  }
  const gone = (from.enumValues ?? []).filter((value) => !to.enumValues?.includes(value));
  return gone.length > 0 ? `a list of values with ${gone.join(', ')} to one without` : undefined;
}

/** A string without length is 255 on SQL, and without limit elsewhere: only a written limit counts. */
function shrinks(from: number | undefined, to: number | undefined): boolean {
  return to === undefined ? from !== undefined && from > 255 : from === undefined ? to < 255 : to < from;
}

function fits(values: readonly string[], to: Field): boolean {
  return values.every((value) => [...value].length <= (to.length ?? 255));
}

function digits(field: Field): number | undefined {
  return field.precision === undefined ? undefined : field.precision - (field.scale ?? 0);
}

function parts(field: Field): string {
  return field.precision === undefined ? 'default' : `${field.precision}, ${field.scale ?? 0}`;
}

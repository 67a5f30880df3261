import { applyFieldChanges } from './define-field.ts';
import { collectionOf, fieldOf } from './find-or-throw.ts';
import type { Field, FieldType, SchemaModel } from './model.ts';
import type { FieldChanges, Operation } from './operation.ts';

/** Types that can hold every value of another type and convert it back unchanged. */
const LOSSLESS_TARGETS: Readonly<Partial<Record<FieldType, readonly FieldType[]>>> = {
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

/** The data an operation destroys that a rollback cannot restore, in words. Empty for most operations. */
export function dataLossWarnings(operation: Operation, before: SchemaModel): string[] {
  switch (operation.type) {
    case 'dropCollection':
      return [dropLoss(operation.collection)];
    case 'dropField':
      return operation.mirrors === undefined ? [dropLoss(operation.collection, operation.field)] : [];
    case 'modifyField':
      return narrowingWarnings(operation.collection, operation.field, operation.changes, before);
    case 'renameField':
      return operation.changes
        ? narrowingWarnings(operation.collection, operation.from, operation.changes, before)
        : [];
    case 'createCollection':
    case 'renameCollection':
    case 'addField':
    case 'createIndex':
    case 'dropIndex':
    case 'addConstraint':
    case 'dropConstraint':
    case 'raw':
      return [];
  }
}

function narrowingWarnings(table: string, name: string, changes: FieldChanges, before: SchemaModel): string[] {
  const field = fieldOf(collectionOf(before, table), name);
  const narrower = narrowing(field, applyFieldChanges(field, changes, table));
  return narrower === undefined ? [] : [`Values of ${table}.${name} may not survive the change from ${narrower}.`];
}

function narrowing(from: Field, to: Field): string | undefined {
  // Only the engine knows what its own types hold.
  if (from.native !== to.native) return `${from.native ?? from.type} to ${to.native ?? to.type}`;
  if (from.type !== to.type) {
    if (to.type === 'string' && from.type === 'enum' && fits(from.enumValues ?? [], to)) return undefined;
    return LOSSLESS_TARGETS[from.type]?.includes(to.type) && to.length === undefined
      ? undefined
      : `${from.type} to ${to.type}`;
  }
  if (shrinks(from.length, to.length)) return `length ${from.length ?? 'default'} to ${to.length ?? 'default'}`;
  if (from.precision !== to.precision || from.scale !== to.scale) {
    const whole = shrinks(integerDigits(from), integerDigits(to));
    if (whole || (to.scale ?? 0) < (from.scale ?? 0))
      return `decimal(${precisionAndScale(from)}) to decimal(${precisionAndScale(to)})`;
  }
  if (from.items !== to.items && !(from.items && to.items && LOSSLESS_TARGETS[from.items]?.includes(to.items))) {
    return `items of ${from.items} to ${to.items}`;
  }
  const removed = (from.enumValues ?? []).filter((value) => !to.enumValues?.includes(value));
  return removed.length > 0 ? `a list of values with ${removed.join(', ')} to a list without` : undefined;
}

/** A string without a length has 255 characters on SQL engines and no limit elsewhere, so only explicit limits count. */
function shrinks(from: number | undefined, to: number | undefined): boolean {
  return to === undefined ? from !== undefined && from > 255 : from === undefined ? to < 255 : to < from;
}

function fits(values: readonly string[], to: Field): boolean {
  return values.every((value) => [...value].length <= (to.length ?? 255));
}

function integerDigits(field: Field): number | undefined {
  return field.precision === undefined ? undefined : field.precision - (field.scale ?? 0);
}

function precisionAndScale(field: Field): string {
  return field.precision === undefined ? 'default' : `${field.precision}, ${field.scale ?? 0}`;
}

/** Why existing rows may cause an operation to fail, in words; undefined if they cannot. */
export function dataDependentRisk(operation: Operation, before: SchemaModel): string | undefined {
  switch (operation.type) {
    case 'addField': {
      const { name, required, default: value, autoGenerate } = operation.field;
      if (!required || value !== undefined || autoGenerate || operation.mirrors !== undefined) return undefined;
      return `${operation.collection}.${name} is required and has no default: existing rows have no value for it`;
    }
    case 'modifyField':
      return strictnessRisk(operation.collection, operation.field, operation.changes, before);
    case 'renameField':
      return operation.changes && strictnessRisk(operation.collection, operation.from, operation.changes, before);
    case 'createIndex':
      return operation.unique
        ? `${operation.index} is unique: rows of ${operation.collection} may have duplicates`
        : undefined;
    case 'addConstraint':
      return `${operation.constraint.name}: rows of ${operation.collection} may violate it`;
    case 'createCollection':
    case 'dropCollection':
    case 'renameCollection':
    case 'dropField':
    case 'dropIndex':
    case 'dropConstraint':
    case 'raw':
      return undefined;
    default:
      operation satisfies never;
  }
}

function strictnessRisk(table: string, name: string, changes: FieldChanges, before: SchemaModel): string | undefined {
  const from = fieldOf(collectionOf(before, table), name);
  const why = newRequirement(from, applyFieldChanges(from, changes, table));
  return why && `${table}.${name} ${why}`;
}

function newRequirement(from: Field, to: Field): string | undefined {
  if (to.required && !from.required) return 'becomes required: rows may have no value for it';
  if (to.unique && !from.unique) return 'becomes unique: rows may have duplicates';
  return undefined;
}

/** What the drop of a table or a field loses, in words. */
export const dropLoss = (collection: string, field?: string): string =>
  field === undefined
    ? `Rows of ${collection} cannot be restored.`
    : `Values of ${collection}.${field} cannot be restored.`;

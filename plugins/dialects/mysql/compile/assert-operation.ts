import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import { defineCollection, defineConstraint, defineField } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/field.ts';
import { primaryKeyFields } from '../../../../core/schema/keys.ts';
import type {
  Collection,
  Constraint,
  Field,
  FieldType,
  ForeignKey,
  SchemaModel,
} from '../../../../core/schema/model.ts';
import type { Operation } from '../../../../core/schema/operation.ts';
import { assertRenamedNamesFit } from '../catalog/renamed-constraints.ts';
import type { Traits } from '../variant.ts';
import { assertWithinLimits, maxValueBytes } from './limits.ts';
import { columnType, isAutoIncrement } from './types.ts';

const MAX_KEY_BYTES = 3072;

/** Throws for what the server would only reject when it runs, or would do differently. */
export function assertValidOperation(traits: Traits, operation: Operation, before: SchemaModel): void {
  assertWithinLimits(operation, before);
  switch (operation.type) {
    case 'createCollection':
      assertTable(defineCollection(operation));
      break;
    case 'addField':
    case 'modifyField':
    case 'dropField': {
      const collection = before.get(operation.collection);
      const after = collection && changedTable(collection, operation);
      if (after) assertTable(after);
      if (after && operation.type === 'modifyField') assertForeignKeysFit(traits, before, after, operation.field);
      break;
    }
    case 'renameCollection': {
      const collection = before.get(operation.collection);
      if (collection) assertRenamedNamesFit(traits, collection, operation.to);
      break;
    }
    case 'createIndex':
      assertFitsIndex(
        before.get(operation.collection),
        operation.columns.map(({ name }) => name),
        operation.index,
      );
      break;
    case 'addConstraint': {
      const collection = before.get(operation.collection);
      if (!collection) return;
      const constraint = defineConstraint(operation.constraint, collection.name, collection.fields.keys());
      const constraints = new Map(collection.constraints).set(constraint.name, constraint);
      assertConstraints({ ...collection, constraints });
      if (constraint.type === 'foreignKey') assertForeignKeyTypes(before, collection, constraint);
      if (constraint.type === 'foreignKey' || (constraint.type === 'check' && traits.hasDatabaseWideCheckNames))
        assertConstraintNameFree(before, collection, constraint);
      if (constraint.type === 'unique' || constraint.type === 'primaryKey')
        assertFitsIndex(collection, constraint.columns, constraint.name);
      break;
    }
    case 'dropCollection':
    case 'renameField':
    case 'dropIndex':
    case 'dropConstraint':
    case 'raw':
      break;
    default:
      operation satisfies never;
  }
}

function changedTable(
  collection: Collection,
  operation: Extract<Operation, { type: 'addField' | 'modifyField' | 'dropField' }>,
): Collection | undefined {
  const fields = new Map(collection.fields);
  if (operation.type === 'dropField') fields.delete(operation.field);
  else if (operation.type === 'addField') {
    const { name, ...definition } = operation.field;
    fields.set(name, defineField(name, definition, collection.name));
  } else {
    const field = fields.get(operation.field);
    if (!field) return undefined;
    fields.set(field.name, applyFieldChanges(field, operation.changes, collection.name));
  }
  return { ...collection, fields };
}

function assertTable(collection: Collection): void {
  const { name, fields } = collection;
  if (fields.size === 0) {
    throw new SvcError('not_supported', `The table "${name}" needs at least one field.`, {
      why: 'A table has at least one column.',
      next: ['Give it a field, or drop the table.'],
    });
  }
  const numbered = [...fields.values()].filter(isAutoIncrement);
  const [first, second] = numbered;
  if (first && second) {
    throw new SvcError('not_supported', `"${name}.${second.name}" cannot be generated.`, {
      why: `A table can have one auto-increment field, and "${first.name}" is one already.`,
      next: ['Remove autoGenerate from one of them.'],
    });
  }
  if (first && !leadsKey(collection, first)) {
    throw new SvcError('not_supported', `"${name}.${first.name}" cannot be generated.`, {
      why: 'An auto-increment field has to be the first of a key.',
      next: ['Make it the primary key or unique, or declare it before the other fields of the primary key.'],
    });
  }
  const key = primaryKeyFields(collection);
  if (key.length > 0) assertFitsIndex(collection, key, 'the primary key');
  for (const field of fields.values())
    if (field.unique) assertFitsIndex(collection, [field.name], `unique ${field.name}`);
  assertConstraints(collection);
  for (const index of collection.indexes.values()) {
    assertFitsIndex(
      collection,
      index.columns.map((column) => column.name),
      index.name,
    );
  }
}

function leadsKey(collection: Collection, { name, unique }: Field): boolean {
  if (unique || primaryKeyFields(collection)[0] === name) return true;
  return (
    [...collection.constraints.values()].some(
      ({ type, columns }) => (type === 'unique' || type === 'primaryKey') && columns[0] === name,
    ) || [...collection.indexes.values()].some(({ columns }) => columns[0]?.name === name)
  );
}

function assertConstraints(collection: Collection): void {
  const { name: table, fields, constraints } = collection;
  const invalid = (name: string, why: string, next: string) =>
    new SvcError('constraint_invalid', `The constraint "${name}" of "${table}" is not valid.`, {
      why,
      next: [next],
    });
  const keys = [...constraints.values()].filter((constraint) => constraint.type === 'foreignKey');
  for (const { name, columns, references } of keys) {
    const required = columns.find((column) => fields.get(column)?.required);
    if (required !== undefined && [references.onDelete, references.onUpdate].includes('SET NULL')) {
      throw invalid(
        name,
        `It sets null, and "${required}" is required.`,
        'Use CASCADE or NO ACTION, or make the field optional.',
      );
    }
    if (references.table === table && isDeepStrictEqual(references.columns, columns))
      throw invalid(name, 'It points at its own fields: every row would point at itself.', 'Leave it out.');
  }
  for (const check of constraints.values()) {
    if (check.type === 'unique') assertFitsIndex(collection, check.columns, check.name);
    if (check.type !== 'check') continue;
    const numbered = check.columns.find((column) => isAutoIncrement(fields.get(column) ?? { type: 'text' }));
    if (numbered !== undefined)
      throw invalid(
        check.name,
        `It reads "${numbered}", which is an auto-increment field.`,
        'Leave the field out of the check.',
      );
    const key = keys.find((one) => changesValues(one) && one.columns.some((column) => check.columns.includes(column)));
    if (key) {
      throw invalid(
        check.name,
        `It reads a field that the foreign key "${key.name}" changes, which the server does not check.`,
        'Give the key no ON UPDATE CASCADE and no SET NULL, or leave the field out of the check.',
      );
    }
  }
}

/** A foreign key compares values byte by byte. */
const isComparable = (one: FieldType, other: FieldType): boolean =>
  one === other || (MOMENT_TYPES.has(one) && MOMENT_TYPES.has(other));
const MOMENT_TYPES: ReadonlySet<FieldType> = new Set(['datetime', 'timestamp']);

function assertForeignKeyTypes(
  before: SchemaModel,
  { name: table, fields }: Collection,
  { name, columns, references }: ForeignKey,
): void {
  for (const [index, column] of columns.entries()) {
    const from = fields.get(column);
    const target = before.get(references.table)?.fields.get(references.columns[index] ?? '');
    if (!from || !target || isComparable(from.type, target.type)) continue;
    throw new SvcError('constraint_invalid', `The constraint "${name}" of "${table}" is not valid.`, {
      why: `"${table}.${column}" is of type ${from.type}, "${references.table}.${target.name}" of type ${target.type}, and the server requires the same type at both ends.`,
      next: ['Give both fields the same type.'],
    });
  }
}

/** Rejects a new type for a field that is part of a foreign key, unless the types still match. */
function assertForeignKeysFit(traits: Traits, before: SchemaModel, after: Collection, name: string): void {
  const from = before.get(after.name)?.fields.get(name);
  const to = after.fields.get(name);
  if (!from || !to || columnType(from, after.name) === columnType(to, after.name)) return;
  for (const { name: table, constraints, fields } of before.values()) {
    for (const key of constraints.values()) {
      if (key.type !== 'foreignKey') continue;
      const { table: parent, columns: target } = key.references;
      const ends = key.columns.flatMap((column, index) => [
        ...(table === after.name && column === name ? [before.get(parent)?.fields.get(target[index] ?? '')] : []),
        ...(parent === after.name && target[index] === name ? [fields.get(column)] : []),
      ]);
      if (ends.every((end) => !traits.locksForeignKeyTypes && end && isComparable(to.type, end.type))) continue;
      throw new SvcError('field_in_use', `The type of "${after.name}.${name}" cannot be changed.`, {
        why: `The foreign key "${key.name}" of "${table}" contains it, and the server requires the same type at both ends.`,
        next: ['Drop the foreign key, change both fields, and add it again.'],
      });
    }
  }
}

const changesValues = ({ references: { onDelete, onUpdate } }: ForeignKey): boolean =>
  onDelete === 'SET NULL' || (onUpdate !== undefined && onUpdate !== 'RESTRICT');

/** The name of a foreign key is unique in the database. On MySQL, the name of a check is too. */
function assertConstraintNameFree(before: SchemaModel, { name: table }: Collection, { name, type }: Constraint): void {
  const what = type === 'check' ? 'check' : 'foreign key';
  for (const other of before.values()) {
    if (other.name === table) continue;
    const isTaken = [...other.constraints.values()].some(
      (one) => one.type === type && one.name.toLowerCase() === name.toLowerCase(),
    );
    if (!isTaken) continue;
    throw new SvcError('constraint_exists', `A ${what} "${name}" already exists.`, {
      why: `"${other.name}" has it, and the name of a ${what} is unique in the database.`,
      next: ['Choose another name.'],
    });
  }
}

function assertFitsIndex(collection: Collection | undefined, columns: readonly string[], what: string): void {
  if (!collection) return;
  const fields = columns.flatMap((column) => collection.fields.get(column) ?? []);
  const bytes = fields.reduce((sum, field) => sum + maxValueBytes(field), 0);
  if (bytes <= MAX_KEY_BYTES && columns.length <= 16) return;
  throw new SvcError('not_supported', `The fields of ${what} in "${collection.name}" do not fit into an index.`, {
    why:
      columns.length > 16
        ? `It has ${columns.length} fields; the limit is 16.`
        : `They have up to ${bytes} bytes, with four bytes per character; the limit is ${MAX_KEY_BYTES}.`,
    next: ['Give its strings a smaller length.'],
  });
}

import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import { defineCollection, defineConstraint, defineField } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { primaryKeyFields, sameColumns, uniqueKeys } from '../../../../core/schema/keys.ts';
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
import { assertNewWithinLimits, assertWithinLimits, bytesPerCharacter, maxValueBytes } from './limits.ts';
import { assertNativeConstraint } from './native-options.ts';
import { columnType, isAutoIncrement } from './types.ts';

const MAX_KEY_BYTES = 3072;

/** Throws for operations that the server would reject only at run time, or would execute differently. */
export function assertValidOperation(traits: Traits, operation: Operation, before: SchemaModel): void {
  if (operation.type !== 'createCollection') assertWithinLimits(operation, before);
  switch (operation.type) {
    case 'createCollection': {
      const created = defineCollection(operation);
      assertNewWithinLimits(created);
      for (const constraint of created.constraints.values()) assertNativeConstraint(traits, constraint, created.name);
      assertTable(created);
      break;
    }
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
      if (operation.native !== undefined) break;
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
      assertNativeConstraint(traits, constraint, collection.name);
      const constraints = new Map(collection.constraints).set(constraint.name, constraint);
      assertConstraints({ ...collection, constraints });
      if (constraint.type === 'foreignKey') {
        assertForeignKeyTypes(before, collection, constraint);
        assertReferencedOrder(before, collection.name, constraint);
      }
      if (constraint.type === 'foreignKey' || (constraint.type === 'check' && traits.hasDatabaseWideCheckNames))
        assertConstraintNameFree(before, collection, constraint);
      if (isKeyOfWholeFields(constraint)) assertFitsIndex(collection, constraint.columns, constraint.name);
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
      why: 'A table must have at least one column.',
      next: ['Add a field, or drop the table.'],
    });
  }
  const autoIncrementFields = [...fields.values()].filter(isAutoIncrement);
  const [first, second] = autoIncrementFields;
  if (first && second) {
    throw new SvcError('not_supported', `The field "${name}.${second.name}" cannot be auto-incremented.`, {
      why: `A table can have only one auto-increment field, and "${first.name}" already is one.`,
      next: ['Remove autoGenerate from one of them.'],
    });
  }
  if (first && !isFirstInKey(collection, first)) {
    throw new SvcError('not_supported', `The field "${name}.${first.name}" cannot be auto-incremented.`, {
      why: 'An auto-increment field must be the first field of a key.',
      next: ['Make it the primary key or unique, or declare it before the other fields of the primary key.'],
    });
  }
  const key = primaryKeyFields(collection);
  if (key.length > 0) assertFitsIndex(collection, key, 'the primary key');
  for (const field of fields.values())
    if (field.unique) assertFitsIndex(collection, [field.name], `unique ${field.name}`);
  assertConstraints(collection);
  for (const index of collection.indexes.values()) {
    if (index.native !== undefined) continue;
    assertFitsIndex(
      collection,
      index.columns.map((column) => column.name),
      index.name,
    );
  }
}

function isFirstInKey(collection: Collection, { name, unique }: Field): boolean {
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
        `It sets "${required}" to null, but "${required}" is required.`,
        'Use CASCADE or NO ACTION, or make the field optional.',
      );
    }
    if (references.table === table && isDeepStrictEqual(references.columns, columns))
      throw invalid(name, 'It references its own columns: every row would reference itself.', 'Remove it.');
  }
  for (const check of constraints.values()) {
    if (isKeyOfWholeFields(check)) assertFitsIndex(collection, check.columns, check.name);
    if (check.type !== 'check') continue;
    const autoIncrement = check.columns.find((column) => isAutoIncrement(fields.get(column) ?? { type: 'text' }));
    if (autoIncrement !== undefined)
      throw invalid(
        check.name,
        `It reads "${autoIncrement}", which is an auto-increment field.`,
        'Remove the field from the check.',
      );
    const key = keys.find((one) => changesValues(one) && one.columns.some((column) => check.columns.includes(column)));
    if (key) {
      throw invalid(
        check.name,
        `It reads a field that the foreign key "${key.name}" changes, which the server does not check.`,
        'Remove ON UPDATE CASCADE and SET NULL from the foreign key, or the field from the check.',
      );
    }
  }
}

const isKeyOfWholeFields = ({ type, native }: Constraint): boolean =>
  native === undefined && (type === 'unique' || type === 'primaryKey');

/** A foreign key compares the stored bytes of values. */
const isComparable = (one: FieldType, other: FieldType): boolean =>
  one === other || (TIMESTAMP_TYPES.has(one) && TIMESTAMP_TYPES.has(other));
const TIMESTAMP_TYPES: ReadonlySet<FieldType> = new Set(['datetime', 'timestamp']);

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
      why: `"${table}.${column}" is of type ${from.type}, "${references.table}.${target.name}" of type ${target.type}, and the server requires the same type for both.`,
      next: ['Use the same type for both fields.'],
    });
  }
}

/** The server needs an index that begins with the referenced columns in their order. */
function assertReferencedOrder(before: SchemaModel, table: string, { name, references }: ForeignKey): void {
  const parent = before.get(references.table);
  const matching = parent ? uniqueKeys(parent).filter(({ columns }) => sameColumns(columns, references.columns)) : [];
  const [key] = matching;
  if (!key || matching.some(({ columns }) => isDeepStrictEqual([...columns], references.columns))) return;
  const order = [...key.columns].join(', ');
  throw new SvcError('constraint_invalid', `The constraint "${name}" of "${table}" is not valid.`, {
    why: `It references (${references.columns.join(', ')}), and the key of "${references.table}" is (${order}): the server requires the same order.`,
    next: [`Reference (${order}), with the fields of "${table}" in the matching order.`],
  });
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
      const otherFields = key.columns.flatMap((column, index) => [
        ...(table === after.name && column === name ? [before.get(parent)?.fields.get(target[index] ?? '')] : []),
        ...(parent === after.name && target[index] === name ? [fields.get(column)] : []),
      ]);
      if (otherFields.every((other) => !traits.locksForeignKeyTypes && other && isComparable(to.type, other.type)))
        continue;
      throw new SvcError('field_in_use', `The type of "${after.name}.${name}" cannot be changed.`, {
        why: `The foreign key "${key.name}" of "${table}" contains it, and the server requires the same type for both.`,
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
  const wanted = name.toLowerCase();
  for (const other of before.values()) {
    if (other.name === table) continue;
    for (const one of other.constraints.values()) {
      if (one.type !== type || one.name.toLowerCase() !== wanted) continue;
      throw new SvcError('constraint_exists', `A ${what} "${name}" already exists.`, {
        why: `"${other.name}" has it, and the name of a ${what} must be unique in the database.`,
        next: ['Choose another name.'],
      });
    }
  }
}

function assertFitsIndex(collection: Collection | undefined, columns: readonly string[], what: string): void {
  if (!collection) return;
  const fields = columns.flatMap((column) => collection.fields.get(column) ?? []);
  const perCharacter = bytesPerCharacter(collection);
  const bytes = fields.reduce((sum, field) => sum + maxValueBytes(field, perCharacter), 0);
  if (bytes <= MAX_KEY_BYTES && columns.length <= 16) return;
  throw new SvcError('not_supported', `The fields of ${what} in "${collection.name}" do not fit into an index.`, {
    why:
      columns.length > 16
        ? `There are ${columns.length}; the limit is 16.`
        : `They have up to ${bytes} bytes, with ${perCharacter} per character; the limit is ${MAX_KEY_BYTES}.`,
    next: [columns.length > 16 ? 'Use fewer fields.' : 'Shorten the string fields, or use fewer fields.'],
  });
}

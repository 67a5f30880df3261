import { changedField } from './field-changes.ts';
import { collectionOf, fieldOf } from './lookup.ts';
import type { Field, SchemaModel } from './model.ts';
import type { FieldChanges, Operation } from './operation.ts';

/** Why rows that are there may refuse an operation, in words; nothing where none can. */
export function refusable(operation: Operation, before: SchemaModel): string | undefined {
  switch (operation.type) {
    case 'addField': {
      const { name, required, default: value, autoGenerate } = operation.field;
      if (!required || value !== undefined || autoGenerate) return undefined;
      return `${operation.collection}.${name} is required and has no default: rows that are there have no value for it`;
    }
    case 'modifyField':
      return demanded(operation.collection, operation.field, operation.changes, before);
    case 'renameField':
      return operation.changes && demanded(operation.collection, operation.from, operation.changes, before);
    case 'createIndex':
      return operation.unique ? `${operation.index} is unique: rows of ${operation.collection} may not be` : undefined;
    case 'addConstraint':
      return `${operation.constraint.name}: rows of ${operation.collection} may break it`;
    default:
      return undefined;
  }
}

function demanded(table: string, name: string, changes: FieldChanges, before: SchemaModel): string | undefined {
  const from = fieldOf(collectionOf(before, table), name);
  const why = stricter(from, changedField(from, changes, table));
  return why && `${table}.${name} ${why}`;
}

function stricter(from: Field, to: Field): string | undefined {
  if (to.required && !from.required) return 'becomes required: rows may have no value for it';
  if (to.unique && !from.unique) return 'becomes unique: values may be there twice';
  return undefined;
}

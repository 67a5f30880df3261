import type { Collection, Constraint, Field, Index, SchemaModel } from '../../../core/schema/model.ts';
import { primaryKeyFields, uniqueName } from '../../sql/names.ts';
import { canonicalDefault } from './default.ts';
import { PRIMARY } from './introspect.ts';
import { isNumbered, STRING_LENGTH } from './types.ts';

/** What the catalog keeps of a model: the rest cannot be read back. Expressions stay as they are written. */
export function seen(model: SchemaModel): SchemaModel {
  return new Map([...model].map(([name, collection]) => [name, seenCollection(collection)]));
}

function seenCollection(collection: Collection): Collection {
  const fields = new Map([...collection.fields].map(([name, field]) => [name, seenField(field)]));
  const constraints = new Map<string, Constraint>();
  const indexes = new Map<string, Index>();
  for (const constraint of collection.constraints.values()) {
    switch (constraint.type) {
      case 'check':
        constraints.set(constraint.name, constraint);
        break;
      case 'foreignKey': {
        const { onDelete, onUpdate, ...references } = constraint.references;
        constraints.set(constraint.name, {
          ...constraint,
          references: {
            ...references,
            ...(onDelete && onDelete !== 'RESTRICT' && { onDelete }),
            ...(onUpdate && onUpdate !== 'RESTRICT' && { onUpdate }),
          },
        });
        break;
      }
      case 'unique': {
        const columns = constraint.columns.map((name) => ({ name }));
        indexes.set(constraint.name, { name: constraint.name, columns, unique: true });
        break;
      }
      case 'primaryKey':
        for (const name of constraint.columns) change(fields, name, { required: true });
        if (isInOrder(collection, constraint.columns))
          for (const name of constraint.columns) change(fields, name, { primaryKey: true });
        else constraints.set(PRIMARY, { ...constraint, name: PRIMARY });
    }
  }
  for (const index of collection.indexes.values()) indexes.set(index.name, index);
  for (const [name, index] of indexes) {
    const [only, ...more] = index.columns;
    if (isAutomatic(index, constraints.get(name))) indexes.delete(name);
    if (!index.unique || more.length > 0 || !only || only.order) continue;
    if (name !== uniqueName(collection.name, only.name)) continue;
    indexes.delete(name);
    change(fields, only.name, { unique: true });
  }
  return { ...collection, fields, constraints, indexes, options: {} };
}

function change(fields: Map<string, Field>, name: string, flags: Partial<Field>): void {
  const field = fields.get(name);
  if (field) fields.set(name, { ...field, ...flags });
}

function isInOrder({ fields }: Collection, columns: readonly string[]): boolean {
  const order = [...fields.keys()];
  return (
    primaryKeyFields({ fields }).length === 0 &&
    columns.every((column, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(column))
  );
}

/** It looks like the one that a foreign key of its name would get. */
function isAutomatic({ unique, columns }: Index, key: Constraint | undefined): boolean {
  return (
    !unique &&
    key?.type === 'foreignKey' &&
    key.columns.length === columns.length &&
    key.columns.every((name, at) => columns[at]?.name === name && !columns[at]?.order)
  );
}

function seenField(field: Field): Field {
  const { length, default: value, items, ...rest } = field;
  const type = field.type === 'binary' && length === undefined ? 'blob' : field.type;
  return {
    ...rest,
    type,
    ...(items !== undefined && { items: 'string' }),
    ...(type === 'string' && { length: length ?? STRING_LENGTH }),
    ...(type === 'binary' && length !== undefined && { length }),
    ...(isNumbered(field) && { required: true }),
    ...(value !== undefined && { default: canonicalDefault(value, field) }),
  };
}

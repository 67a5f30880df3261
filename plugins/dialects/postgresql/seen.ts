import type { Collection, Constraint, Field, SchemaModel } from '../../../core/schema/model.ts';
import { primaryKeyFields, primaryKeyName, uniqueName } from '../../sql/names.ts';
import { canonicalDefault } from './default.ts';
import { isIdentity } from './modify.ts';
import { STRING_LENGTH } from './types.ts';

/** What the catalog keeps of a model: the rest cannot be read back. Expressions stay as they are written. */
export function seen(model: SchemaModel): SchemaModel {
  return new Map([...model].map(([name, collection]) => [name, seenCollection(collection)]));
}

function seenCollection(collection: Collection): Collection {
  const fields = new Map([...collection.fields].map(([name, field]) => [name, seenField(field)]));
  const constraints = new Map<string, Constraint>();
  for (const constraint of collection.constraints.values()) {
    if (constraint.type === 'primaryKey') {
      for (const name of constraint.columns) change(fields, name, { required: true });
    }
    if (isFlag(collection, constraint)) {
      for (const name of constraint.columns) {
        change(fields, name, constraint.type === 'unique' ? { unique: true } : { primaryKey: true });
      }
    } else {
      constraints.set(constraint.name, constraint);
    }
  }
  return { ...collection, fields, constraints };
}

function change(fields: Map<string, Field>, name: string, flags: Partial<Field>): void {
  const field = fields.get(name);
  if (field) fields.set(name, { ...field, ...flags });
}

/** A constraint that looks as if a flag had made it. */
function isFlag({ name: table, fields }: Collection, { type, name, columns }: Constraint): boolean {
  if (type === 'unique') return columns.length === 1 && name === uniqueName(table, columns[0] ?? '');
  if (type !== 'primaryKey' || name !== primaryKeyName(table) || primaryKeyFields({ fields }).length > 0) return false;
  const order = [...fields.keys()];
  return columns.every(
    (column, index) => index === 0 || order.indexOf(columns[index - 1] ?? '') < order.indexOf(column),
  );
}

function seenField(field: Field): Field {
  const { length, default: value, ...rest } = field;
  const type = field.type === 'blob' ? 'binary' : field.type;
  const items = field.items === 'blob' ? 'binary' : field.items;
  return {
    ...rest,
    type,
    ...(items !== undefined && { items }),
    ...(type === 'string' && { length: length ?? STRING_LENGTH }),
    ...(isIdentity(field) && { required: true }),
    ...(value !== undefined && { default: canonicalDefault(value, field) }),
  };
}

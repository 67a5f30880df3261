import { SvcError } from '../errors.ts';
import { comparable, isKey, primaryFields, referencesTo } from './keys.ts';
import { fieldOf, unknown } from './lookup.ts';
import type { Collection, Constraint, ForeignKey, SchemaModel } from './model.ts';

type Find = (table: string) => Collection | undefined;

/** A foreign key needs columns that are a key of a table of the same model, of types that can be equal. */
export function checkForeignKey(model: SchemaModel, collection: Collection, foreignKey: ForeignKey): void {
  const find: Find = (table) => (table === collection.name ? collection : model.get(table));
  const { table, columns } = foreignKey.references;
  const target = find(table);
  if (!target) throw unknown('collection', table, model.keys());
  for (const column of foreignKey.columns) fieldOf(collection, column);
  for (const column of columns) fieldOf(target, column);
  checkTypes(find, collection.name, foreignKey);
  if (isKey(target, columns)) return;
  throw cannotHold(
    collection.name,
    foreignKey,
    `${listed(columns)} of "${table}" is neither its primary key nor unique.`,
    [`Make ${listed(columns)} of "${table}" its primary key or unique first.`],
  );
}

/** What foreign keys rely on still holds after a table changed: key columns stay a key, types stay comparable. */
export function checkKeysHold(model: SchemaModel, before: Collection, after: Collection): void {
  const find: Find = (table) => (table === after.name ? after : model.get(table));
  for (const { collection: name, foreignKey } of referencesTo(model, before.name)) {
    // Not there any more: it is what is being dropped.
    if (!find(name)?.constraints.has(foreignKey.name)) continue;
    if (!isKey(after, foreignKey.references.columns)) {
      throw new SvcError(
        'key_in_use',
        `${listed(foreignKey.references.columns)} of "${before.name}" must stay unique.`,
        {
          why: `The foreign key "${foreignKey.name}" of "${name}" references it.`,
          next: ['Drop the foreign key first.'],
        },
      );
    }
    checkTypes(find, name, foreignKey);
  }
  for (const constraint of after.constraints.values()) {
    if (constraint.type === 'foreignKey') checkTypes(find, after.name, constraint);
  }
}

function checkTypes(find: Find, name: string, foreignKey: ForeignKey): void {
  const { table, columns } = foreignKey.references;
  for (const [index, column] of foreignKey.columns.entries()) {
    const own = find(name)?.fields.get(column);
    const other = find(table)?.fields.get(columns[index] ?? '');
    if (!own || !other || comparable(own, other)) continue;
    const why = `"${name}.${column}" is ${own.type} and "${table}.${other.name}" is ${other.type}.`;
    throw cannotHold(name, foreignKey, why, [
      'Give both fields the same type; drop the foreign key around the change.',
    ]);
  }
}

/** One primary key at most, either by fields or by a constraint, over fields that are required. */
export function checkPrimaryKey(collection: Collection): void {
  const constraints = [...collection.constraints.values()].filter((constraint) => constraint.type === 'primaryKey');
  const [first, second] = constraints;
  if (!first) return;
  const flagged = primaryFields(collection);
  if (second || flagged.length > 0) {
    const other = second ? `the constraint "${first.name}"` : listed(flagged);
    throw cannotHold(collection.name, second ?? first, `The table has a primary key already: ${other}.`, [
      'Drop the one that is there first, or declare one key over all its columns.',
    ]);
  }
  const loose = first.columns.filter((column) => !collection.fields.get(column)?.required);
  if (loose.length === 0) return;
  throw cannotHold(collection.name, first, `${listed(loose)} may be null, which a primary key cannot.`, [
    `Set required: true on ${listed(loose)}.`,
  ]);
}

function cannotHold(table: string, constraint: Constraint, why: string, next: readonly string[]): SvcError {
  return new SvcError('constraint_invalid', `The constraint "${constraint.name}" of "${table}" cannot hold.`, {
    why,
    next,
  });
}

function listed(columns: readonly string[]): string {
  return columns.map((column) => `"${column}"`).join(', ');
}

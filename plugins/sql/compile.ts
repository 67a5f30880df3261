import type { Statement } from '../../core/dialect.ts';
import { SvcError } from '../../core/errors.ts';
import { defineCollection, defineConstraint, defineField } from '../../core/schema/define.ts';
import { changedField } from '../../core/schema/field-changes.ts';
import { referencesTo } from '../../core/schema/keys.ts';
import { collectionOf, exists, fieldOf } from '../../core/schema/lookup.ts';
import type { CheckConstraint, Collection, Constraint, Field, SchemaModel } from '../../core/schema/model.ts';
import type {
  AddConstraint,
  AddField,
  CreateCollection,
  DropCollection,
  DropField,
  ModifyField,
  Operation,
  RenameCollection,
  RenameField,
} from '../../core/schema/operation.ts';
import { columnDefinition, fieldConstraints, primaryKey } from './column.ts';
import type { Grammar } from './grammar.ts';
import { checkIdentifier, derivedConstraints, primaryKeyFields, primaryKeyName } from './names.ts';
import { SCHEMA, statement } from './text.ts';

/** The statements of an operation on the model before it. */
export function compileSql(grammar: Grammar, operation: Operation, before: SchemaModel): readonly Statement[] {
  const { quote } = grammar;
  switch (operation.type) {
    case 'createCollection':
      return createCollection(grammar, operation, before);
    case 'dropCollection':
      return dropCollection(grammar, operation, before);
    case 'renameCollection':
      return renameCollection(grammar, operation, before);
    case 'addField':
      return addField(grammar, operation, before);
    case 'dropField':
      return dropField(grammar, operation, before);
    case 'renameField':
      return renameField(grammar, operation, before);
    case 'modifyField':
      return modifyField(grammar, operation, before);
    case 'createIndex':
      checkIdentifier(grammar, operation.index, 'index');
      return [grammar.createIndex(operation)];
    case 'dropIndex':
      return [statement(grammar.dropIndex(operation.collection, operation.index))];
    case 'addConstraint':
      return addConstraint(grammar, operation, before);
    case 'dropConstraint':
      return [alter(grammar, operation.collection, [grammar.dropConstraint(quote(operation.constraint))])];
    case 'raw':
      return operation.dialect === grammar.name ? grammar.raw(operation) : [];
  }
}

export function alter(
  { quote }: Grammar,
  table: string,
  clauses: readonly string[],
  facts?: Parameters<typeof statement>[1],
): Statement {
  return statement(`ALTER TABLE ${SCHEMA}${quote(table)} ${clauses.join(', ')}`, facts);
}

function createCollection(grammar: Grammar, operation: CreateCollection, before: SchemaModel): Statement[] {
  const { name, fields, options } = defineCollection(operation);
  checkIdentifier(grammar, name, 'table');
  for (const other of ['mongoOptions', 'dynamoOptions', 'cassandraOptions'] as const) {
    if (options[other] !== undefined) throw optionRefused(grammar, name, other);
  }
  const sqlOptions = operation.options?.sqlOptions ?? {};
  if (before.has(name) && !sqlOptions.temporary && !sqlOptions.ifNotExists) throw exists('collection', name);
  const all = [...fields.values()];
  const key = primaryKeyFields({ fields });
  const lines = [
    ...all.map((field) => columnDefinition(grammar, field, name)),
    ...(key.length > 0 ? [primaryKey(grammar, key, name)] : []),
    ...all.flatMap((field) => fieldConstraints(grammar, field, name)),
  ];
  return [statement(`${grammar.createTable(name, sqlOptions)} (\n  ${lines.join(',\n  ')}\n)`)];
}

function optionRefused(grammar: Grammar, table: string, option: string): SvcError {
  return new SvcError('not_supported', `The table "${table}" has ${option}, which ${grammar.name} does not know.`, {
    why: 'They are options of another engine.',
    next: [`Remove ${option} from the options of "${table}".`],
  });
}

function dropCollection(grammar: Grammar, operation: DropCollection, before: SchemaModel): Statement[] {
  const { collection, cascade } = operation;
  const pointing = referencesTo(before, collection).filter((reference) => reference.collection !== collection);
  const first = cascade
    ? pointing.map((reference) =>
        alter(grammar, reference.collection, [grammar.dropConstraint(grammar.quote(reference.foreignKey.name))]),
      )
    : [];
  return [...first, statement(`DROP TABLE ${SCHEMA}${grammar.quote(collection)}`, { destructive: true })];
}

function renameCollection(grammar: Grammar, operation: RenameCollection, before: SchemaModel): Statement[] {
  const { collection: from, to } = operation;
  checkIdentifier(grammar, to, 'table');
  const { fields } = collectionOf(before, from);
  const names: [string, string][] = [];
  if (primaryKeyFields({ fields }).length > 0) names.push([primaryKeyName(from), primaryKeyName(to)]);
  for (const field of fields.values()) {
    for (const name of derivedConstraints(grammar, field)) names.push([name(from, field.name), name(to, field.name)]);
  }
  return [
    statement(`ALTER TABLE ${SCHEMA}${grammar.quote(from)} RENAME TO ${grammar.quote(to)}`),
    ...renameConstraints(grammar, to, names),
  ];
}

function renameConstraints(grammar: Grammar, table: string, names: readonly [string, string][]): Statement[] {
  return names
    .filter(([old, name]) => old !== name)
    .map(([old, name]) => alter(grammar, table, [`RENAME CONSTRAINT ${grammar.quote(old)} TO ${grammar.quote(name)}`]));
}

function addField(grammar: Grammar, operation: AddField, before: SchemaModel): Statement[] {
  const collection = collectionOf(before, operation.collection);
  const { name, ...definition } = operation.field;
  const field = defineField(name, definition, collection.name);
  const key = primaryKeyFields(collection);
  return [
    alter(grammar, collection.name, [
      ...(field.primaryKey && key.length > 0
        ? [grammar.dropConstraint(grammar.quote(primaryKeyName(collection.name)))]
        : []),
      `ADD COLUMN ${columnDefinition(grammar, field, collection.name)}`,
      ...[
        ...(field.primaryKey ? [primaryKey(grammar, [...key, name], collection.name)] : []),
        ...fieldConstraints(grammar, field, collection.name),
      ].map((constraint) => `ADD ${constraint}`),
    ]),
  ];
}

function dropField(grammar: Grammar, operation: DropField, before: SchemaModel): Statement[] {
  const collection = collectionOf(before, operation.collection);
  const field = fieldOf(collection, operation.field);
  const rest = primaryKeyFields(collection).filter((name) => name !== field.name);
  const clauses = [`DROP COLUMN ${grammar.quote(field.name)}`];
  if (field.primaryKey) clauses.unshift(grammar.dropConstraint(grammar.quote(primaryKeyName(collection.name))));
  if (field.primaryKey && rest.length > 0) clauses.push(`ADD ${primaryKey(grammar, rest, collection.name)}`);
  return [alter(grammar, collection.name, clauses, { destructive: true })];
}

function renameField(grammar: Grammar, operation: RenameField, before: SchemaModel): Statement[] {
  const { from, to } = operation;
  checkIdentifier(grammar, to, 'field');
  const collection = collectionOf(before, operation.collection);
  const field = fieldOf(collection, from);
  const names = derivedConstraints(grammar, field).map((name): [string, string] => [
    name(collection.name, from),
    name(collection.name, to),
  ]);
  return [
    alter(grammar, collection.name, [`RENAME COLUMN ${grammar.quote(from)} TO ${grammar.quote(to)}`]),
    ...renameConstraints(grammar, collection.name, names),
  ];
}

function modifyField(grammar: Grammar, operation: ModifyField, before: SchemaModel): Statement[] {
  const collection = collectionOf(before, operation.collection);
  const field = fieldOf(collection, operation.field);
  const changed = changedField(field, operation.changes, collection.name);
  grammar.columnType(changed, collection.name);
  return grammar.modifyField(collection, field, changed);
}

function addConstraint(grammar: Grammar, operation: AddConstraint, before: SchemaModel): Statement[] {
  const collection = collectionOf(before, operation.collection);
  const constraint = defineConstraint(operation.constraint, collection.name, collection.fields.keys());
  checkIdentifier(grammar, constraint.name, 'constraint');
  return [alter(grammar, collection.name, [`ADD ${constraintText(grammar, constraint)}`])];
}

/** Throws `constraint_invalid` for a check that would be more than one expression. */
export function constraintText(grammar: Grammar, constraint: Constraint): string {
  const { quote } = grammar;
  const columns = constraint.columns.map(quote).join(', ');
  const named = `CONSTRAINT ${quote(constraint.name)}`;
  switch (constraint.type) {
    case 'unique':
      return `${named} UNIQUE (${columns})`;
    case 'primaryKey':
      return `${named} PRIMARY KEY (${columns})`;
    case 'check':
      return `${named} CHECK (${checkedExpression(grammar, constraint)})`;
    case 'foreignKey': {
      const { table, columns: target, onDelete, onUpdate } = constraint.references;
      return [
        `${named} FOREIGN KEY (${columns}) REFERENCES ${SCHEMA}${quote(table)} (${target.map(quote).join(', ')})`,
        ...(onDelete ? [`ON DELETE ${onDelete}`] : []),
        ...(onUpdate ? [`ON UPDATE ${onUpdate}`] : []),
      ].join(' ');
    }
  }
}

function checkedExpression(grammar: Grammar, { name, expression }: CheckConstraint): string {
  const why = grammar.expressionProblem(expression);
  if (why === undefined) return expression;
  throw new SvcError('constraint_invalid', `The expression of the check "${name}" is not one expression.`, {
    why,
    next: ['Write one condition of SQL; for more than that there is raw.'],
  });
}

/** Fields of the primary key after one field of the table has changed. */
export function keyAfter(collection: Collection, changed: Field): string[] {
  return primaryKeyFields({ fields: new Map(collection.fields).set(changed.name, changed) });
}

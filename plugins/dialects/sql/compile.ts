import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { defineCollection, defineConstraint, defineField } from '../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../core/schema/define-field.ts';
import { alreadyExistsError, collectionOf, fieldOf, unknownError } from '../../../core/schema/find-or-throw.ts';
import { primaryKeyFields, referencesTo } from '../../../core/schema/keys.ts';
import { mirrorsUnsupported } from '../../../core/schema/mirror.ts';
import type { CheckConstraint, Collection, Constraint, Field, SchemaModel } from '../../../core/schema/model.ts';
import type {
  AddConstraint,
  AddField,
  CreateCollection,
  DropCollection,
  DropConstraint,
  DropField,
  ModifyField,
  Operation,
  RenameCollection,
  RenameField,
} from '../../../core/schema/operation.ts';
import { assertSupported } from '../../../core/schema/unsupported-features.ts';
import { columnDefinition, fieldConstraints, primaryKeyConstraint } from './column.ts';
import type { Grammar, RenamedConstraint, StatementFacts } from './grammar.ts';
import { assertIdentifier, derivedConstraints, primaryKeyName } from './names.ts';
import { SCHEMA_PLACEHOLDER, type SqlText, sqlStatement } from './statement.ts';

/**
 * The statements of an operation, for the model before it. `grammar` writes the parts that differ between engines.
 * Throws `not_supported`, `name_invalid`, `field_invalid`, `constraint_invalid`, and the errors of unknown or existing
 * names.
 *
 * @example
 * compile: (operation, before) => compileSql(grammar, operation, before),
 */
export function compileSql<Step>(
  grammar: Grammar<Step>,
  operation: Operation,
  before: SchemaModel,
): readonly Statement<Step>[] {
  assertSupported(grammar.name, grammar.unsupported, operation, before);
  grammar.assertOperation(operation, before);
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
      assertIdentifier(grammar, operation.index, 'index');
      return [grammar.createIndex(operation)];
    case 'dropIndex':
      return [grammar.dropIndex(operation.collection, operation.index)];
    case 'addConstraint':
      return addConstraint(grammar, operation, before);
    case 'dropConstraint':
      return dropConstraint(grammar, operation, before);
    case 'raw':
      return operation.dialect === grammar.name ? grammar.raw(operation) : [];
  }
}

function createCollection<Step>(
  grammar: Grammar<Step>,
  operation: CreateCollection,
  before: SchemaModel,
): Statement<Step>[] {
  const { name, fields, constraints } = defineCollection(operation);
  assertIdentifier(grammar, name, 'table');
  const sqlOptions = operation.options?.sqlOptions ?? {};
  if (before.has(name) && !sqlOptions.temporary && !sqlOptions.ifNotExists)
    throw alreadyExistsError('collection', name);
  const all = [...fields.values()];
  const key = primaryKeyFields({ fields });
  const lines = [
    ...all.map((field) => columnDefinition(grammar, field, name)),
    ...(key.length > 0 ? [primaryKeyConstraint(grammar, key, name)] : []),
    ...[...constraints.values()].map((constraint) => {
      assertIdentifier(grammar, constraint.name, 'constraint');
      return grammar.primaryKey?.(constraint.columns, constraint) ?? constraintDefinition(grammar, constraint);
    }),
    ...all.flatMap((field) => fieldConstraints(grammar, field, name)),
  ];
  const named = [...constraints.values()].find(({ type }) => type === 'primaryKey');
  return grammar.createTable(name, sqlOptions, lines, { fields: all, key: named?.columns ?? key });
}

function dropCollection<Step>(
  grammar: Grammar<Step>,
  operation: DropCollection,
  before: SchemaModel,
): Statement<Step>[] {
  const { collection, cascade } = operation;
  const referring = referencesTo(before, collection).filter((reference) => reference.collection !== collection);
  const first = cascade
    ? referring.map((reference) => grammar.dropConstraint(reference.collection, reference.foreignKey))
    : [];
  return [...first, grammar.dropTable(collection)];
}

function renameCollection<Step>(
  grammar: Grammar<Step>,
  operation: RenameCollection,
  before: SchemaModel,
): Statement<Step>[] {
  const { collection: from, to } = operation;
  assertIdentifier(grammar, to, 'table');
  const collection = collectionOf(before, from);
  const renamed: RenamedConstraint[] = [];
  if (primaryKeyFields(collection).length > 0)
    renamed.push({
      type: 'primaryKey',
      from: primaryKeyName(from, grammar.names),
      to: primaryKeyName(to, grammar.names),
    });
  for (const field of collection.fields.values()) {
    for (const { type, name } of derivedConstraints(grammar, field))
      renamed.push({ type, from: name(from, field.name), to: name(to, field.name) });
  }
  return grammar.renameTable(collection, to, renamed.filter(isChanged), before);
}

const isChanged = (renamed: RenamedConstraint) => renamed.from !== renamed.to;

function addField<Step>(grammar: Grammar<Step>, operation: AddField, before: SchemaModel): readonly Statement<Step>[] {
  const collection = collectionOf(before, operation.collection);
  const { name, ...definition } = operation.field;
  const field = defineField(name, definition, collection.name);
  if (operation.mirrors === undefined) return grammar.addField(collection, field);
  if (!grammar.addMirror) throw mirrorsUnsupported(grammar.name);
  return grammar.addMirror(collection, field, fieldOf(collection, operation.mirrors));
}

function dropField<Step>(
  grammar: Grammar<Step>,
  operation: DropField,
  before: SchemaModel,
): readonly Statement<Step>[] {
  const collection = collectionOf(before, operation.collection);
  const field = fieldOf(collection, operation.field);
  if (operation.mirrors === undefined) return [grammar.dropField(collection, field)];
  if (!grammar.dropMirror) throw mirrorsUnsupported(grammar.name);
  return grammar.dropMirror(collection, field, fieldOf(collection, operation.mirrors));
}

function renameField<Step>(grammar: Grammar<Step>, operation: RenameField, before: SchemaModel): Statement<Step>[] {
  const { from, to } = operation;
  assertIdentifier(grammar, to, 'field');
  const collection = collectionOf(before, operation.collection);
  const field = fieldOf(collection, from);
  const renamed = derivedConstraints(grammar, field).map(
    ({ type, name }): RenamedConstraint => ({ type, from: name(collection.name, from), to: name(collection.name, to) }),
  );
  return grammar.renameField(collection, field, to, renamed.filter(isChanged));
}

function modifyField<Step>(
  grammar: Grammar<Step>,
  operation: ModifyField,
  before: SchemaModel,
): readonly Statement<Step>[] {
  const collection = collectionOf(before, operation.collection);
  const field = fieldOf(collection, operation.field);
  const changed = applyFieldChanges(field, operation.changes, collection.name);
  grammar.columnType(changed, collection.name);
  return grammar.modifyField(collection, field, changed);
}

function addConstraint<Step>(grammar: Grammar<Step>, operation: AddConstraint, before: SchemaModel): Statement<Step>[] {
  const collection = collectionOf(before, operation.collection);
  const constraint = defineConstraint(operation.constraint, collection.name, collection.fields.keys());
  assertIdentifier(grammar, constraint.name, 'constraint');
  return [grammar.addConstraint(collection.name, constraint)];
}

function dropConstraint<Step>(
  grammar: Grammar<Step>,
  operation: DropConstraint,
  before: SchemaModel,
): Statement<Step>[] {
  const { constraints, name } = collectionOf(before, operation.collection);
  const constraint = constraints.get(operation.constraint);
  if (!constraint) throw unknownError('constraint', operation.constraint, constraints.keys(), name);
  return [grammar.dropConstraint(name, constraint)];
}

const qualified = (
  grammar: Pick<Grammar, 'quoteIdentifier' | 'qualified'>,
  table: string,
  schema = SCHEMA_PLACEHOLDER,
): string => grammar.qualified?.(table, schema) ?? schema + grammar.quoteIdentifier(table);

/** An ALTER TABLE with a schema placeholder before the table. */
export function alterTable(
  grammar: Pick<Grammar, 'quoteIdentifier' | 'qualified'>,
  table: string,
  clauses: readonly string[],
  facts?: StatementFacts,
): Statement<SqlText> {
  return sqlStatement(`ALTER TABLE ${qualified(grammar, table)} ${clauses.join(', ')}`, facts);
}

/**
 * `CONSTRAINT "name" …` for CREATE and ALTER TABLE. Throws `constraint_invalid` for a check that is not a single expression.
 * `schema` is that of the referenced table, quoted and with its dot. By default it is SCHEMA_PLACEHOLDER, for a text that
 * `sqlStatement` or `alterTable` takes: for a text that is sent as it is, pass the schema or an empty string.
 */
export function constraintDefinition(
  grammar: Pick<Grammar, 'quoteIdentifier' | 'qualified' | 'expressionProblem'>,
  constraint: Constraint,
  schema: string = SCHEMA_PLACEHOLDER,
): string {
  const { quoteIdentifier } = grammar;
  const columns = constraint.columns.map(quoteIdentifier).join(', ');
  const named = `CONSTRAINT ${quoteIdentifier(constraint.name)}`;
  switch (constraint.type) {
    case 'unique':
      return `${named} ${withNative('UNIQUE', `(${columns})`, constraint)}`;
    case 'primaryKey':
      return `${named} ${withNative('PRIMARY KEY', `(${columns})`, constraint)}`;
    case 'check':
      return `${named} ${withNative('CHECK', `(${assertSingleExpression(grammar, constraint)})`, constraint)}`;
    case 'foreignKey': {
      const { table, columns: target, onDelete, onUpdate } = constraint.references;
      const [, match = '', rest = ''] = /^(MATCH \w+)?\s*(.*)$/is.exec(constraint.native ?? '') ?? [];
      return [
        `${named} FOREIGN KEY (${columns}) REFERENCES ${qualified(grammar, table, schema)} (${target.map(quoteIdentifier).join(', ')})`,
        match,
        onDelete ? `ON DELETE ${onDelete}` : '',
        onUpdate ? `ON UPDATE ${onUpdate}` : '',
        rest,
      ]
        .filter((part) => part !== '')
        .join(' ');
    }
  }
}

/** The options follow the columns, except how a unique constraint compares nulls. */
function withNative(kind: string, columns: string, { native }: Constraint): string {
  const [, nulls = '', rest = ''] = /^(NULLS (?:NOT )?DISTINCT)?\s*(.*)$/is.exec(native ?? '') ?? [];
  return [kind, nulls, columns, rest].filter((part) => part !== '').join(' ');
}

function assertSingleExpression(
  grammar: Pick<Grammar, 'expressionProblem'>,
  { name, expression }: CheckConstraint,
): string {
  const why = grammar.expressionProblem(expression);
  if (why === undefined) return expression;
  throw new SvcError('constraint_invalid', `The expression of the check "${name}" is not a single expression.`, {
    why,
    next: ['Write a single SQL condition, or use a raw migration.'],
  });
}

/** The fields of the primary key after a field has changed. */
export function primaryKeyAfter(collection: Collection, changed: Field): string[] {
  return primaryKeyFields({ fields: new Map(collection.fields).set(changed.name, changed) });
}

import type { Statement } from '../../../../core/dialect.ts';
import { defineConstraint, defineField } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, Constraint, SchemaModel } from '../../../../core/schema/model.ts';
import type { AddConstraint, CreateIndex, Operation } from '../../../../core/schema/operation.ts';
import { compileSql, constraintDefinition } from '../../sql/compile.ts';
import { alter, grammar } from './grammar.ts';
import { addMirrorOnline, dropMirrorOnline } from './mirror.ts';
import { isPartitioned } from './native-options.ts';
import { addFieldOnline, modifyFieldOnline } from './online-field.ts';
import { assertCheck, assertReference, attachKey, buildKey, dropIndexOnline, validate } from './online-steps.ts';
import type { PostgresqlStep } from './step.ts';

/** `Dialect.compileOnline`: no statement reads or writes all rows under a lock that blocks others. */
export function compileOnline(
  operation: Operation,
  before: SchemaModel,
): readonly Statement<PostgresqlStep>[] | undefined {
  if (!('collection' in operation)) return undefined;
  const collection = collectionOf(before, operation.collection);
  if (isPartitioned(collection)) return undefined;
  switch (operation.type) {
    case 'createIndex':
      return createIndex(operation, before);
    case 'dropIndex':
      return [dropIndexOnline(collection.name, operation.index)];
    case 'addConstraint':
      return addConstraint(operation, collection);
    case 'addField': {
      const { name, ...definition } = operation.field;
      const field = defineField(name, definition, collection.name);
      return operation.mirrors === undefined
        ? addFieldOnline(collection, field)
        : addMirrorOnline(collection, field, fieldOf(collection, operation.mirrors));
    }
    case 'dropField':
      return operation.mirrors === undefined
        ? undefined
        : dropMirrorOnline(collection, fieldOf(collection, operation.field), fieldOf(collection, operation.mirrors));
    case 'modifyField': {
      const field = fieldOf(collection, operation.field);
      return modifyFieldOnline(collection, field, applyFieldChanges(field, operation.changes, collection.name));
    }
    default:
      return undefined;
  }
}

function createIndex(operation: CreateIndex, before: SchemaModel): readonly Statement<PostgresqlStep>[] | undefined {
  if (operation.sqlOptions?.concurrently) return undefined;
  return compileSql(grammar, { ...operation, sqlOptions: { concurrently: true } }, before);
}

function addConstraint(
  { constraint: definition }: AddConstraint,
  { name: table, fields }: Collection,
): readonly Statement<PostgresqlStep>[] | undefined {
  const constraint = defineConstraint(definition, table, fields.keys());
  if (isUnchecked(constraint)) return undefined;
  switch (constraint.type) {
    case 'foreignKey':
      return [assertReference(table, constraint), ...addUnchecked(table, constraint)];
    case 'check':
      return [assertCheck(table, constraint.name, constraint.expression), ...addUnchecked(table, constraint)];
    case 'unique':
    case 'primaryKey':
      return [buildKey(table, constraint), attachKey(table, constraint)];
  }
}

const addUnchecked = (table: string, constraint: Constraint): readonly Statement<PostgresqlStep>[] => [
  alter(table, [`ADD ${constraintDefinition(grammar, constraint)} NOT VALID`]),
  validate(table, constraint.name),
];

/** The server does not look at the rows. */
const isUnchecked = ({ native = '' }: Constraint): boolean => /\bNOT (?:VALID|ENFORCED)\b/i.test(native);

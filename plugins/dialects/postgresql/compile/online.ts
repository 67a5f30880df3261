import type { Statement } from '../../../../core/dialect.ts';
import { defineConstraint, defineField } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, SchemaModel } from '../../../../core/schema/model.ts';
import type { AddConstraint, CreateIndex, Operation } from '../../../../core/schema/operation.ts';
import { compileSql } from '../../sql/compile.ts';
import { grammar } from './grammar.ts';
import { addFieldOnline, modifyFieldOnline } from './online-field.ts';
import {
  addUnchecked,
  assertCheck,
  assertReference,
  attachKey,
  buildKey,
  dropIndexOnline,
  isUnchecked,
  validate,
} from './online-steps.ts';
import type { PostgresqlStep } from './step.ts';

/** `Dialect.compileOnline`: no statement reads or writes all rows under a lock that blocks others. */
export function compileOnline(
  operation: Operation,
  before: SchemaModel,
): readonly Statement<PostgresqlStep>[] | undefined {
  if (!('collection' in operation)) return undefined;
  const collection = collectionOf(before, operation.collection);
  // Their indexes and constraints cannot be created this way.
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
      return addFieldOnline(collection, defineField(name, definition, collection.name));
    }
    case 'modifyField': {
      const field = fieldOf(collection, operation.field);
      return modifyFieldOnline(collection, field, applyFieldChanges(field, operation.changes, collection.name));
    }
    default:
      return undefined;
  }
}

const isPartitioned = ({ options }: Collection): boolean => /\bPARTITION BY\b/i.test(options?.sqlOptions?.native ?? '');

function createIndex(operation: CreateIndex, before: SchemaModel): readonly Statement<PostgresqlStep>[] | undefined {
  if (operation.sqlOptions?.concurrently) return undefined;
  return compileSql(grammar, { ...operation, sqlOptions: { concurrently: true } }, before);
}

function addConstraint(
  { constraint: definition }: AddConstraint,
  { name: table, fields }: Collection,
): readonly Statement<PostgresqlStep>[] | undefined {
  const constraint = defineConstraint(definition, table, fields.keys());
  switch (constraint.type) {
    case 'foreignKey':
      return isUnchecked(constraint)
        ? undefined
        : [assertReference(table, constraint), addUnchecked(table, constraint), validate(table, constraint.name)];
    case 'check':
      return isUnchecked(constraint)
        ? undefined
        : [assertCheck(table, constraint), addUnchecked(table, constraint), validate(table, constraint.name)];
    case 'unique':
    case 'primaryKey':
      return [buildKey(table, constraint), attachKey(table, constraint)];
  }
}

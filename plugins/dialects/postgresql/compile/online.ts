import type { Statement } from '../../../../core/dialect.ts';
import { defineConstraint, defineField } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, SchemaModel } from '../../../../core/schema/model.ts';
import type { AddConstraint, CreateIndex, Operation } from '../../../../core/schema/operation.ts';
import { compileSql } from '../../sql/compile.ts';
import { grammar } from './grammar.ts';
import { addMirrorOnline, dropMirrorOnline } from './mirror.ts';
import { isPartitioned } from './native-options.ts';
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
      return [assertReference(table, constraint), addUnchecked(table, constraint), validate(table, constraint.name)];
    case 'check':
      return [assertCheck(table, constraint), addUnchecked(table, constraint), validate(table, constraint.name)];
    case 'unique':
    case 'primaryKey':
      return [buildKey(table, constraint), attachKey(table, constraint)];
  }
}

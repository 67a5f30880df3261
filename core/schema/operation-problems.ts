import { isSvcError } from '../errors.ts';
import { isPlainObject } from '../json.ts';
import { type ObjectShape, type Problem, problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import { constraintProblems } from './constraint.ts';
import { isObjectOperation } from './database-object.ts';
import { defineCollection, defineConstraint, defineField, defineIndex } from './define.ts';
import { CHANGES_SHAPE, FIELD_PROPERTIES } from './define-field.ts';
import { assertFieldName, assertName, assertTableName } from './names.ts';
import type { AddField, DropField, MigrationOperation, OperationType, RenameField } from './operation.ts';
import { INDEX_OPTIONS_PROPERTIES, OPTIONS_SHAPE } from './options.ts';

export const NAMED_FIELD: ObjectShape = {
  properties: { name: 'string', ...FIELD_PROPERTIES },
  required: ['name', 'type'],
};

/** The columns of an index in operations and in the schema file. */
export const INDEX_COLUMN: Shape = { properties: { name: 'string', order: 'string' }, required: ['name'] };

export const STRATEGY: Shape = { oneOf: ['copy'] };

/** The shape of a constraint depends on its type. */
export const CONSTRAINT: Shape = { map: 'json' };

/** What a raw statement makes: operations, each validated like any other. */
export const MAKES: Shape = { list: { map: 'json' } };

export const OPERATION_SHAPES: Readonly<Record<OperationType, ObjectShape>> = {
  createCollection: operation(
    { name: 'string', fields: { list: NAMED_FIELD } },
    {
      primaryKey: {
        properties: { name: 'string', columns: { list: 'string' }, native: 'string' },
        required: ['name', 'columns'],
      },
      options: OPTIONS_SHAPE,
    },
  ),
  dropCollection: operation({ collection: 'string' }, { cascade: 'boolean' }),
  renameCollection: operation({ collection: 'string', to: 'string' }),
  addField: operation({ collection: 'string', field: NAMED_FIELD }, { mirrors: 'string' }),
  dropField: operation({ collection: 'string', field: 'string' }, { mirrors: 'string' }),
  renameField: operation(
    { collection: 'string', from: 'string', to: 'string' },
    { strategy: STRATEGY, changes: CHANGES_SHAPE },
  ),
  modifyField: operation({ collection: 'string', field: 'string', changes: CHANGES_SHAPE }),
  createIndex: operation(
    { collection: 'string', index: 'string', columns: { list: INDEX_COLUMN } },
    { unique: 'boolean', sqlOptions: { properties: { concurrently: 'boolean' } }, ...INDEX_OPTIONS_PROPERTIES },
  ),
  dropIndex: operation({ collection: 'string', index: 'string' }),
  addConstraint: operation({ collection: 'string', constraint: CONSTRAINT }),
  dropConstraint: operation({ collection: 'string', constraint: 'string' }),
  createObject: operation({ kind: 'string', name: 'string', definition: 'string' }),
  replaceObject: operation({ kind: 'string', name: 'string', definition: 'string', was: 'string' }),
  dropObject: operation({ kind: 'string', name: 'string', was: 'string' }),
  raw: operation(
    { dialect: 'string', statement: 'string' },
    { check: 'string', transaction: 'boolean', destructive: 'boolean', makes: MAKES },
  ),
};

function operation(required: Record<string, Shape>, optional: Record<string, Shape> = {}): ObjectShape {
  return { properties: { type: 'string', ...required, ...optional }, required: ['type', ...Object.keys(required)] };
}

/**
 * Describes where an external value does not match the shape of an operation. Names and types are not checked here:
 * `apply` checks them against a model.
 */
export function operationProblems(value: unknown): string[] {
  return findProblems(value).map(problemText);
}

function findProblems(value: unknown): Problem[] {
  const anyOperation: Shape = { map: 'json' };
  const [notAnObject] = shapeProblems(value, anyOperation).filter((problem) => problem.path.length === 0);
  if (notAnObject) return [notAnObject];
  const { type } = value as { readonly type?: unknown };
  const [unknownType] = shapeProblems(
    { type },
    { properties: { type: { oneOf: Object.keys(OPERATION_SHAPES) } }, required: ['type'] },
  );
  if (unknownType) return [unknownType];
  const problems = shapeProblems(value, OPERATION_SHAPES[type as OperationType]);
  if (type === 'raw' && problems.length === 0) return makesProblems((value as { readonly makes?: unknown[] }).makes);
  if (type === 'renameField' && problems.length === 0) return strategyProblems(value as RenameField);
  if (problems.length > 0 || type !== 'addConstraint') return problems;
  const { constraint } = value as { readonly constraint: Record<string, unknown> };
  const unnamed: Problem[] =
    constraint.name === undefined ? [{ path: ['constraint', 'name'], text: 'is missing' }] : [];
  return [...unnamed, ...constraintProblems(constraint, ['constraint'])];
}

const NOT_IN_MODEL: ReadonlySet<unknown> = new Set(['raw', 'createObject', 'replaceObject', 'dropObject']);

function makesProblems(makes: readonly unknown[] = []): Problem[] {
  return makes.flatMap((made, index) => {
    const path = ['makes', index];
    if (isPlainObject(made) && NOT_IN_MODEL.has(made.type)) {
      return [{ path: [...path, 'type'], text: `is ${made.type}, which says nothing about the model` }];
    }
    return findProblems(made).map((problem) => ({ ...problem, path: [...path, ...problem.path] }));
  });
}

function strategyProblems({ strategy, changes }: RenameField): Problem[] {
  if (changes === undefined || strategy === 'copy') return [];
  return [{ path: ['changes'], text: "requires strategy: 'copy'; without it, rename the field, then modify it" }];
}

/** Why an operation of the right shape is invalid on every engine and for every model. Empty if it may be valid. */
export function definitionProblems(operation: MigrationOperation): string[] {
  try {
    defineFromOperation(operation);
    return [];
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return [error.why === undefined ? error.message : `${error.message} ${error.why}`];
  }
}

function defineFromOperation(operation: MigrationOperation): void {
  if (isObjectOperation(operation)) return;
  if (operation.type === 'raw') {
    for (const made of operation.makes ?? []) defineFromOperation(made);
    return;
  }
  if (operation.type !== 'createCollection') assertName(operation.collection, 'table');
  switch (operation.type) {
    case 'createCollection':
      defineCollection(operation);
      assertTableName(operation.name);
      break;
    case 'renameCollection':
      assertTableName(operation.to);
      break;
    case 'addField': {
      const { name, ...definition } = operation.field;
      defineField(name, definition, operation.collection);
      break;
    }
    case 'createIndex':
      defineIndex(operation);
      break;
    case 'addConstraint':
      defineConstraint(operation.constraint, operation.collection);
      break;
    case 'dropCollection':
    case 'dropField':
    case 'renameField':
    case 'modifyField':
    case 'dropIndex':
    case 'dropConstraint':
      break;
    default:
      operation satisfies never;
  }
  assertFieldNames(operation);
}

/** Throws `name_invalid` for an operation of a user on a field that is kept, or on one that could be taken for it. */
export function assertFieldNames(operation: MigrationOperation): void {
  for (const name of namedFields(operation)) assertFieldName(name);
}

function namedFields(operation: MigrationOperation): readonly string[] {
  switch (operation.type) {
    case 'createCollection':
      return operation.fields.map(({ name }) => name);
    case 'addField':
      return [operation.field.name, ...mirroredBy(operation)];
    case 'dropField':
      return [operation.field, ...mirroredBy(operation)];
    case 'modifyField':
      return [operation.field];
    case 'renameField':
      return [operation.from, operation.to];
    case 'createIndex':
      return operation.columns.map(({ name }) => name);
    case 'addConstraint':
      return operation.constraint.columns ?? [];
    case 'dropCollection':
    case 'renameCollection':
    case 'dropIndex':
    case 'dropConstraint':
    case 'raw':
    case 'createObject':
    case 'replaceObject':
    case 'dropObject':
      return [];
  }
}

const mirroredBy = ({ mirrors }: AddField | DropField): readonly string[] => (mirrors === undefined ? [] : [mirrors]);

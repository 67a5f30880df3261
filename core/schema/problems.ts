import { constraintProblems } from './constraint.ts';
import { FIELD_PROPERTIES } from './field.ts';
import { CHANGES_SHAPE } from './field-changes.ts';
import { OPERATION_TYPES, type OperationType, type RenameField } from './operation.ts';
import { INDEX_OPTIONS_PROPERTIES, OPTIONS_SHAPE } from './options-shape.ts';
import { type Problem, problemText, type Shape, shapeProblems } from './shape.ts';

const NAMED_FIELD: Shape = { properties: { name: 'string', ...FIELD_PROPERTIES }, required: ['name', 'type'] };

/** Columns of an index as an operation and the schema file write them. */
export const INDEX_COLUMN: Shape = { properties: { name: 'string', order: 'string' }, required: ['name'] };

/** How a field is renamed where the engine cannot do it in place. */
export const STRATEGY: Shape = { oneOf: ['copy'] };

const SHAPES: Readonly<Record<OperationType, Shape>> = {
  createCollection: operation({ name: 'string', fields: { list: NAMED_FIELD } }, { options: OPTIONS_SHAPE }),
  dropCollection: operation({ collection: 'string' }, { cascade: 'boolean' }),
  renameCollection: operation({ collection: 'string', to: 'string' }),
  addField: operation({ collection: 'string', field: NAMED_FIELD }),
  dropField: operation({ collection: 'string', field: 'string' }),
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
  // What a constraint looks like depends on its own type.
  addConstraint: operation({ collection: 'string', constraint: { map: 'json' } }),
  dropConstraint: operation({ collection: 'string', constraint: 'string' }),
  raw: operation({ dialect: 'string', statement: 'string' }, { check: 'string', transaction: 'boolean' }),
};

function operation(required: Record<string, Shape>, optional: Record<string, Shape> = {}): Shape {
  return { properties: { type: 'string', ...required, ...optional }, required: ['type', ...Object.keys(required)] };
}

/**
 * Why a value from outside is not an operation, each with the place inside it; nothing when it is one. Names and
 * types are not looked at here: `apply` knows the model they have to fit.
 */
export function operationProblems(value: unknown): string[] {
  return found(value).map(problemText);
}

function found(value: unknown): Problem[] {
  const anyOperation: Shape = { map: 'json' };
  const [notAnObject] = shapeProblems(value, anyOperation).filter((problem) => problem.path.length === 0);
  if (notAnObject) return [notAnObject];
  const { type } = value as { readonly type?: unknown };
  const [unknownType] = shapeProblems(
    { type },
    { properties: { type: { oneOf: OPERATION_TYPES } }, required: ['type'] },
  );
  if (unknownType) return [unknownType];
  const problems = shapeProblems(value, SHAPES[type as OperationType]);
  if (type === 'renameField' && problems.length === 0) return withoutStrategy(value as RenameField);
  if (problems.length > 0 || type !== 'addConstraint') return problems;
  const { constraint } = value as { readonly constraint: Record<string, unknown> };
  const unnamed: Problem[] =
    constraint.name === undefined ? [{ path: ['constraint', 'name'], text: 'is missing' }] : [];
  return [...unnamed, ...constraintProblems(constraint, ['constraint'])];
}

function withoutStrategy({ strategy, changes }: RenameField): Problem[] {
  if (changes === undefined || strategy === 'copy') return [];
  return [{ path: ['changes'], text: "is for strategy: 'copy' only: else rename the field, then modify it" }];
}

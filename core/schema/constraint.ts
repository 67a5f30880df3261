import { SvcError } from '../errors.ts';
import { isPlainObject } from '../json.ts';
import {
  type ObjectShape,
  type Path,
  type Problem,
  problemText,
  type Shape,
  shapeProblems,
} from '../validate-shape.ts';
import { type Constraint, type ForeignKey, REFERENTIAL_ACTIONS, type ReferentialAction } from './model.ts';
import { assertName } from './names.ts';
import { fieldsInExpression, nativeText } from './native.ts';
import type { ConstraintDefinition } from './operation.ts';

const CONSTRAINT_TYPES = ['foreignKey', 'unique', 'check', 'primaryKey'] as const;

const COLUMNS: Shape = { list: 'string' };
const COMMON = { name: 'string', type: { oneOf: CONSTRAINT_TYPES }, native: 'string' } as const;
const KEY_SHAPE: ObjectShape = { properties: { ...COMMON, columns: COLUMNS }, required: ['type', 'columns'] };

/** Shapes by type. `name` is optional because it can be derived. */
export const CONSTRAINT_SHAPES: Readonly<Record<Constraint['type'], ObjectShape>> = {
  foreignKey: {
    properties: {
      ...COMMON,
      columns: COLUMNS,
      references: {
        properties: { table: 'string', columns: COLUMNS, onDelete: 'string', onUpdate: 'string' },
        required: ['table', 'columns'],
      },
    },
    required: ['type', 'columns', 'references'],
  },
  unique: KEY_SHAPE,
  primaryKey: KEY_SHAPE,
  check: { properties: { ...COMMON, columns: COLUMNS, expression: 'string' }, required: ['type', 'expression'] },
};

const TYPE_SHAPE: Shape = { properties: { type: COMMON.type }, required: ['type'] };

export function constraintProblems(value: unknown, path: Path = []): Problem[] {
  const type = shapeProblems(isPlainObject(value) ? { type: value.type } : value, TYPE_SHAPE, path);
  if (type.length > 0) return type;
  return shapeProblems(value, CONSTRAINT_SHAPES[(value as ConstraintDefinition).type], path);
}

/** A constraint in normal form. A check without `columns` gets those of `fields` that its expression names. */
export function defineConstraint(
  definition: ConstraintDefinition,
  owner: string,
  fields: Iterable<string> = [],
): Constraint {
  const [problem] = constraintProblems(definition);
  if (problem) throw invalidConstraint(owner, definition.name, problemText(problem), problem.path);
  assertName(definition.name, 'constraint');
  const { name } = definition;
  const native = nativeText(definition.native, (why) => invalidConstraint(owner, name, why, ['native']));
  if (definition.type === 'check') {
    const { expression, columns } = definition;
    if (expression.trim() === '') throw invalidConstraint(owner, name, 'The expression is empty.', ['expression']);
    return {
      name,
      type: 'check',
      columns: [...new Set(columns ?? fieldsInExpression(expression, fields))].sort(),
      expression,
      ...native,
    };
  }
  const columns = assertDistinctColumns(definition.columns, owner, name, ['columns']);
  if (definition.type !== 'foreignKey') return { name, type: definition.type, columns, ...native };
  const { table, onDelete, onUpdate } = definition.references;
  const target = assertDistinctColumns(definition.references.columns, owner, name, ['references', 'columns']);
  if (target.length !== columns.length) {
    throw invalidConstraint(owner, name, `It has ${columns.length} columns and references ${target.length}.`, [
      'columns',
    ]);
  }
  const deleting = normalizeAction(onDelete, owner, name, 'onDelete');
  const updating = normalizeAction(onUpdate, owner, name, 'onUpdate');
  return {
    name,
    type: 'foreignKey',
    columns,
    references: {
      table,
      columns: target,
      ...(deleting && { onDelete: deleting }),
      ...(updating && { onUpdate: updating }),
    },
    ...native,
  };
}

function invalidConstraint(owner: string, name: unknown, why: string, path: Path): SvcError {
  const which = typeof name === 'string' ? `"${name}" of "${owner}"` : `of "${owner}"`;
  return new SvcError('constraint_invalid', `The constraint ${which} is not valid.`, {
    why,
    details: { path },
  });
}

function assertDistinctColumns(columns: readonly string[], owner: string, name: string, path: Path): readonly string[] {
  if (columns.length === 0) throw invalidConstraint(owner, name, 'It has no columns.', path);
  if (new Set(columns).size < columns.length) throw invalidConstraint(owner, name, 'It names a column twice.', path);
  return [...columns];
}

function normalizeAction(
  input: string | undefined,
  owner: string,
  name: string,
  key: string,
): ForeignKey['references']['onDelete'] {
  if (input === undefined) return undefined;
  const known = input.toUpperCase().replace(/[\s_]+/g, ' ') as ReferentialAction;
  if (!REFERENTIAL_ACTIONS.includes(known)) {
    throw invalidConstraint(
      owner,
      name,
      `"${input}" is not an action; known actions are ${REFERENTIAL_ACTIONS.join(', ')}.`,
      ['references', key],
    );
  }
  return known === 'NO ACTION' ? undefined : known;
}

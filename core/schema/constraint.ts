import { SvcError } from '../errors.ts';
import { ACTIONS, type Action, type Constraint, type ForeignKey } from './model.ts';
import { checkName } from './names.ts';
import type { ConstraintDefinition } from './operation.ts';
import { type Path, type Problem, problemText, type Shape, shapeProblems } from './shape.ts';

export const CONSTRAINT_TYPES = ['foreignKey', 'unique', 'check', 'primaryKey'] as const;

const COLUMNS: Shape = { list: 'string' };
const COMMON = { name: 'string', type: { oneOf: CONSTRAINT_TYPES } } as const;
const KEY_SHAPE: Shape = { properties: { ...COMMON, columns: COLUMNS }, required: ['type', 'columns'] };

/** Shapes by type; the name may be missing where it can be derived. */
const SHAPES: Readonly<Record<(typeof CONSTRAINT_TYPES)[number], Shape>> = {
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

export function constraintProblems(value: unknown, path: Path = []): Problem[] {
  const type = shapeProblems(value, { properties: COMMON, required: ['type'] }, path).filter(
    (problem) => problem.path.length === path.length || problem.path[path.length] === 'type',
  );
  if (type.length > 0) return type;
  return shapeProblems(value, SHAPES[(value as ConstraintDefinition).type], path);
}

/**
 * A constraint in normal form. A check that does not say which fields it reads gets those of `fields` that its
 * expression names.
 */
export function defineConstraint(
  definition: ConstraintDefinition,
  where: string,
  fields: Iterable<string> = [],
): Constraint {
  const [problem] = constraintProblems(definition);
  if (problem) throw invalid(where, definition.name, problemText(problem), problem.path);
  checkName(definition.name, 'constraint');
  const { name } = definition;
  if (definition.type === 'check') {
    const { expression, columns } = definition;
    if (expression.trim() === '') throw invalid(where, name, 'The expression is empty.', ['expression']);
    return { name, type: 'check', columns: [...new Set(columns ?? fieldsIn(expression, fields))].sort(), expression };
  }
  const columns = distinct(definition.columns, where, name, ['columns']);
  if (definition.type !== 'foreignKey') return { name, type: definition.type, columns };
  const { table, onDelete, onUpdate } = definition.references;
  const target = distinct(definition.references.columns, where, name, ['references', 'columns']);
  if (target.length !== columns.length) {
    throw invalid(where, name, `It has ${columns.length} columns and references ${target.length}.`, ['columns']);
  }
  const deleting = action(onDelete, where, name, 'onDelete');
  const updating = action(onUpdate, where, name, 'onUpdate');
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
  };
}

function invalid(where: string, name: unknown, why: string, path: Path): SvcError {
  const which = typeof name === 'string' ? `"${name}" of "${where}"` : `of "${where}"`;
  return new SvcError('constraint_invalid', `The constraint ${which} cannot hold as it is written.`, {
    why,
    details: { path },
  });
}

function distinct(columns: readonly string[], where: string, name: string, path: Path): readonly string[] {
  if (columns.length === 0) throw invalid(where, name, 'It names no column.', path);
  if (new Set(columns).size < columns.length) throw invalid(where, name, 'It names a column twice.', path);
  return [...columns];
}

function action(
  written: string | undefined,
  where: string,
  name: string,
  key: string,
): ForeignKey['references']['onDelete'] {
  if (written === undefined) return undefined;
  const known = written.toUpperCase().replace(/[\s_]+/g, ' ') as Action;
  if (!ACTIONS.includes(known)) {
    throw invalid(where, name, `"${written}" is not an action; known are ${ACTIONS.join(', ')}.`, ['references', key]);
  }
  return known === 'NO ACTION' ? undefined : known;
}

/** Fields an expression names outside its string literals; unquoted words match without regard to case. */
function fieldsIn(expression: string, fields: Iterable<string>): string[] {
  const quoted = new Set<string>();
  const words = new Set<string>();
  for (const [token] of expression.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|[\p{L}_][\p{L}\p{N}_$]*/gu)) {
    if (token.startsWith('"') || token.startsWith('`')) {
      const quote = token.charAt(0);
      quoted.add(token.slice(1, -1).replaceAll(quote + quote, quote));
    } else if (!token.startsWith("'")) {
      words.add(token.toLowerCase());
    }
  }
  return [...fields].filter((field) => quoted.has(field) || words.has(field.toLowerCase()));
}

/** The shortest definition that gives the constraint. */
export function writtenConstraint(constraint: Constraint): ConstraintDefinition {
  return constraint;
}

import type { Dialect } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import { canonicalJson, isPlainObject } from '../json.ts';
import { replay } from '../schema/apply.ts';
import { definitionProblems } from '../schema/definition-problems.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { Operation } from '../schema/operation.ts';
import { operationProblems } from '../schema/problems.ts';
import type { Migration } from './migration.ts';
import { isTag } from './tag.ts';

const KNOWN = new Set([
  '$schema',
  'tag',
  'name',
  'description',
  'type',
  'collection',
  'fields',
  'field',
  'up',
  'down',
  'irreversible',
  'lossy',
]);

/** Why something is not a migration that can be applied: nothing when it is. With a dialect, what that engine refuses. */
export function problems(migration: unknown, dialect?: Dialect): string[] {
  const shape = shapeProblems(migration);
  if (shape.length > 0 || !dialect) return shape;
  return engineProblems((migration as Migration).up, dialect);
}

function shapeProblems(value: unknown): string[] {
  if (!isPlainObject(value)) return ['A migration is an object.'];
  const found: string[] = [];
  for (const key of Object.keys(value)) if (!KNOWN.has(key)) found.push(`"${key}" is not a property of a migration.`);
  if (!isTag(value.tag)) found.push('tag: 1 to 128 characters of A-Z a-z 0-9 _ . - and not a dot first.');
  for (const key of ['name', 'description', 'irreversible'] as const) {
    if (value[key] !== undefined && typeof value[key] !== 'string') found.push(`${key}: a string.`);
  }
  const lossy = value.lossy;
  if (lossy !== undefined && !(Array.isArray(lossy) && lossy.every((item) => typeof item === 'string'))) {
    found.push('lossy: an array of strings.');
  }
  for (const direction of ['up', 'down'] as const) {
    const operations = value[direction];
    if (!Array.isArray(operations)) {
      found.push(`${direction}: an array of operations.`);
      continue;
    }
    for (const [index, operation] of operations.entries()) {
      const shape = operationProblems(operation);
      const problems = shape.length > 0 ? shape : definitionProblems(operation as Operation);
      for (const problem of problems) found.push(`${direction}[${index}] ${problem}`);
    }
  }
  if (value.irreversible !== undefined && Array.isArray(value.down) && value.down.length > 0) {
    found.push('down: empty where the migration is irreversible.');
  }
  if (found.length === 0) {
    try {
      canonicalJson({ up: value.up, down: value.down });
    } catch (error) {
      found.push(error instanceof Error ? error.message : String(error));
    }
  }
  return found;
}

/** Compiles what can be compiled without a database: operations on tables that the migration itself creates. */
function engineProblems(operations: readonly Operation[], dialect: Dialect): string[] {
  let model: SchemaModel = new Map();
  const found: string[] = [];
  for (const [index, operation] of operations.entries()) {
    if (operation.type !== 'createCollection' && operation.type !== 'raw' && !model.has(operation.collection)) continue;
    try {
      dialect.compile(operation, model);
      model = replay([operation], model);
    } catch (error) {
      if (!isSvcError(error)) throw error;
      found.push(`up[${index}] ${error.message}${error.why ? ` ${error.why}` : ''}`);
    }
  }
  return found;
}

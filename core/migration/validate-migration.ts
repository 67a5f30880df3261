import type { Dialect } from '../dialect.ts';
import { isSvcError } from '../errors.ts';
import { canonicalJson, isPlainObject } from '../json.ts';
import { applyAll } from '../schema/apply.ts';
import { isObjectOperation } from '../schema/database-object.ts';
import type { SchemaModel } from '../schema/model.ts';
import { modelOperations } from '../schema/model-operations.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import { definitionProblems, operationProblems } from '../schema/operation-problems.ts';
import type { Shape } from '../validate-shape.ts';
import { type Migration, PERMISSIONS } from './migration.ts';
import { compileObject } from './objects.ts';
import { isTag } from './tag.ts';

export const MIGRATION_PROPERTIES: Readonly<Record<keyof Migration, Shape>> = {
  $schema: 'string',
  tag: 'string',
  name: 'string',
  description: 'string',
  type: 'string',
  collection: 'string',
  fields: { list: 'any' },
  field: 'any',
  up: { list: 'any' },
  down: { list: 'any' },
  irreversible: 'string',
  irreversibleOn: { list: 'string' },
  lossy: { list: 'string' },
  allow: { list: { oneOf: PERMISSIONS } },
  online: 'boolean',
  contracts: 'string',
  lintIgnore: {
    list: { properties: { rule: 'string', reason: 'string', operation: 'number' }, required: ['rule', 'reason'] },
  },
};

/** Why a value is not a valid migration; empty if it is. With a dialect, also checks what the engine supports. */
export function migrationProblems(migration: unknown, dialect?: Dialect): string[] {
  const problems = migrationShapeProblems(migration);
  if (problems.length > 0 || !dialect) return problems;
  return engineProblems((migration as Migration).up, dialect);
}

function migrationShapeProblems(value: unknown): string[] {
  if (!isPlainObject(value)) return ['A migration must be an object.'];
  const problems: string[] = [];
  for (const key of Object.keys(value))
    if (!Object.hasOwn(MIGRATION_PROPERTIES, key)) problems.push(`"${key}" is not a property of a migration.`);
  if (!isTag(value.tag))
    problems.push('tag: must have 1 to 128 characters of A-Z a-z 0-9 _ . -, and not begin with a dot.');
  for (const key of ['name', 'description', 'irreversible'] as const) {
    if (value[key] !== undefined && typeof value[key] !== 'string') problems.push(`${key}: must be a string.`);
  }
  for (const key of ['lossy', 'irreversibleOn'] as const) {
    const list = value[key];
    if (list !== undefined && !(Array.isArray(list) && list.every((item) => typeof item === 'string'))) {
      problems.push(`${key}: must be an array of strings.`);
    }
  }
  const allow = value.allow;
  if (allow !== undefined && !(Array.isArray(allow) && allow.every((item) => PERMISSIONS.includes(item)))) {
    problems.push(`allow: must be an array of ${PERMISSIONS.map((one) => `"${one}"`).join(' and ')}.`);
  }
  if (value.online !== undefined && typeof value.online !== 'boolean') problems.push('online: must be true or false.');
  if (value.contracts !== undefined && !isTag(value.contracts))
    problems.push('contracts: must be the tag of the migration that it completes.');
  if (value.lintIgnore !== undefined) problems.push(...lintIgnoreProblems(value.lintIgnore));
  for (const direction of ['up', 'down'] as const) {
    const operations = value[direction];
    if (!Array.isArray(operations)) {
      problems.push(`${direction}: must be an array of operations.`);
      continue;
    }
    for (const [index, operation] of operations.entries()) {
      const shapeIssues = operationProblems(operation);
      const operationIssues =
        shapeIssues.length > 0 ? shapeIssues : definitionProblems(operation as MigrationOperation);
      for (const problem of operationIssues) problems.push(`${direction}[${index}] ${problem}`);
    }
  }
  if (value.irreversibleOn !== undefined) {
    if (value.irreversible === undefined) problems.push('irreversible: must give the reason for "irreversibleOn".');
  } else if (value.irreversible !== undefined && Array.isArray(value.down) && value.down.length > 0) {
    problems.push('down: must be empty if the migration is irreversible, or "irreversibleOn" must list the dialects.');
  }
  if (problems.length === 0) {
    try {
      canonicalJson({ up: value.up, down: value.down });
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  return problems;
}

function lintIgnoreProblems(value: unknown): string[] {
  if (!Array.isArray(value)) return ['lintIgnore: must be an array of { rule, reason }.'];
  return value.flatMap((entry: unknown, index) => {
    if (!isPlainObject(entry)) return [`lintIgnore[${index}]: must be an object with "rule" and "reason".`];
    const problems = ['rule', 'reason'].flatMap((key) => {
      const text = entry[key];
      return typeof text === 'string' && text.trim() !== '' ? [] : [`lintIgnore[${index}]: needs a "${key}".`];
    });
    const { operation } = entry;
    if (operation !== undefined && !(Number.isInteger(operation) && (operation as number) >= 0))
      problems.push(`lintIgnore[${index}]: "operation" must be the index of one in "up".`);
    for (const key of Object.keys(entry))
      if (!['rule', 'reason', 'operation'].includes(key))
        problems.push(`lintIgnore[${index}]: "${key}" is not a property of it.`);
    return problems;
  });
}

/** Compiles the operations that need no database: those on tables that the migration itself creates. */
function engineProblems(operations: readonly MigrationOperation[], dialect: Dialect): string[] {
  let model: SchemaModel = new Map();
  const problems: string[] = [];
  for (const [index, operation] of operations.entries()) {
    try {
      if (isObjectOperation(operation)) {
        compileObject(dialect, operation);
        continue;
      }
      if (operation.type !== 'createCollection' && operation.type !== 'raw' && !model.has(operation.collection))
        continue;
      dialect.compile(operation, model);
      model = applyAll(modelOperations([operation], dialect.name), model);
    } catch (error) {
      if (!isSvcError(error)) throw error;
      problems.push(`up[${index}] ${error.message}${error.why ? ` ${error.why}` : ''}`);
    }
  }
  return problems;
}

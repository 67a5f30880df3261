import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import type { Json } from '../json.ts';
import { defineField, FIELD_PROPERTIES, TYPE_PARAMETERS, writtenField } from './field.ts';
import type { Field } from './model.ts';
import type { FieldChanges, FieldDefinition } from './operation.ts';
import { problemText, type Shape, shapeProblems } from './shape.ts';
import { type FieldType, fieldType } from './types.ts';

const CLEARABLE = ['length', 'precision', 'scale', 'enumValues', 'items'] as const;
const FLAGS = ['primaryKey', 'autoGenerate', 'required', 'unique'] as const;
const INTEGERS: ReadonlySet<FieldType> = new Set(['integer', 'bigint', 'smallint']);

export const CHANGES_SHAPE: Shape = {
  properties: Object.fromEntries(
    Object.entries(FIELD_PROPERTIES).map(([key, shape]) => [
      key,
      (CLEARABLE as readonly string[]).includes(key) ? { nullable: shape } : shape,
    ]),
  ),
};

/**
 * The field after a change. What is not mentioned stays; a new type takes the parameters of the old one away, and
 * a default that no longer fits is refused.
 */
export function changedField(field: Field, changes: FieldChanges, where: string): Field {
  const [problem] = shapeProblems(changes, CHANGES_SHAPE);
  if (problem) {
    throw new SvcError('field_invalid', `The change of the field "${where}.${field.name}" is not valid.`, {
      why: problemText(problem),
      details: { path: problem.path },
    });
  }
  const { name, ...before } = writtenField(field);
  const kept: Record<string, unknown> = { ...before };
  const type = changes.type === undefined ? field.type : fieldType(changes.type);
  if (type !== field.type) {
    for (const parameter of Object.keys(TYPE_PARAMETERS)) {
      if (parameter === 'autoGenerate' && type && INTEGERS.has(type) && INTEGERS.has(field.type)) continue;
      delete kept[parameter];
    }
  }
  // Both say one thing: the change replaces it whichever of the two it uses.
  if (changes.nullable !== undefined) delete kept.required;
  if (field.required && field.primaryKey && changes.primaryKey === false && changes.nullable === undefined) {
    kept.required = true;
  }
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    if (value === null) delete kept[key];
    else kept[key] = value;
  }
  return defineField(name, kept as unknown as FieldDefinition, where);
}

/** The changes that lead from one definition to another of the same name; nothing where they are equal. */
export function fieldChanges(from: Field, to: Field): FieldChanges | undefined {
  const changes: { -readonly [K in keyof FieldChanges]: FieldChanges[K] } = {};
  const retyped = from.type !== to.type;
  if (retyped) changes.type = to.type;
  for (const flag of FLAGS) if (from[flag] !== to[flag]) changes[flag] = to[flag] ?? false;
  if (retyped && to.autoGenerate) changes.autoGenerate = true;
  for (const parameter of CLEARABLE) {
    const next = to[parameter];
    if (retyped ? next !== undefined : !isDeepStrictEqual(from[parameter], next)) {
      Object.assign(changes, { [parameter]: next ?? null });
    }
  }
  if (!isDeepStrictEqual(from.default, to.default)) changes.default = (to.default ?? null) as Json;
  return Object.keys(changes).length === 0 ? undefined : changes;
}

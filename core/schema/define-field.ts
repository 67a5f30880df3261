import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import type { Json } from '../json.ts';
import { nearest } from '../nearest.ts';
import { processWide } from '../process-wide.ts';
import { type Path, problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import { normalizeDefault } from './literal.ts';
import { FIELD_TYPES, type Field, type FieldType, type FieldTypeName, fieldType } from './model.ts';
import { assertName } from './names.ts';
import { nativeText } from './native.ts';
import type { FieldChanges, FieldDefinition, NamedFieldDefinition } from './operation.ts';

/** Properties of a field as a user writes it. */
export const FIELD_PROPERTIES: Readonly<Record<keyof FieldDefinition, Shape>> = {
  type: 'string',
  primaryKey: 'boolean',
  autoGenerate: 'boolean',
  length: 'number',
  required: 'boolean',
  nullable: 'boolean',
  unique: 'boolean',
  default: 'json',
  precision: 'number',
  scale: 'number',
  enumValues: { list: 'string' },
  items: 'string',
  native: 'string',
  comment: 'string',
};

export const FIELD_SHAPE: Shape = { properties: FIELD_PROPERTIES, required: ['type'] };

/** Properties that only apply to some types. */
const TYPE_PARAMETERS: Readonly<Partial<Record<keyof FieldDefinition, readonly FieldType[]>>> = {
  length: ['string', 'binary'],
  precision: ['decimal'],
  scale: ['decimal'],
  enumValues: ['enum'],
  items: ['array'],
  autoGenerate: ['integer', 'bigint', 'smallint', 'uuid', 'string'],
};

/**
 * Converts a definition to a field in normal form. Errors have the path inside the definition as `details.path`.
 * `shape` may allow further properties, which are ignored.
 */
export function defineField(
  name: string,
  definition: FieldDefinition | string,
  table: string,
  shape: Shape = FIELD_SHAPE,
): Field {
  assertName(name, 'field');
  const invalid = invalidField(`${table}.${name}`);
  // resolveType checks the name.
  const input = typeof definition === 'string' ? { type: definition as FieldTypeName } : definition;
  const [problem] = shapeProblems(input, shape);
  if (problem) throw invalid(problemText(problem), problem.path);
  const type = resolveType(input.type, `${table}.${name}`, ['type']);
  for (const [property, types] of Object.entries(TYPE_PARAMETERS)) {
    const value = input[property as keyof FieldDefinition];
    if (value !== undefined && value !== false && !types.includes(type)) {
      throw invalid(`"${property}" applies to the types ${types.join(', ')}, not to ${type}.`, [property]);
    }
  }
  const field: Omit<Field, 'default'> = {
    name,
    type,
    ...(input.primaryKey && { primaryKey: true }),
    ...(input.autoGenerate && { autoGenerate: true }),
    ...(isRequired(input, invalid) && { required: true }),
    ...(input.unique && { unique: true }),
    // Without text, the catalogs have none.
    ...(input.comment && { comment: input.comment }),
    ...typeParameters(input, type, invalid, `${table}.${name}`),
  };
  if (input.autoGenerate && type === 'string' && (input.length ?? 36) < 36) {
    throw invalid('A generated string is a UUID of 36 characters; "length" is too short.', ['length']);
  }
  if (input.default === undefined || input.default === null) return remembered(field);
  if (input.autoGenerate) throw invalid('A generated field cannot have a default.', ['default']);
  const normalized = normalizeDefault(input.default, field);
  if ('problem' in normalized) {
    throw invalid(`The default ${JSON.stringify(input.default)} is not valid: ${normalized.problem}.`, ['default']);
  }
  return remembered({ ...field, default: normalized.value });
}

type InvalidField = (why: string, path: Path) => SvcError;

function invalidField(field: string): InvalidField {
  return (why, path) =>
    new SvcError('field_invalid', `The definition of the field "${field}" is not valid.`, { why, details: { path } });
}

function resolveType(input: string, field: string, path: Path): FieldType {
  const type = fieldType(input);
  if (type) return type;
  const near = nearest(input, FIELD_TYPES);
  throw new SvcError('field_type_unknown', `The field "${field}" has the type "${input}", which does not exist.`, {
    why: `Known types: ${FIELD_TYPES.join(', ')}.`,
    ...(near && { next: [`Did you mean "${near}"?`] }),
    details: { path },
  });
}

function isRequired({ required, nullable, primaryKey }: FieldDefinition, invalid: InvalidField): boolean {
  if (required !== undefined && nullable !== undefined && required === nullable) {
    throw invalid(`"required: ${required}" and "nullable: ${nullable}" contradict each other.`, ['nullable']);
  }
  const explicit = required ?? (nullable === undefined ? undefined : !nullable);
  if (primaryKey && explicit === false) {
    throw invalid('A primary key is always required.', [required === undefined ? 'nullable' : 'required']);
  }
  return explicit ?? primaryKey ?? false;
}

type TypeParameters = Pick<Field, 'length' | 'precision' | 'scale' | 'enumValues' | 'items' | 'native'>;

function typeParameters(input: FieldDefinition, type: FieldType, invalid: InvalidField, field: string): TypeParameters {
  const { length, precision, scale, enumValues, items, native } = input;
  if (length !== undefined && !isIntegerFrom(length, 1))
    throw invalid('"length" must be a whole number of at least 1.', ['length']);
  if (precision !== undefined && !isIntegerFrom(precision, 1)) {
    throw invalid('"precision" must be a whole number of at least 1.', ['precision']);
  }
  if (scale !== undefined) {
    if (precision === undefined) throw invalid('"scale" requires "precision".', ['scale']);
    if (!isIntegerFrom(scale, 0) || scale > precision) {
      throw invalid(`"scale" must be a whole number from 0 to the precision, ${precision}.`, ['scale']);
    }
  }
  if (type === 'enum') assertEnumValues(enumValues, invalid);
  return {
    ...(length !== undefined && { length }),
    ...(precision !== undefined && { precision }),
    ...(scale !== undefined && { scale }),
    ...(enumValues !== undefined && { enumValues: [...enumValues] }),
    ...(type === 'array' && { items: itemType(items ?? 'string', field, invalid) }),
    ...nativeText(native, (why) => invalid(why, ['native'])),
  };
}

function isIntegerFrom(value: number, min: number): boolean {
  return Number.isSafeInteger(value) && value >= min;
}

function assertEnumValues(values: readonly string[] | undefined, invalid: InvalidField): void {
  if (values === undefined || values.length === 0) {
    throw invalid('An enum needs "enumValues", a list of at least one string.', ['enumValues']);
  }
  const duplicate = values.findIndex((value, index) => values.indexOf(value) !== index);
  if (duplicate >= 0)
    throw invalid(`The enum value ${JSON.stringify(values[duplicate])} is listed twice.`, ['enumValues', duplicate]);
}

function itemType(input: string, field: string, invalid: InvalidField): FieldType {
  const type = resolveType(input, field, ['items']);
  if (type === 'array' || type === 'enum') throw invalid(`The items of an array cannot be of type ${type}.`, ['items']);
  return type;
}

/** The shortest definition of the field. */
export function toFieldDefinition(field: Field): NamedFieldDefinition {
  const { required, items, default: value, ...rest } = field;
  const definition = Object.freeze({
    ...rest,
    ...(required && !field.primaryKey && { required }),
    ...(items !== undefined && items !== 'string' && { items }),
    // `$expression` is JSON as well.
    ...(value !== undefined && { default: value as Json }),
  });
  if (valid.fields.has(field)) valid.definitions.set(definition, field);
  return definition;
}

/** What `defineField` returned, and what was made of it: the fields of a large schema would be validated five times. */
const valid = processWide('valid-fields', () => ({
  fields: new WeakSet<Field>(),
  definitions: new WeakMap<NamedFieldDefinition, Field>(),
}));

function remembered(field: Field): Field {
  valid.fields.add(field);
  return field;
}

/** The same as `defineField`, without validating a definition of `toFieldDefinition` again. */
export function defineNamedField(named: NamedFieldDefinition, table: string): Field {
  const { name, ...definition } = named;
  return valid.definitions.get(named) ?? defineField(name, definition, table);
}

const CLEARABLE = ['length', 'precision', 'scale', 'enumValues', 'items', 'native'] as const;
const NULLABLE: readonly string[] = [...CLEARABLE, 'comment'];
const FLAGS = ['primaryKey', 'autoGenerate', 'required', 'unique'] as const;
const INTEGERS: ReadonlySet<FieldType> = new Set(['integer', 'bigint', 'smallint']);

export const CHANGES_SHAPE: Shape = {
  properties: Object.fromEntries(
    Object.entries(FIELD_PROPERTIES).map(([key, shape]) => [key, NULLABLE.includes(key) ? { nullable: shape } : shape]),
  ),
};

/**
 * The field after a change. Omitted properties keep their values; a new type removes the parameters of the old one.
 * Throws `field_invalid` for a default that no longer fits.
 */
export function applyFieldChanges(field: Field, changes: FieldChanges, table: string): Field {
  const [problem] = shapeProblems(changes, CHANGES_SHAPE);
  if (problem) {
    throw new SvcError('field_invalid', `The change of the field "${table}.${field.name}" is not valid.`, {
      why: problemText(problem),
      details: { path: problem.path },
    });
  }
  const { name, ...before } = toFieldDefinition(field);
  const definition: Record<string, unknown> = { ...before };
  const type = changes.type === undefined ? field.type : fieldType(changes.type);
  if (type !== field.type) {
    for (const parameter of Object.keys(TYPE_PARAMETERS)) {
      if (parameter === 'autoGenerate' && type && INTEGERS.has(type) && INTEGERS.has(field.type)) continue;
      delete definition[parameter];
    }
    delete definition.native;
  }
  // `nullable` and `required` are one property: the change replaces it in either notation.
  if (changes.nullable !== undefined) delete definition.required;
  if (field.required && field.primaryKey && changes.primaryKey === false && changes.nullable === undefined) {
    definition.required = true;
  }
  if (type === field.type && field.native !== undefined && changes.native === undefined) {
    const native = resized(field.native, field, changes);
    if (native === undefined) throw nativeSizeError(table, field);
    definition.native = native;
  }
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) continue;
    if (value === null) delete definition[key];
    else definition[key] = value;
  }
  // `defineField` validates it.
  return defineField(name, definition as unknown as FieldDefinition, table);
}

/** A native type with the new length, precision and scale or list of values; undefined if it does not contain the old ones. */
function resized(native: string, field: Field, changes: FieldChanges): string | undefined {
  const { length, precision, scale, enumValues, items } = changes;
  if ([length, precision, scale, enumValues, items].every((value) => value === undefined)) return native;
  const list = (values: readonly string[] = []) => values.map((value) => `'${value.replaceAll("'", "''")}'`).join(',');
  const size = (from: Pick<FieldChanges, 'length' | 'precision' | 'scale' | 'enumValues'>) =>
    from.enumValues ? list(from.enumValues) : (from.length ?? `${from.precision},${from.scale ?? 0}`);
  const before = `(${size(field)})`;
  return items === undefined && native.includes(before)
    ? native.replace(before, () => `(${size({ ...field, ...changes })})`)
    : undefined;
}

function nativeSizeError(table: string, { name, native }: Field): SvcError {
  return new SvcError('field_invalid', `The change of the field "${table}.${name}" is not valid.`, {
    why: `Its type is the engine's own, ${native}, which says how large its values are.`,
    next: ['Change "native", or remove it with null.'],
    details: { path: ['native'] },
  });
}

/** The changes from one field to another of the same name; undefined if they are equal. */
export function diffField(from: Field, to: Field): FieldChanges | undefined {
  const changes: { -readonly [K in keyof FieldChanges]: FieldChanges[K] } = {};
  const typeChanged = from.type !== to.type;
  if (typeChanged) changes.type = to.type;
  for (const flag of FLAGS) if (from[flag] !== to[flag]) changes[flag] = to[flag] ?? false;
  if (typeChanged && to.autoGenerate) changes.autoGenerate = true;
  for (const parameter of CLEARABLE) {
    const next = to[parameter];
    if (typeChanged ? next !== undefined : !isDeepStrictEqual(from[parameter], next)) {
      Object.assign(changes, { [parameter]: next ?? null });
    }
  }
  if (from.comment !== to.comment) changes.comment = to.comment ?? null;
  if (!isDeepStrictEqual(from.default, to.default)) changes.default = (to.default ?? null) as Json;
  return Object.keys(changes).length === 0 ? undefined : changes;
}

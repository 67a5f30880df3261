import { SvcError } from '../errors.ts';
import type { Json } from '../json.ts';
import { nearest } from '../nearest.ts';
import { fittedDefault } from './default.ts';
import type { Field } from './model.ts';
import { checkName } from './names.ts';
import type { FieldDefinition, NamedField } from './operation.ts';
import { type Path, problemText, type Shape, shapeProblems } from './shape.ts';
import { FIELD_TYPES, type FieldType, fieldType } from './types.ts';

/** Properties of a field as a user writes it, SPEC 2.8. */
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
};

export const FIELD_SHAPE: Shape = { properties: FIELD_PROPERTIES, required: ['type'] };

/** Properties that belong to some types only. */
export const TYPE_PARAMETERS: Readonly<Partial<Record<keyof FieldDefinition, readonly FieldType[]>>> = {
  length: ['string', 'binary'],
  precision: ['decimal'],
  scale: ['decimal'],
  enumValues: ['enum'],
  items: ['array'],
  autoGenerate: ['integer', 'bigint', 'smallint', 'uuid', 'string'],
};

/**
 * A field in normal form from what a user wrote; `where` is the table. Refusals carry the place inside the
 * definition as `details.path`.
 */
export function defineField(name: string, definition: FieldDefinition | string, where: string): Field {
  checkName(name, 'field');
  const refuse = refusal(`${where}.${name}`);
  const written: FieldDefinition = typeof definition === 'string' ? { type: definition } : definition;
  const [problem] = shapeProblems(written, FIELD_SHAPE);
  if (problem) throw refuse(problemText(problem), problem.path);
  const type = typeOf(written.type, `${where}.${name}`, ['type']);
  for (const [property, types] of Object.entries(TYPE_PARAMETERS)) {
    const value = written[property as keyof FieldDefinition];
    if (value !== undefined && value !== false && !types.includes(type)) {
      throw refuse(`"${property}" goes with the types ${types.join(', ')}, not with ${type}.`, [property]);
    }
  }
  const field: Omit<Field, 'default'> = {
    name,
    type,
    ...(written.primaryKey && { primaryKey: true }),
    ...(written.autoGenerate && { autoGenerate: true }),
    ...(isRequired(written, refuse) && { required: true }),
    ...(written.unique && { unique: true }),
    ...parameters(written, type, refuse, `${where}.${name}`),
  };
  if (written.autoGenerate && type === 'string' && (written.length ?? 36) < 36) {
    throw refuse('A generated string is a UUID of 36 characters; "length" is less.', ['length']);
  }
  if (written.default === undefined || written.default === null) return field;
  if (written.autoGenerate) throw refuse('A generated field has no default of its own.', ['default']);
  const fitted = fittedDefault(written.default, field);
  if ('problem' in fitted) {
    throw refuse(`The default ${JSON.stringify(written.default)} does not fit: ${fitted.problem}.`, ['default']);
  }
  return { ...field, default: fitted.value };
}

type Refuse = (why: string, path: Path) => SvcError;

function refusal(field: string): Refuse {
  return (why, path) =>
    new SvcError('field_invalid', `The definition of the field "${field}" is not valid.`, { why, details: { path } });
}

function typeOf(written: string, field: string, path: Path): FieldType {
  const type = fieldType(written);
  if (type) return type;
  const near = nearest(written, FIELD_TYPES);
  throw new SvcError('field_type_unknown', `The field "${field}" has the type "${written}", which does not exist.`, {
    why: `Types are ${FIELD_TYPES.join(', ')}.`,
    ...(near && { next: [`Did you mean "${near}"?`] }),
    details: { path },
  });
}

/** Says the same thing twice in the notation of the spec: `nullable: false` is `required: true`. */
function isRequired({ required, nullable, primaryKey }: FieldDefinition, refuse: Refuse): boolean {
  if (required !== undefined && nullable !== undefined && required === nullable) {
    throw refuse(`"required: ${required}" and "nullable: ${nullable}" contradict each other.`, ['nullable']);
  }
  const said = required ?? (nullable === undefined ? undefined : !nullable);
  if (primaryKey && said === false) {
    throw refuse('A primary key is always required.', [required === undefined ? 'nullable' : 'required']);
  }
  return said ?? primaryKey ?? false;
}

type Parameters = Pick<Field, 'length' | 'precision' | 'scale' | 'enumValues' | 'items'>;

function parameters(written: FieldDefinition, type: FieldType, refuse: Refuse, field: string): Parameters {
  const { length, precision, scale, enumValues, items } = written;
  if (length !== undefined && !isCount(length, 1)) throw refuse('"length" is a whole number from 1 on.', ['length']);
  if (precision !== undefined && !isCount(precision, 1)) {
    throw refuse('"precision" is a whole number from 1 on.', ['precision']);
  }
  if (scale !== undefined) {
    if (precision === undefined) throw refuse('"scale" needs "precision" beside it.', ['scale']);
    if (!isCount(scale, 0) || scale > precision) {
      throw refuse(`"scale" is a whole number from 0 to the precision, ${precision}.`, ['scale']);
    }
  }
  if (type === 'enum') checkEnumValues(enumValues, refuse);
  return {
    ...(length !== undefined && { length }),
    ...(precision !== undefined && { precision }),
    ...(scale !== undefined && { scale }),
    ...(enumValues !== undefined && { enumValues: [...enumValues] }),
    ...(type === 'array' && { items: itemType(items ?? 'string', field, refuse) }),
  };
}

function isCount(value: number, least: number): boolean {
  return Number.isSafeInteger(value) && value >= least;
}

function checkEnumValues(values: readonly string[] | undefined, refuse: Refuse): void {
  if (values === undefined || values.length === 0) {
    throw refuse('An enum needs "enumValues", a list of at least one string.', ['enumValues']);
  }
  const twice = values.findIndex((value, index) => values.indexOf(value) !== index);
  if (twice >= 0) throw refuse(`The enum value ${JSON.stringify(values[twice])} stands twice.`, ['enumValues', twice]);
}

function itemType(written: string, field: string, refuse: Refuse): FieldType {
  const type = typeOf(written, field, ['items']);
  if (type === 'array' || type === 'enum') throw refuse(`The items of an array cannot be of type ${type}.`, ['items']);
  return type;
}

/** The shortest definition that gives the field. */
export function writtenField(field: Field): NamedField {
  const { required, items, default: value, ...rest } = field;
  return {
    ...rest,
    ...(required && !field.primaryKey && { required }),
    ...(items !== undefined && items !== 'string' && { items }),
    // `$expression` is JSON too.
    ...(value !== undefined && { default: value as Json }),
  };
}

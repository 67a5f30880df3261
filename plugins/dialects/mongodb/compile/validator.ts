import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import { isPlainObject, type Json, tryParseJson } from '../../../../core/json.ts';
import { TIMESTAMP_FIELDS } from '../../../../core/schema/define.ts';
import type { CheckConstraint, Collection, Field } from '../../../../core/schema/model.ts';
import { bsonTypes, isIdOfAnyType, typesOfRule } from './types.ts';

/** A validator as extended JSON. */
export type Validator = { readonly [key: string]: Json };

/** The complete validator of a collection: its fields, its checks, and the user's own validator. */
export function validatorOf(collection: Collection): Validator | undefined {
  const fields = [...collection.fields.values()];
  if (collection.options.mongoOptions?.timeseries) return undefined;
  const rules = fields
    .filter((field) => !isRuledByUser(collection, field))
    .map((field): [string, FieldRule] => [field.name, fieldRule(field)]);
  const required = requiredNames(fields.filter(({ name }) => !isDescribedByUser(collection, name)));
  return combineClauses(collection, jsonSchemaOf(rules, required), checkConstraints(collection));
}

/** A validator that accepts documents of both models, during a change in batches. */
export function transitionValidator(before: Collection, after: Collection): Validator | undefined {
  const names = [...new Set([...before.fields.keys(), ...after.fields.keys()])].filter((name) => {
    const field = after.fields.get(name) ?? before.fields.get(name);
    return field && !isRuledByUser(after, field);
  });
  const rules = names.flatMap((name): [string, FieldRule][] => {
    const [from, to] = [before.fields.get(name), after.fields.get(name)];
    if (from && to) return [[name, transitionRule(from, to)]];
    const only = from ?? to;
    return only ? [[name, transitionRule(only, only)]] : [];
  });
  const requiredInBoth = requiredNames([...after.fields.values()]).filter(
    (name) => before.fields.get(name)?.required && !isDescribedByUser(after, name),
  );
  const checks = checkConstraints(before).filter(({ name }) => after.constraints.has(name));
  return combineClauses(after, jsonSchemaOf(rules, requiredInBoth), checks);
}

export function checkConstraints({ constraints }: Collection): CheckConstraint[] {
  return [...constraints.values()].filter((constraint) => constraint.type === 'check');
}

/** The validator clause of a check, whose expression is a JSON aggregation expression. Throws `constraint_invalid`. */
export function checkClause({ name, expression }: CheckConstraint): Validator {
  const parsed = parseObject(expression);
  if (parsed) return { $expr: parsed };
  throw new SvcError('constraint_invalid', `The expression of the check "${name}" cannot be used on MongoDB.`, {
    why: 'On MongoDB it is the JSON of an aggregation expression.',
    next: ['For example: { "$gte": ["$total", 0] }'],
  });
}

/** The validator in `mongoOptions`; a bare JSON schema is wrapped in `$jsonSchema`. */
export function userValidator({ options }: Collection): Validator | undefined {
  const validator = options.mongoOptions?.validator;
  if (!validator || Object.keys(validator).length === 0) return undefined;
  return Object.keys(validator).some((key) => ['bsonType', 'required', 'properties'].includes(key))
    ? { $jsonSchema: validator }
    : validator;
}

/** Whether MongoDB accepts any document, and svc only knows its fields: it needs no validator. */
export const isOnlyDescribed = (collection: Collection): boolean =>
  collection.options.mongoOptions?.validationLevel === 'off' && userValidator(collection) === undefined;

/**
 * Whether a field has no rule of its own: an `_id` of any type, or a field that the user's validator allows other types
 * than the field's, such as an ObjectId. Only an adopted collection has such fields; a second rule would reject its documents.
 */
function isRuledByUser(collection: Collection, field: Field): boolean {
  return isIdOfAnyType(field) || hasOtherTypes(collection, field) || isDescribedByUser(collection, field.name);
}

/** Whether the user's validator says all about the field. */
function isDescribedByUser(collection: Collection, field: string): boolean {
  return (
    collection.options.mongoOptions?.validatorDescribesFields === true && field in (userProperties(collection) ?? {})
  );
}

/** Whether the user's validator allows a field types that its own type does not have. */
export function hasOtherTypes(collection: Collection, field: Field): boolean {
  const types = typesOfRule(userProperties(collection)?.[field.name]);
  const own: readonly string[] = [...bsonTypes[field.type], 'null'];
  return types?.some((type) => !own.includes(type)) ?? false;
}

/** The rules of fields in the user's validator. */
function userProperties(collection: Collection): Validator | undefined {
  const schema = userSchema(collection);
  return schema && isPlainObject(schema.properties) ? (schema.properties as Validator) : undefined;
}

/** Whether the user's validator rejects documents with a field that it does not name. */
export function forbidsField(collection: Collection, field: string): boolean {
  return userSchema(collection)?.additionalProperties === false && !(field in (userProperties(collection) ?? {}));
}

function userSchema(collection: Collection): Validator | undefined {
  const schema = schemaClause(userValidator(collection));
  return schema && (schema.$jsonSchema as Validator);
}

/** The part of a validator that is a JSON schema. */
export function schemaClause(
  validator: Validator | undefined,
  isWanted: (clause: Validator) => boolean = () => true,
): Validator | undefined {
  return clausesOf(validator).find((clause) => isPlainObject(clause.$jsonSchema) && isWanted(clause));
}

/** The conditions that a validator combines. */
export function clausesOf(validator: Validator = {}): readonly Validator[] {
  return Array.isArray(validator.$and) ? (validator.$and as readonly Validator[]) : [validator];
}

export function parseObject(text: string): Validator | undefined {
  const parsed = tryParseJson(text);
  return isPlainObject(parsed) ? (parsed as Validator) : undefined;
}

/** Undefined without rules: a schema of only "an object" accepts every document. */
function jsonSchemaOf(
  rules: readonly (readonly [string, FieldRule])[],
  required: readonly string[],
): Validator | undefined {
  if (rules.length === 0 && required.length === 0) return undefined;
  return {
    $jsonSchema: {
      bsonType: 'object',
      ...(required.length > 0 && { required }),
      ...(rules.length > 0 && { properties: Object.fromEntries(rules) }),
    },
  };
}

/**
 * Whether the validator rejects documents without the field. MongoDB itself adds an `_id`; nothing fills in the fields of
 * the option `timestamps` on insert, so they may be missing, but not null.
 */
export const mustExist = (field: Field): boolean =>
  field.required === true && !isIdOfAnyType(field) && !isTimestamp(field);

const isTimestamp = ({ name, ...field }: Field): boolean =>
  TIMESTAMP_FIELDS.some((added) => added.name === name && added.type === field.type && added.default === field.default);

function requiredNames(fields: readonly Field[]): string[] {
  return fields.filter(mustExist).map(({ name }) => name);
}

function combineClauses(
  collection: Collection,
  schema: Validator | undefined,
  checks: readonly CheckConstraint[],
): Validator | undefined {
  const clauses = [schema, ...checks.map(checkClause), userValidator(collection)].filter(
    (clause) => clause !== undefined,
  );
  return clauses.length > 1 ? { $and: clauses } : clauses[0];
}

/** The `$jsonSchema` of one field, with keywords that both mongod and DocumentDB support. */
export type FieldRule = { readonly bsonType: Json; readonly [keyword: string]: Json };

const DECIMAL_DIGITS = 34;
const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
const TIME = '^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,3})?)?$';

/** The rule of a field, which allows null for an optional field. Missing values are up to the schema's `required`. */
export function fieldRule(field: Field): FieldRule {
  const types = bsonTypes[field.type];
  const { enum: values, ...keywords } = keywordsOf(field);
  const labels = values as readonly Json[] | undefined;
  return {
    bsonType: typeList(field.required ? types : [...types, 'null']),
    ...(labels && { enum: field.required ? labels : [...labels, null] }),
    ...keywords,
  };
}

/** The same field without `required`. */
export const nullableField = ({ required: _, ...field }: Field): Field => field;

/** A rule that accepts what either rule accepts, during a change of the values. */
function transitionRule(from: Field, to: Field): FieldRule {
  const [a, b] = [fieldRule(nullableField(from)), fieldRule(nullableField(to))];
  if (isDeepStrictEqual(a, b)) return a;
  return { bsonType: [...new Set([...bsonTypes[from.type], ...bsonTypes[to.type], 'null'])] };
}

const typeList = (types: readonly string[]): Json => (types.length === 1 ? (types[0] ?? null) : types);

function keywordsOf(field: Field): { readonly [keyword: string]: Json } {
  switch (field.type) {
    case 'integer':
      return { multipleOf: 1, minimum: -2147483648, maximum: 2147483647 };
    case 'smallint':
      return { multipleOf: 1, minimum: -32768, maximum: 32767 };
    case 'string':
      return field.length === undefined ? {} : { maxLength: field.length };
    case 'enum':
      return { enum: field.enumValues ?? [] };
    case 'uuid':
      return { pattern: UUID };
    case 'time':
      return { pattern: TIME };
    case 'decimal':
      return decimalKeywords(field);
    case 'array': {
      const item: Field = { name: field.name, type: field.items ?? 'string' };
      return { items: fieldRule(item) };
    }
    default:
      return {};
  }
}

function decimalKeywords({ name, precision, scale = 0 }: Field): { readonly [keyword: string]: Json } {
  if (precision === undefined) return {};
  if (precision > DECIMAL_DIGITS) {
    throw new SvcError('field_invalid', `The definition of the field "${name}" cannot be used on MongoDB.`, {
      why: `The precision is ${precision}, and a Decimal128 has ${DECIMAL_DIGITS} digits.`,
    });
  }
  const whole = '9'.repeat(precision - scale) || '0';
  const maximum = scale === 0 ? whole : `${whole}.${'9'.repeat(scale)}`;
  const step = scale === 0 ? '1' : `0.${'0'.repeat(scale - 1)}1`;
  const decimal = (text: string): Json => ({ $numberDecimal: text });
  return { multipleOf: decimal(step), minimum: decimal(`-${maximum}`), maximum: decimal(maximum) };
}

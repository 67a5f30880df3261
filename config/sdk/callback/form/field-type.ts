import { inlineJson } from '../../../../core/display/json.ts';
import { displayText } from '../../../../core/display/text.ts';
import { canonicalJson, isPlainObject, type Json } from '../../../../core/json.ts';
import { type JsonSchema, referenced, rootProperties } from '../../../../core/tool/json-schema.ts';
import { limitsOf } from './field-limits.ts';

export interface Option {
  readonly label: string;
  readonly value: Json;
}

export interface Property {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
}

/** One of several objects, each with another constant. */
export interface Variant {
  readonly tag: Option;
  readonly properties: readonly Property[];
}

/** How a value is edited. `json` is for whatever has no control of its own. */
type FieldType =
  | { readonly kind: 'text'; readonly format: unknown }
  | { readonly kind: 'number'; readonly isInteger: boolean }
  | { readonly kind: 'choice'; readonly options: readonly Option[] }
  | { readonly kind: 'object'; readonly properties: readonly Property[]; readonly others: unknown }
  | { readonly kind: 'list'; readonly items: JsonSchema }
  | { readonly kind: 'union'; readonly tag: string; readonly variants: readonly Variant[]; readonly others: unknown }
  | { readonly kind: 'json' };

export interface Field {
  readonly type: FieldType;
  readonly isNullable: boolean;
  /** What the schema says of it: text of a model. */
  readonly about: string;
  /** What values the schema allows, in sentences. */
  readonly limits: readonly string[];
}

const JSON_TYPE: FieldType = { kind: 'json' };
const MAX_REFERENCES = 16;
/** Of a choice, and kinds of a union. With more, a value is edited as JSON. */
const MAX_OPTIONS = 200;

/** How a value of a schema is edited. The schema of the whole document resolves its references. */
export function fieldOf(root: JsonSchema, given: unknown): Field {
  const schema = resolved(root, given);
  const about = [schema.title, schema.description].filter((text) => typeof text === 'string' && text !== '').join('. ');
  const { rest, alternatives, isNullable } = withoutNull(root, schema);
  const type = typeOf(root, rest, alternatives);
  return { type, isNullable, about, limits: limitsOf(type, rest) };
}

/** The parameters that a schema declares, wherever it does. */
export function parametersOf(root: JsonSchema): Property[] {
  const own = propertiesOf(resolved(root, root));
  const names = new Set(own.map(({ name }) => name));
  const others = [...rootProperties(root)].filter(([name]) => !names.has(name));
  return [
    ...own,
    ...others.map(([name, definitions]) => {
      const isOne = new Set(definitions.map(canonicalJson)).size === 1;
      return { name, schema: isOne ? definitions[0] : {}, isRequired: false };
    }),
  ];
}

/** With the target of its reference, and of an `allOf` of one: that is how generators add a description to a reference. */
function resolved(root: JsonSchema, schema: unknown, left = MAX_REFERENCES): JsonSchema {
  if (!isPlainObject(schema)) return {};
  const target = referenced(root, schema);
  if (left > 0 && isPlainObject(target) && target !== schema) {
    const { $ref: _, ...own } = schema;
    return { ...resolved(root, target, left - 1), ...own };
  }
  const { allOf, ...own } = schema;
  if (left > 0 && Array.isArray(allOf) && allOf.length === 1) return { ...resolved(root, allOf[0], left - 1), ...own };
  return schema;
}

/** The schema without what allows `null`, and its alternatives. */
function withoutNull(root: JsonSchema, schema: JsonSchema) {
  const { anyOf, oneOf, ...plain } = schema;
  const listed = [anyOf, oneOf].filter(Array.isArray);
  if (listed.some(({ length }) => length > MAX_OPTIONS)) return { rest: {}, alternatives: [], isNullable: false };
  const all = (listed.length === 1 ? (listed[0] as unknown[]) : []).map((one) => resolved(root, one));
  // Such as `anyOf: [{ required: ['a'] }, { required: ['b'] }]`, which only validates.
  const isCondition = all.every((one) => ['type', 'properties', 'const', 'enum', '$ref'].every((key) => !(key in one)));
  const alternatives = isCondition ? [] : all.filter((one) => one.type !== 'null' && one.const !== null);
  const types = Array.isArray(plain.type) ? plain.type.filter((type) => type !== 'null') : [plain.type];
  const hasNullType = Array.isArray(plain.type) && plain.type.includes('null');
  const isNullable = hasNullType || (!isCondition && alternatives.length < all.length);
  const rest: JsonSchema = { ...plain, type: types.length === 1 ? types[0] : types };
  if (listed.length === 2) return { rest: {}, alternatives: [], isNullable: false };
  if (alternatives.length !== 1) return { rest, alternatives, isNullable };
  const { type, ...siblings } = rest;
  const only = { ...(type !== undefined && { type }), ...siblings, ...alternatives[0] };
  const inner = 'anyOf' in only || 'oneOf' in only ? {} : only;
  return { rest: inner, alternatives: [], isNullable };
}

function typeOf(root: JsonSchema, schema: JsonSchema, alternatives: readonly JsonSchema[]): FieldType {
  if (alternatives.length > 1) return choiceOf(alternatives) ?? unionOf(root, schema, alternatives) ?? JSON_TYPE;
  if ('const' in schema) return { kind: 'choice', options: optionsOf([schema.const as Json]) };
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    return schema.enum.length > MAX_OPTIONS ? JSON_TYPE : { kind: 'choice', options: optionsOf(schema.enum) };
  }
  switch (schema.type ?? impliedType(schema)) {
    case 'string':
      return { kind: 'text', format: schema.format };
    case 'number':
    case 'integer':
      return { kind: 'number', isInteger: schema.type === 'integer' };
    case 'boolean':
      return { kind: 'choice', options: optionsOf([true, false]) };
    case 'null':
      return { kind: 'choice', options: optionsOf([null]) };
    case 'object': {
      const properties = propertiesOf(schema);
      return properties.length > 0 ? { kind: 'object', properties, others: schema.additionalProperties } : JSON_TYPE;
    }
    case 'array':
      return isPlainObject(schema.items) && !('prefixItems' in schema)
        ? { kind: 'list', items: schema.items }
        : JSON_TYPE;
    default:
      return JSON_TYPE;
  }
}

function impliedType(schema: JsonSchema): string | undefined {
  return 'properties' in schema ? 'object' : 'items' in schema ? 'array' : undefined;
}

function propertiesOf({ properties, required }: JsonSchema): Property[] {
  if (!isPlainObject(properties)) return [];
  const names = new Set<unknown>(Array.isArray(required) ? required : []);
  return Object.entries(properties).map(([name, schema]) => ({ name, schema, isRequired: names.has(name) }));
}

function optionsOf(values: readonly Json[]): Option[] {
  // Otherwise the text "1" and the number 1 look alike.
  const areTexts = values.every((value) => typeof value === 'string' && value.trim() !== '');
  return values.map((value) => ({ label: areTexts ? displayText(String(value)) : inlineJson(value), value }));
}

/** The only value that a schema allows. */
function constantOf(schema: JsonSchema): Json | undefined {
  if ('const' in schema) return schema.const as Json;
  return Array.isArray(schema.enum) && schema.enum.length === 1 ? schema.enum[0] : undefined;
}

function choiceOf(alternatives: readonly JsonSchema[]): FieldType | undefined {
  const constants = alternatives.map(constantOf).filter((value) => value !== undefined);
  if (constants.length < alternatives.length) return undefined;
  const options = optionsOf(constants).map(({ label, value }, index) => {
    const title = alternatives[index]?.title;
    return { label: typeof title === 'string' ? `${displayText(title)} (${label})` : label, value };
  });
  return { kind: 'choice', options };
}

/** Objects that have a property with another constant in each of them. */
function unionOf(root: JsonSchema, base: JsonSchema, alternatives: readonly JsonSchema[]): FieldType | undefined {
  const shared = propertiesOf(base);
  const all = alternatives.map((one) => {
    const own = propertiesOf(one);
    return [...shared.filter(({ name }) => own.every((property) => property.name !== name)), ...own];
  });
  for (const { name, schema } of all[0] ?? []) {
    if (constantOf(resolved(root, schema)) === undefined) continue;
    const tags = all.map((properties) => {
      const property = properties.find((one) => one.name === name);
      return property && constantOf(resolved(root, property.schema));
    });
    const constants = tags.filter((tag) => tag !== undefined);
    if (new Set(constants.map(canonicalJson)).size < all.length) continue;
    const variants = optionsOf(constants).map((tag, index) => ({
      tag,
      properties: (all[index] ?? []).filter((property) => property.name !== name),
    }));
    return { kind: 'union', tag: name, variants, others: {} };
  }
  return undefined;
}

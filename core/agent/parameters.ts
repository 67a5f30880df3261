import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv';
import type { Parameters } from '../approval/request.ts';
import { isPlainObject, type Json } from '../json.ts';
import { nearest } from '../nearest.ts';
import { type Path, type Problem, pathText, type Shape, shapeProblems } from '../schema/shape.ts';
import { ownJson, sealed } from './own-json.ts';
import { PARAMETER_TYPES, type ParameterMap } from './parameters-of.ts';

/** What Anthropic takes, the narrowest of the providers. */
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const MOST_PROBLEMS = 20;
/** Keywords whose value is no schema. */
const DATA: ReadonlySet<string> = new Set(['default', 'enum', 'const', 'examples']);

export interface ParameterProblem {
  /** Where: `amount`, `items[0].sku`; empty for the whole. */
  readonly parameter: string;
  /** Never quotes a value: it may be a secret, or be sent to a model. */
  readonly why: string;
}

export type Checked =
  | { readonly ok: true; readonly parameters: Parameters }
  | { readonly ok: false; readonly problems: readonly ParameterProblem[] };

export interface ParameterRules {
  /** JSON Schema of the object of parameters, as a model is shown it. */
  readonly schema: { readonly [keyword: string]: Json };
  /** Top-level parameters with a sensitive part. */
  readonly sensitive: readonly string[];
  /** Nothing is coerced, defaults are filled in; what comes back shares nothing with what was given. */
  check(value: unknown): Checked;
}

/** Adds to `problems` what cannot be used, each with its path; then the rules are undefined. */
export function compileParameters(given: ParameterMap, path: Path, problems: Problem[]): ParameterRules | undefined {
  const before = problems.length;
  const ajv = schemaCompiler();
  for (const [name, definition] of Object.entries(given))
    problems.push(...definitionProblems(ajv, name, definition, path));
  if (problems.length > before) return undefined;
  // What becomes of the object that was given is its owner's affair.
  const map = structuredClone(given);
  const names = Object.keys(map);
  const required = names.filter((name) => map[name]?.required === true);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(Object.entries(map).map(([name, { required: _, ...keywords }]) => [name, keywords])),
    required,
    additionalProperties: false,
  };
  const validate = compiled(ajv, schema);
  return {
    schema: shown(schema) as ParameterRules['schema'],
    sensitive: names.filter((name) => hasSensitive(map[name])),
    check: (value) => check(validate, names, value),
  };
}

/** The check of rules whose `schema` was stored: a decision may be made where nobody defines the tool. */
export function checkerOf(schema: ParameterRules['schema']): ParameterRules['check'] {
  const validate = compiled(schemaCompiler(), schema);
  const names = isPlainObject(schema.properties) ? Object.keys(schema.properties) : [];
  return (value) => check(validate, names, value);
}

function check(validate: ValidateFunction, names: readonly string[], value: unknown): Checked {
  const owned = ownJson(value ?? {});
  if (!('value' in owned)) return { ok: false, problems: [{ parameter: pathText(owned.path), why: owned.why }] };
  if (!isPlainObject(owned.value)) return { ok: false, problems: [{ parameter: '', why: 'must be an object' }] };
  if (validate(owned.value)) return { ok: true, parameters: sealed(owned.value as Parameters) };
  const found = (validate.errors ?? []).slice(0, MOST_PROBLEMS).map((error) => said(error, names));
  return { ok: false, problems: found };
}

function said({ keyword, instancePath, params, message }: ErrorObject, names: readonly string[]): ParameterProblem {
  const path = steps(instancePath);
  if (keyword === 'required') {
    return { parameter: pathText([...path, String(params.missingProperty)]), why: 'is missing' };
  }
  if (keyword === 'additionalProperties') {
    const name = String(params.additionalProperty);
    const near = path.length === 0 ? nearest(name, names) : undefined;
    return {
      parameter: pathText([...path, name]),
      why: near === undefined ? 'is not known' : `is not known; did you mean "${near}"?`,
    };
  }
  return { parameter: pathText(path), why: message ?? `does not fit ${keyword}` };
}

/** A JSON Pointer as a path. */
function steps(pointer: string): (string | number)[] {
  const parts = pointer.split('/').slice(1);
  return parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')));
}

const PARAMETER: Shape = {
  properties: {
    type: { oneOf: PARAMETER_TYPES },
    required: 'boolean',
    description: 'string',
    sensitive: 'boolean',
    default: 'json',
  },
  required: ['type'],
};

function definitionProblems(ajv: Ajv, name: string, definition: unknown, at: Path): Problem[] {
  const path = [...at, name];
  const owned = ownJson({ [name]: definition });
  if (!NAME.test(name)) return [{ path, text: 'is not a name of 1 to 64 characters A-Z a-z 0-9 _ . -' }];
  if (!('value' in owned)) return [{ path: [...at, ...owned.path], text: owned.why }];
  if (!isPlainObject(definition)) return shapeProblems(definition, PARAMETER, path);
  const { type, required, description, sensitive, default: otherwise, ...keywords } = definition;
  const own = shapeProblems({ type, required, description, sensitive, default: otherwise }, PARAMETER, path);
  if (Array.isArray(required)) own.push({ path: [...path, 'allOf'], text: 'is the place for [{ required: […] }]' });
  own.push(...referenceProblems(keywords, path));
  if (own.length > 0) return own;
  const { required: _, default: __, ...schema } = definition;
  try {
    const validate = compiled(ajv, schema);
    if (otherwise === undefined || validate(structuredClone(otherwise))) return [];
    return [{ path: [...path, 'default'], text: `does not fit its own parameter: ${ajv.errorsText(validate.errors)}` }];
  } catch (error) {
    return [{ path, text: `is not a JSON Schema: ${error instanceof Error ? error.message : String(error)}` }];
  }
}

/** A definition stands for itself: what it refers to could change without its digest. */
function referenceProblems(value: unknown, path: Path): Problem[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => referenceProblems(item, [...path, index]));
  if (!isPlainObject(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    if (key.startsWith('$')) return [{ path: [...path, key], text: 'is not allowed: write the schema out' }];
    return DATA.has(key) ? [] : referenceProblems(member, [...path, key]);
  });
}

function hasSensitive(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasSensitive);
  if (!isPlainObject(schema)) return false;
  return schema.sensitive === true || Object.values(schema).some(hasSensitive);
}

/** Without our own keyword, which some providers refuse. */
function shown(schema: unknown): Json {
  if (Array.isArray(schema)) return schema.map(shown);
  if (!isPlainObject(schema)) return schema as Json;
  const members = Object.entries(schema).filter(([key, value]) => key !== 'sensitive' || typeof value !== 'boolean');
  return Object.fromEntries(members.map(([key, value]) => [key, DATA.has(key) ? (value as Json) : shown(value)]));
}

/** The compiler keeps nothing of the schema: definitions come and go. */
function compiled(ajv: Ajv, schema: object): ValidateFunction {
  const validate = ajv.compile(schema);
  ajv.removeSchema(schema);
  return validate;
}

let compiler: Ajv | undefined;

/** Loaded with the first definition, and at once: migrations need none, and `define` does not wait. */
function schemaCompiler(): Ajv {
  if (compiler) return compiler;
  const { Ajv } = createRequire(import.meta.filename)('ajv') as typeof import('ajv');
  compiler = new Ajv({ strict: true, allErrors: true, useDefaults: true, ownProperties: true, logger: false });
  return compiler.addKeyword({ keyword: 'sensitive', schemaType: 'boolean' });
}

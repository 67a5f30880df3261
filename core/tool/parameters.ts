import type { Ajv, ValidateFunction } from 'ajv';
import { canonicalJson, isPlainObject, type Json } from '../json.ts';
import { type Path, type Problem, pathText, type Shape, shapeProblems } from '../validate-shape.ts';
import {
  compileSchema,
  DATA_KEYWORDS,
  type ParameterProblem,
  parameterProblem,
  parametersCompiler,
  type StoredSchema,
} from './json-schema.ts';
import { prototypelessCopy, toSafeJson } from './safe-json.ts';

/** The parameters of one tool call. @experimental */
export type ToolParameters = { readonly [name: string]: Json };

const PARAMETER_TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object'] as const;
/** @experimental */
export type ParameterType = (typeof PARAMETER_TYPES)[number];

/** A parameter of a tool. Any JSON Schema keyword (draft 7) is allowed as well. @experimental */
export interface ParameterDefinition {
  readonly type: ParameterType;
  /** Default false. A parameter with a `default` is always present. */
  readonly required?: boolean;
  readonly default?: Json;
  readonly description?: string;
  /** Masked in webhooks, events and lists. A reviewer must reveal it before they decide. */
  readonly sensitive?: boolean;
  readonly enum?: readonly Json[];
  readonly items?: { readonly type?: ParameterType; readonly [keyword: string]: unknown };
  readonly [keyword: string]: unknown;
}

/** @experimental */
export type ParameterMap = { readonly [name: string]: ParameterDefinition };

/** The type of a handler's parameters. Those that are required or have a default are always present. @experimental */
export type ParametersOf<M extends ParameterMap> = string extends keyof M
  ? ToolParameters
  : {
      readonly [N in keyof M as IsPresent<M[N]> extends true ? N : never]: ValueOf<M[N]>;
    } & { readonly [N in keyof M as IsPresent<M[N]> extends true ? never : N]?: ValueOf<M[N]> };

type IsPresent<D> = D extends { readonly required: true } ? true : D extends { readonly default: Json } ? true : false;

type ValueOf<D extends { readonly type?: unknown }> = D extends { readonly enum: readonly (infer V)[] }
  ? V
  : D extends { readonly type: 'array'; readonly items: infer I extends { readonly type: ParameterType } }
    ? readonly JsonType<I['type']>[]
    : D['type'] extends ParameterType
      ? JsonType<D['type']>
      : Json;

type JsonType<T extends ParameterType> = {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  array: readonly Json[];
  object: { readonly [name: string]: Json };
}[T];

/** Anthropic's rule, the strictest of all providers. */
const PARAMETER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
export const MAX_PROBLEMS = 20;

export type ParameterValidation =
  | {
      readonly ok: true;
      /** What is shown, stored and approved: frozen, and valid as it is. */
      readonly parameters: ToolParameters;
      /** What the handler receives. */
      readonly input: unknown;
    }
  | { readonly ok: false; readonly problems: readonly ParameterProblem[] };

export interface CompiledParameters {
  /** JSON Schema of the parameters object, as sent to the model. */
  readonly schema: StoredSchema;
  /** Top-level parameters that are sensitive or contain a sensitive value. */
  readonly sensitive: readonly string[];
  /** True for a Standard Schema: it fills in the defaults of its JSON Schema. */
  readonly addsDefaults?: boolean;
  /** Fills in defaults and coerces nothing, unless a Standard Schema does. */
  validate(value: unknown): ParameterValidation | Promise<ParameterValidation>;
}

/** Returns undefined if a definition is invalid, and adds each problem with its path to `problems`. */
export function compileParameters(
  given: ParameterMap,
  path: Path,
  problems: Problem[],
): CompiledParameters | undefined {
  const before = problems.length;
  const ajv = parametersCompiler.shared();
  for (const [name, definition] of Object.entries(given))
    problems.push(...definitionProblems(ajv, name, definition, path));
  if (problems.length > before) return undefined;
  // The caller may change the object later.
  const definitions = structuredClone(given);
  const names = Object.keys(definitions);
  const required = names.filter((name) => definitions[name]?.required === true);
  const schema = {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(definitions).map(([name, { required: _, ...keywords }]) => [name, keywords]),
    ),
    required,
    additionalProperties: false,
  };
  const validate = compileSchema(ajv, schema);
  return {
    schema: withoutSensitiveKeyword(schema) as StoredSchema,
    sensitive: names.filter((name) => hasSensitive(definitions[name])),
    validate: (value) => validateParameters(validate, { names, hasConditions: hasConditions(schema) }, value),
  };
}

/** A validator for a stored `schema` that was made of definitions. */
export function parametersValidator(schema: StoredSchema): (value: unknown) => ParameterValidation {
  const validate = compileSchema(parametersCompiler.shared(), schema);
  const names = isPlainObject(schema.properties) ? Object.keys(schema.properties) : [];
  const known = { names, hasConditions: hasConditions(schema) };
  return (value) => validateParameters(validate, known, value);
}

/** Whether a schema may fill in a default depending on another value. */
function hasConditions(schema: object): boolean {
  const text = JSON.stringify(schema);
  return text.includes('"default":') && /"(if|allOf|anyOf|oneOf|not|dependencies|dependentSchemas|\$ref)":/.test(text);
}

const MAX_PASSES = 10;

/** Ajv fills in a default that depends on another default in its next pass only: repeated until nothing is added. */
function settleDefaults(validate: ValidateFunction, value: Json): boolean | 'unsettled' {
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const before = canonicalJson(value);
    if (!validate(value)) return false;
    if (canonicalJson(value) === before) return true;
  }
  return 'unsettled';
}

function validateParameters(
  validate: ValidateFunction,
  { names, hasConditions }: { readonly names: readonly string[]; readonly hasConditions: boolean },
  value: unknown,
): ParameterValidation {
  const safe = toSafeJson(value ?? {});
  if (!('value' in safe)) return { ok: false, problems: [{ parameter: pathText(safe.path), why: safe.why }] };
  if (!isPlainObject(safe.value)) return { ok: false, problems: [{ parameter: '', why: 'must be an object' }] };
  const isValid = hasConditions ? settleDefaults(validate, safe.value) : validate(safe.value);
  if (isValid === 'unsettled')
    return { ok: false, problems: [{ parameter: '', why: 'gets another default each time it is validated' }] };
  if (isValid) {
    const parameters = prototypelessCopy(safe.value as ToolParameters);
    return { ok: true, parameters, input: parameters };
  }
  const errors = (validate.errors ?? []).slice(0, MAX_PROBLEMS);
  return { ok: false, problems: errors.map((error) => parameterProblem(error, names)) };
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
  const safe = toSafeJson({ [name]: definition });
  if (!PARAMETER_NAME.test(name)) return [{ path, text: 'is not a valid name: use 1 to 64 of A-Z a-z 0-9 _ . -' }];
  if (!('value' in safe)) return [{ path: [...at, ...safe.path], text: safe.why }];
  if (!isPlainObject(definition)) return shapeProblems(definition, PARAMETER, path);
  const { type, required, description, sensitive, default: defaultValue, ...keywords } = definition;
  const problems = shapeProblems({ type, required, description, sensitive, default: defaultValue }, PARAMETER, path);
  if (Array.isArray(required))
    problems.push({ path: [...path, 'allOf'], text: 'is the place for [{ required: […] }]' });
  problems.push(...referenceProblems(keywords, path));
  if (problems.length > 0) return problems;
  const { required: _, default: __, ...schema } = definition;
  try {
    const validate = compileSchema(ajv, schema);
    if (defaultValue === undefined || validate(structuredClone(defaultValue))) return [];
    return [{ path: [...path, 'default'], text: `does not match its parameter: ${ajv.errorsText(validate.errors)}` }];
  } catch (error) {
    return [{ path, text: `is not a JSON Schema: ${error instanceof Error ? error.message : String(error)}` }];
  }
}

/** A `$ref` is rejected: its target could change without changing the tool's digest. */
function referenceProblems(value: unknown, path: Path): Problem[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => referenceProblems(item, [...path, index]));
  if (!isPlainObject(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    if (key.startsWith('$')) return [{ path: [...path, key], text: 'is not allowed: write the schema out' }];
    return DATA_KEYWORDS.has(key) ? [] : referenceProblems(member, [...path, key]);
  });
}

function hasSensitive(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasSensitive);
  if (!isPlainObject(schema)) return false;
  return schema.sensitive === true || Object.values(schema).some(hasSensitive);
}

/** Some providers reject a keyword that JSON Schema does not define. */
function withoutSensitiveKeyword(schema: unknown): Json {
  if (Array.isArray(schema)) return schema.map(withoutSensitiveKeyword);
  if (!isPlainObject(schema)) return schema as Json;
  const members = Object.entries(schema).filter(([key, value]) => key !== 'sensitive' || typeof value !== 'boolean');
  return Object.fromEntries(
    members.map(([key, value]) => [key, DATA_KEYWORDS.has(key) ? (value as Json) : withoutSensitiveKeyword(value)]),
  );
}

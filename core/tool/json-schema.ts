import { createRequire } from 'node:module';
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv';
import { canonicalJson, isPlainObject, type Json } from '../json.ts';
import { nearest } from '../nearest.ts';
import { Recent } from '../recent.ts';
import { type Path, type Problem, pathText } from '../validate-shape.ts';

/** A JSON Schema object. @experimental */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A JSON Schema as it is stored. */
export type StoredSchema = { readonly [keyword: string]: Json };

export interface ParameterProblem {
  /** The path, such as `amount` or `items[0].sku`; empty for the whole object. */
  readonly parameter: string;
  /** Never quotes the value of a sensitive parameter. */
  readonly why: string;
}

/** JSON Schema keywords whose value is data and not a schema. */
export const DATA_KEYWORDS: ReadonlySet<string> = new Set(['default', 'enum', 'const', 'examples']);

const DRAFT_2020_12 = 'https://json-schema.org/draft/2020-12/schema';
const DRAFT_7 = 'http://json-schema.org/draft-07/schema';

const SCHEMA_MAPS = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'];
const SCHEMA_LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const SCHEMAS = [
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'additionalItems',
  'unevaluatedItems',
];
const SINGLE_SCHEMAS = [...SCHEMAS, 'contains', 'not', 'if', 'then', 'else', 'items', 'contentSchema'];

/** Rebuilds a schema with `change` applied to each of its subschemas that is an object, and to itself; parents first. */
export function mapSchema(schema: unknown, change: (schema: JsonSchema) => JsonSchema): Json {
  if (!isPlainObject(schema)) return schema as Json;
  const inner = (value: unknown) => mapSchema(value, change);
  const innerList = (value: unknown) => (Array.isArray(value) ? value.map(inner) : inner(value));
  const entries = Object.entries(change(schema)).map(([keyword, value]) => {
    if (SCHEMA_MAPS.includes(keyword) && isPlainObject(value))
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, member]) => [name, inner(member)]))];
    const holdsSchemas = SCHEMA_LISTS.includes(keyword) || SINGLE_SCHEMAS.includes(keyword);
    return [keyword, holdsSchemas ? innerList(value) : value];
  });
  return Object.fromEntries(entries) as Json;
}

/** The subschemas that apply to the value itself, without that of a reference. */
function inPlaceSchemas(schema: JsonSchema): unknown[] {
  const { allOf = [], anyOf = [], oneOf = [], dependentSchemas = {}, dependencies = {} } = schema;
  return [
    ...[allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : [])),
    ...[schema.if, schema.then, schema.else, schema.not],
    ...[dependentSchemas, dependencies].flatMap((map) => (isPlainObject(map) ? Object.values(map) : [])),
  ];
}

/** The definitions of each property of the root object, wherever the schema declares it. */
export function rootProperties(schema: JsonSchema): ReadonlyMap<string, readonly unknown[]> {
  const found = new Map<string, unknown[]>();
  const seen = new Set<unknown>();
  const visit = (value: unknown): void => {
    if (!isPlainObject(value) || seen.has(value)) return;
    seen.add(value);
    const { properties } = value;
    if (isPlainObject(properties)) {
      for (const [name, one] of Object.entries(properties)) found.set(name, [...(found.get(name) ?? []), one]);
    }
    for (const one of inPlaceSchemas(value)) visit(one);
    visit(referenced(schema, value));
  };
  visit(schema);
  return found;
}

/** The target of a `$ref` inside the document, if it is a pointer. */
export function referenced(root: JsonSchema, { $ref }: JsonSchema): unknown {
  if (typeof $ref !== 'string' || !/^#(\/|$)/.test($ref)) return undefined;
  return pointerPath(decodeURIComponent($ref.slice(1))).reduce<unknown>(
    (value, part) => (Array.isArray(value) || isPlainObject(value) ? value[part as keyof typeof value] : undefined),
    root,
  );
}

export interface JsonSchemaCompilation {
  /** With `$schema`, so that another process reads it in the same way. */
  readonly schema: StoredSchema;
  /** The errors of a value; undefined if it is valid. Coerces nothing. */
  readonly errors: (value: Json) => readonly ErrorObject[] | undefined;
}

/**
 * Compiles a JSON Schema of draft 2020-12, the default, or draft 7, as the standard says: `default` and `format` are
 * annotations, and unknown keywords are ignored. `addsDefaults` fills them in, as a Standard Schema does. Returns undefined
 * and adds a problem if the schema is invalid.
 */
export function compileJsonSchema(
  { schema: given, addsDefaults }: { readonly schema: StoredSchema; readonly addsDefaults: boolean },
  path: Path,
  problems: Problem[],
): JsonSchemaCompilation | undefined {
  const { $schema = DRAFT_2020_12 } = given;
  const draft =
    typeof $schema === 'string' ? $schema.replace(/#$/, '').replace(/^https:\/\/(.*draft-07)/, 'http://$1') : '';
  if (draft !== DRAFT_2020_12 && draft !== DRAFT_7) {
    problems.push({ path: [...path, '$schema'], text: 'is not a supported version: use draft 2020-12 or draft 7' });
    return undefined;
  }
  const schema = { $schema, ...given };
  try {
    return { schema, errors: validatorOf(schema, draft === DRAFT_7, addsDefaults) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const hint =
      given.$schema === undefined && /items/.test(why) ? `; a schema of draft 7 needs "$schema": "${DRAFT_7}#"` : '';
    problems.push({ path, text: `is not a JSON Schema: ${why}${hint}` });
    return undefined;
  }
}

function validatorOf(schema: StoredSchema, isDraft7: boolean, addsDefaults: boolean): JsonSchemaCompilation['errors'] {
  const compiler = COMPILERS[isDraft7 ? 'draft7' : 'draft2020'][addsDefaults ? 'adding' : 'plain'];
  const text = JSON.stringify(schema);
  const validate = compiler.compiled.get(text) ?? compile();
  return (value) => (validate(value) ? undefined : (validate.errors ?? []));

  function compile(): ValidateFunction {
    const known = mapSchema(schema, (one) => withoutOthersKeywords(one, isDraft7)) as StoredSchema;
    // Ajv keeps what an `$id` inside a schema names, which would collide with that of the next schema.
    const compiled = compileSchema(text.includes('"$id":') ? compiler.make() : compiler.shared(), known);
    compiler.compiled.set(text, compiled);
    return compiled;
  }
}

/** Ajv gives these a meaning that the standard does not. In draft 7, the keywords next to a `$ref` are ignored. */
function withoutOthersKeywords(schema: JsonSchema, isDraft7: boolean): JsonSchema {
  const { nullable: _, id: __, $async: ___, ...rest } = schema;
  if (!isDraft7 || typeof rest.$ref !== 'string') return rest;
  const { $ref, $schema, definitions } = rest;
  return { $ref, ...($schema !== undefined && { $schema }), ...(definitions !== undefined && { definitions }) };
}

/** Drops the schema from the compiler's cache, which would otherwise grow with every definition. */
export function compileSchema(ajv: Ajv, schema: object): ValidateFunction {
  const validate = ajv.compile(schema);
  ajv.removeSchema(schema);
  return validate;
}

export function parameterProblem(
  { keyword, instancePath, params, message }: ErrorObject,
  names: readonly string[],
): ParameterProblem {
  const path = pointerPath(instancePath);
  if (keyword === 'required') {
    return { parameter: pathText([...path, String(params.missingProperty)]), why: 'is missing' };
  }
  if (keyword === 'additionalProperties' || keyword === 'unevaluatedProperties') {
    const name = String(params.additionalProperty ?? params.unevaluatedProperty);
    const near = path.length === 0 ? nearest(name, names) : undefined;
    return {
      parameter: pathText([...path, name]),
      why: near === undefined ? 'is not known' : `is not known; did you mean "${near}"?`,
    };
  }
  return { parameter: pathText(path), why: message ?? `does not match ${keyword}` };
}

/** Parses a JSON Pointer. */
function pointerPath(pointer: string): (string | number)[] {
  const parts = pointer.split('/').slice(1);
  return parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')));
}

/** The most schemas of one draft whose validators are kept. */
const MAX_COMPILED = 500;

const load = createRequire(import.meta.filename);

type CompilerOptions = { readonly draft: 7 | 2020; readonly isStrict: boolean; readonly addsDefaults: boolean };

/** Loaded on first use, because migrations do not need it; synchronously, because `define` is. */
function compilerOf({ draft, isStrict, addsDefaults }: CompilerOptions): Ajv {
  const Compiler =
    draft === 2020
      ? (load('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020
      : (load('ajv') as typeof import('ajv')).Ajv;
  const ajv: Ajv = new Compiler({
    allErrors: true,
    ownProperties: true,
    logger: false,
    strict: isStrict,
    validateFormats: isStrict,
    useDefaults: addsDefaults,
  });
  if (isStrict) ajv.addKeyword({ keyword: 'sensitive', schemaType: 'boolean' });
  // Ajv compares every two items, which takes seconds for thousands of objects.
  return ajv.removeKeyword('uniqueItems').addKeyword({
    keyword: 'uniqueItems',
    ...{ type: 'array', schemaType: 'boolean', errors: false, error: { message: 'must not have duplicate items' } },
    validate: (unique: boolean, items: Json[]) => !unique || new Set(items.map(canonicalJson)).size === items.length,
  });
}

function lazyCompiler(options: CompilerOptions) {
  let compiler: Ajv | undefined;
  return {
    /** By the text of a schema: the tools of a framework are often wrapped again for each run. */
    compiled: new Recent<ValidateFunction>(MAX_COMPILED),
    make: () => compilerOf(options),
    shared: () => {
      compiler ??= compilerOf(options);
      return compiler;
    },
  };
}

function lazyCompilers(draft: 7 | 2020) {
  return {
    plain: lazyCompiler({ draft, isStrict: false, addsDefaults: false }),
    adding: lazyCompiler({ draft, isStrict: false, addsDefaults: true }),
  };
}

// per copy: each has compiled schemas of its own.
const COMPILERS = { draft7: lazyCompilers(7), draft2020: lazyCompilers(2020) };

/** For the definitions in `parameters`. */
export const parametersCompiler = lazyCompiler({ draft: 7, isStrict: true, addsDefaults: true });

import { errorMessage } from '../errors.ts';
import { canonicalJson, isPlainObject, type Json } from '../json.ts';
import { nearest } from '../nearest.ts';
import { type Path, type Problem, pathText } from '../validate-shape.ts';
import {
  compileJsonSchema,
  type JsonSchema,
  type JsonSchemaCompilation,
  mapSchema,
  type ParameterProblem,
  parameterProblem,
  referenced,
  rootProperties,
  type StoredSchema,
} from './json-schema.ts';
import { maskSensitive } from './mask-sensitive.ts';
import {
  type CompiledParameters,
  MAX_PROBLEMS,
  type ParameterValidation,
  parametersValidator,
  type ToolParameters,
} from './parameters.ts';
import { prototypelessCopy, toSafeJson } from './safe-json.ts';
import { isStandardSchema, type StandardIssue, type StandardResult, type StandardSchema } from './standard-schema.ts';

/** The schema of a tool's parameters object: a JSON Schema (draft 2020-12 or draft 7), or a Standard Schema. @experimental */
export type InputSchema = JsonSchema | StandardSchema;

interface InputSchemaParts {
  readonly inputSchema: unknown;
  /** The JSON Schema of a Standard Schema that has none. */
  readonly jsonSchema: unknown;
  /** Names of top-level parameters to mask, in addition to those that the JSON Schema marks. */
  readonly sensitive: readonly string[];
}

/** Returns undefined if the schema is invalid, and adds each problem with its path to `problems`. */
export function compileInputSchema(
  { inputSchema, jsonSchema, sensitive: listed }: InputSchemaParts,
  path: Path,
  problems: Problem[],
): CompiledParameters | undefined {
  const standard = isStandardSchema(inputSchema) ? inputSchema : undefined;
  if (!standard && jsonSchema !== undefined) {
    problems.push({ path: [...path, 'jsonSchema'], text: 'is only for an inputSchema that is a Standard Schema' });
    return undefined;
  }
  const at = [...path, standard && jsonSchema !== undefined ? 'jsonSchema' : 'inputSchema'];
  const given =
    standard && jsonSchema === undefined ? ownJsonSchema(standard, at, problems) : (jsonSchema ?? inputSchema);
  const stored = given === undefined ? undefined : storedSchema(given, at, problems);
  const sensitive = stored && sensitiveNames(stored, listed, path, problems);
  const addsDefaults = standard !== undefined;
  const schema = stored && withoutSensitiveKeyword(stored);
  const compiled = schema && compileJsonSchema({ schema, addsDefaults }, at, problems);
  if (!compiled || !sensitive) return undefined;
  if (!standard) return { schema: compiled.schema, sensitive, validate: jsonValidator(compiled) };
  return { schema: compiled.schema, sensitive, addsDefaults, validate: standardValidator(standard, sensitive) };
}

/** A validator for a stored schema: the process that accepts a decision might not define the tool. */
export function storedValidator(schema: StoredSchema, addsDefaults = false): (value: unknown) => ParameterValidation {
  if (schema.$schema === undefined) return parametersValidator(schema);
  const problems: Problem[] = [];
  const compiled = compileJsonSchema({ schema, addsDefaults }, [], problems);
  if (!compiled) throw new Error(`A stored schema cannot be compiled: ${problems[0]?.text}`);
  return jsonValidator(compiled);
}

function ownJsonSchema({ '~standard': standard }: StandardSchema, path: Path, problems: Problem[]): unknown {
  const needed = 'which reviewers and models read, and which binds approvals: add it as "jsonSchema"';
  if (standard.jsonSchema === undefined) {
    problems.push({ path, text: `has no JSON Schema (${standard.vendor}), ${needed}` });
    return undefined;
  }
  try {
    return standard.jsonSchema.input({ target: 'draft-2020-12' });
  } catch (error) {
    problems.push({ path, text: `has no JSON Schema (${errorMessage(error)}), ${needed}` });
    return undefined;
  }
}

/** A copy, because the caller may change the object later. */
function storedSchema(given: unknown, path: Path, problems: Problem[]): StoredSchema | undefined {
  const safe = toSafeJson(given);
  if (!('value' in safe)) {
    problems.push({ path: [...path, ...safe.path], text: safe.why });
    return undefined;
  }
  const { value } = safe;
  if (!isPlainObject(value)) {
    problems.push({ path, text: 'is not a JSON Schema object or a Standard Schema' });
    return undefined;
  }
  const types = [value.type ?? 'object'].flat();
  if (!types.includes('object')) {
    problems.push({ path: [...path, 'type'], text: 'is not "object": the parameters of a tool are an object' });
    return undefined;
  }
  return value as StoredSchema;
}

/** Names of the top-level parameters to mask. A mark that belongs to none of them is a problem: it would mask nothing. */
function sensitiveNames(
  schema: StoredSchema,
  listed: readonly string[],
  path: Path,
  problems: Problem[],
): readonly string[] | undefined {
  const before = problems.length;
  const properties = rootProperties(schema);
  for (const [index, name] of listed.entries()) {
    if (properties.has(name)) continue;
    const near = nearest(name, [...properties.keys()]);
    const hint = near === undefined ? '' : `; did you mean "${near}"?`;
    problems.push({ path: [...path, 'sensitive', index], text: `is not a parameter of the schema${hint}` });
  }
  const reached = new Set<unknown>();
  const names = [...properties].filter(([name, definitions]) => {
    const isMarked = definitions.map((one) => isSensitive(schema, one, reached)).includes(true);
    return isMarked || listed.includes(name);
  });
  let unreached = 0;
  mapSchema(schema, (one) => {
    if (one.sensitive === true && !reached.has(one)) unreached++;
    return one;
  });
  if (unreached > 0) {
    const text = 'is "sensitive" where it belongs to no top-level parameter: list the names in "sensitive"';
    problems.push({ path: [...path, 'inputSchema'], text });
  }
  return problems.length > before ? undefined : names.map(([name]) => name);
}

/** Whether a schema, or one inside it or that it refers to, is marked. Adds all that are to `reached`. */
function isSensitive(root: StoredSchema, schema: unknown, reached: Set<unknown>, seen = new Set<unknown>()): boolean {
  let found = false;
  const targets: unknown[] = [];
  mapSchema(schema, (one) => {
    seen.add(one);
    if (one.sensitive === true) {
      found = true;
      reached.add(one);
    }
    const target = referenced(root, one);
    if (target !== undefined && !seen.has(target)) targets.push(target);
    return one;
  });
  return targets.map((target) => isSensitive(root, target, reached, seen)).includes(true) || found;
}

/** Some providers reject a keyword that JSON Schema does not define. */
function withoutSensitiveKeyword(schema: StoredSchema): StoredSchema {
  return mapSchema(schema, ({ sensitive, ...rest }) =>
    sensitive === undefined || typeof sensitive === 'boolean' ? rest : { ...rest, sensitive },
  ) as StoredSchema;
}

function jsonValidator({ schema, errors }: JsonSchemaCompilation): (value: unknown) => ParameterValidation {
  const names = [...rootProperties(schema).keys()];
  return (value) => {
    const given = safeObject(value);
    if ('problem' in given) return { ok: false, problems: [given.problem] };
    const found = errors(given.object);
    if (!found) return { ok: true, parameters: prototypelessCopy(given.object), input: given.object };
    return { ok: false, problems: found.slice(0, MAX_PROBLEMS).map((error) => parameterProblem(error, names)) };
  };
}

/**
 * What a Standard Schema makes of a value is shown and approved if it is JSON that the schema leaves as it is. Otherwise
 * the value itself is, and the handler receives what the schema makes of it.
 */
function standardValidator(
  { '~standard': standard }: StandardSchema,
  sensitive: readonly string[],
): CompiledParameters['validate'] {
  const check = (value: Json) => standard.validate(structuredClone(value));
  return async (value) => {
    const given = safeObject(value);
    if ('problem' in given) return { ok: false, problems: [given.problem] };
    try {
      const result = await check(given.object);
      if (result.issues) return { ok: false, problems: issueProblems(result.issues, given.object, sensitive) };
      const output = safeObject(result.value);
      const settled = 'object' in output ? await check(output.object) : undefined;
      if ('object' in output && settled && isSameJson(settled, output.object))
        return { ok: true, parameters: prototypelessCopy(output.object), input: result.value };
      return { ok: true, parameters: prototypelessCopy(given.object), input: result.value };
    } catch (error) {
      const why = maskSensitive(errorMessage(error), sensitive, given.object);
      return { ok: false, problems: [{ parameter: '', why: `could not be validated: ${why}` }] };
    }
  };
}

function isSameJson(result: StandardResult<unknown>, expected: ToolParameters): boolean {
  if (result.issues) return false;
  const safe = safeObject(result.value);
  return 'object' in safe && canonicalJson(safe.object) === canonicalJson(expected);
}

/** Messages may quote a value, which some libraries do. */
function issueProblems(
  issues: readonly StandardIssue[],
  given: ToolParameters,
  sensitive: readonly string[],
): ParameterProblem[] {
  return issues.slice(0, MAX_PROBLEMS).map(({ message, path = [] }) => {
    const keys = path.map((part) => (typeof part === 'object' ? part.key : part));
    const parts = keys.map((key) => (typeof key === 'number' ? key : String(key)));
    const isMasked = sensitive.includes(String(parts[0]));
    return { parameter: pathText(parts), why: isMasked ? 'is not valid' : maskSensitive(message, sensitive, given) };
  });
}

function safeObject(value: unknown): { readonly object: ToolParameters } | { readonly problem: ParameterProblem } {
  const safe = toSafeJson(value ?? {});
  if (!('value' in safe)) return { problem: { parameter: pathText(safe.path), why: safe.why } };
  if (!isPlainObject(safe.value)) return { problem: { parameter: '', why: 'must be an object' } };
  return { object: safe.value as ToolParameters };
}

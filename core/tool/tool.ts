import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../errors.ts';
import type { Json } from '../json.ts';
import { type Path, type Problem, problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import { toolDigest } from './call-digest.ts';
import { compileInputSchema, type InputSchema } from './input-schema.ts';
import type { JsonSchema, StoredSchema } from './json-schema.ts';
import {
  type CompiledParameters,
  compileParameters,
  type ParameterMap,
  type ParametersOf,
  type ToolParameters,
} from './parameters.ts';
import type { StandardOutput, StandardSchema } from './standard-schema.ts';

/** The context of a call, passed to its handler. @experimental */
export interface ToolContext {
  readonly executionId: string;
  /** Absent if the call needed no approval. */
  readonly requestId?: string | undefined;
  readonly agentTag: string;
  readonly toolCallId?: string | undefined;
  /** The same for every attempt of this call. Send it with a payment, so that a retry does not pay twice. */
  readonly idempotencyKey: string;
  /** Aborts when the run is cancelled or exceeds its time limit. */
  readonly signal: AbortSignal;
  /** Who approved the call, if the channel reports it. */
  readonly approvedBy?: string | undefined;
  /** Writes to the log. The model never sees it. */
  log(message: string, data?: Json): void;
}

/** A tool of an agent. @experimental */
export interface ToolDefinition<M extends ParameterMap = ParameterMap> {
  readonly tag: string;
  readonly description?: string | undefined;
  /** True: every call needs approval, if `humanInLoop` is enabled. */
  readonly requiresConfirmation?: boolean | undefined;
  /** True: an interrupted call may run again, because a second run with the same `ctx.idempotencyKey` has no effect. */
  readonly idempotent?: boolean | undefined;
  readonly parameters?: M | undefined;
  /** In place of `parameters`: a JSON Schema (draft 2020-12 or draft 7) or a Standard Schema, such as one of zod. */
  readonly inputSchema?: InputSchema | undefined;
  /** The JSON Schema of an `inputSchema` that has none, or that its library cannot derive. */
  readonly jsonSchema?: JsonSchema | undefined;
  /** With `inputSchema`: names of parameters to mask, in addition to those that its JSON Schema marks as `sensitive`. */
  readonly sensitive?: readonly string[] | undefined;
  /** Its result, as JSON, is sent to the model. A method, so that tools with different parameters fit in one list. */
  handler(ctx: ToolContext, params: ParametersOf<M>): unknown;
}

/** JSON Schema (draft 7) of a tool's parameters object, without the keyword `sensitive`. @experimental */
export type ToolSchema = {
  readonly type: 'object';
  readonly properties: { readonly [name: string]: object };
  readonly required: string[];
  readonly additionalProperties: false;
};

/** A tool with the schema that models and forms read. @experimental */
export interface DefinedTool<M extends ParameterMap = ParameterMap> extends ToolDefinition<M> {
  readonly schema: ToolSchema;
}

/**
 * Infers the types of the handler's parameters, and adds their JSON Schema as `schema`. Throws `agent_invalid` if
 * `parameters` is invalid.
 * @example const refund = defineTool({ tag: 'refund', parameters: { amount: { type: 'number' } }, handler })
 * @experimental
 */
export function defineTool<const M = Record<never, never>>(
  tool: TypedTool<M> & { readonly inputSchema?: undefined },
): DefinedTool<M extends ParameterMap ? M : ParameterMap>;
export function defineTool<const S extends InputSchema>(
  tool: TypedTool<S> & { readonly inputSchema: S },
): SchemaTool<S>;
export function defineTool(tool: object): ToolDefinition & { readonly schema: JsonSchema } {
  // Only the type of its parameters differs.
  const definition = tool as ToolDefinition;
  return { ...definition, schema: schemaOf(definition) };
}

/** A tool with an `inputSchema`, and the JSON Schema that models and forms read. @experimental */
export type SchemaTool<S> = Omit<ToolDefinition, 'inputSchema' | 'handler'> & {
  readonly inputSchema: S;
  readonly schema: JsonSchema;
  handler(ctx: ToolContext, params: HandlerParameters<S>): unknown;
};

function schemaOf(tool: ToolDefinition): JsonSchema {
  const { tag } = tool;
  const problems: Problem[] = [];
  const compiled = compileSchemaOf(tool, [], problems);
  if (compiled) return compiled.schema;
  throw new SvcError('agent_invalid', `The tool "${tag}" has invalid parameters.`, {
    why: problems.map(problemText).join(' '),
    next: ['Fix the definition.'],
    details: { problems: problems.map(problemText) },
  });
}

/** A list of tools in which each handler has the types of its own parameters. @experimental */
export type ToolList<T extends readonly unknown[]> = { readonly [K in keyof T]: TypedTool<T[K]> };

/** A tool whose handler has the types of its parameters `M`. @experimental */
export interface TypedTool<M> extends Omit<ToolDefinition, 'parameters' | 'inputSchema' | 'handler'> {
  readonly parameters?: (M & AcceptedParameters<M>) | undefined;
  readonly inputSchema?: (M & InputSchema) | undefined;
  handler(ctx: ToolContext, params: HandlerParameters<NoInfer<M>>): unknown;
}

/** Parameters that were kept in a variable have a `type` that TypeScript has widened to `string`. */
type AcceptedParameters<M> =
  IsWidened<M> extends true
    ? { readonly [name: string]: { readonly type: string; readonly [keyword: string]: unknown } }
    : ParameterMap;

type IsWidened<M> = M extends { readonly [name: string]: { readonly type: string } }
  ? string extends M[keyof M]['type']
    ? true
    : false
  : false;

type HandlerParameters<M> = M extends StandardSchema
  ? StandardOutput<M>
  : IsWidened<M> extends true
    ? // biome-ignore lint/suspicious/noExplicitAny: the widened types would contradict those that the handler declares
      any
    : M extends ParameterMap
      ? ParametersOf<M>
      : ToolParameters;

/** A validated tool. */
export interface Tool {
  readonly tag: string;
  readonly description: string;
  readonly requiresConfirmation: boolean;
  readonly idempotent: boolean;
  /** JSON Schema of the parameters object. */
  readonly schema: StoredSchema;
  /** Covers everything except the handler and `requiresConfirmation`. An approval for another digest is stale. */
  readonly digest: string;
  /** Top-level parameters that are masked outside the call. */
  readonly sensitive: readonly string[];
  readonly addsDefaults?: boolean | undefined;
  readonly validate: CompiledParameters['validate'];
  /** `input` is that of the validation. */
  handler(ctx: ToolContext, input: unknown): unknown;
}

const TOOL_TAG = /^[A-Za-z0-9_.:-]{1,128}$/;

/** A tag as a function name that every model provider accepts. */
export function nameForModel(tag: string): string {
  return tag.replace(/[.:]/g, '_');
}

const TOOL: Shape = {
  properties: {
    tag: 'string',
    description: 'string',
    requiresConfirmation: 'boolean',
    idempotent: 'boolean',
    parameters: { map: 'any' },
    inputSchema: 'any',
    jsonSchema: 'any',
    sensitive: { list: 'string' },
    schema: 'any',
    handler: 'any',
  },
  required: ['tag', 'handler'],
};

/** Adds each mistake with its path to `problems`. The result is complete only if nothing was added. */
export function compileTools(definitions: unknown, path: Path, problems: Problem[]): ReadonlyMap<string, Tool> {
  const tools = new Map<string, Tool>();
  if (!Array.isArray(definitions)) {
    problems.push(...shapeProblems(definitions, { list: 'any' }, path));
    return tools;
  }
  for (const [index, definition] of definitions.entries()) {
    const at = [...path, index];
    const tool = compileTool(definition, at, problems);
    if (!tool) continue;
    if (tools.has(tool.tag))
      problems.push({ path: [...at, 'tag'], text: `is a duplicate: two tools have the tag "${tool.tag}"` });
    tools.set(tool.tag, tool);
  }
  return tools;
}

function compileTool(value: unknown, path: Path, problems: Problem[]): Tool | undefined {
  const found = shapeProblems(value, TOOL, path);
  problems.push(...found);
  if (found.length > 0) return undefined;
  const given = value as ToolDefinition;
  const { tag, description = '', requiresConfirmation = false, idempotent = false } = given;
  if (!TOOL_TAG.test(tag)) {
    problems.push({ path: [...path, 'tag'], text: 'is not a valid tag: use 1 to 128 of A-Z a-z 0-9 _ - . :' });
  }
  if (typeof given.handler !== 'function') problems.push({ path: [...path, 'handler'], text: 'is not a function' });
  const compiled = compileSchemaOf(given, path, problems);
  if (!compiled) return undefined;
  // Set by `defineTool`. Any other schema would be ignored, as would that of other parameters.
  const { schema = compiled.schema } = value as Partial<DefinedTool>;
  if (!isDeepStrictEqual(schema, compiled.schema)) {
    const source = given.inputSchema === undefined ? 'parameters' : 'inputSchema';
    problems.push({ path: [...path, 'schema'], text: `does not match "${source}": leave it out` });
  }
  return Object.freeze({
    tag,
    description,
    requiresConfirmation,
    idempotent,
    ...compiled,
    digest: toolDigest({ tag, description, idempotent, ...compiled }),
    handler: (ctx: ToolContext, input: unknown) => given.handler(ctx, input as never),
  });
}

function compileSchemaOf(given: ToolDefinition, path: Path, problems: Problem[]): CompiledParameters | undefined {
  const { parameters, inputSchema, jsonSchema, sensitive } = given;
  if (inputSchema !== undefined && parameters !== undefined) {
    problems.push({ path: [...path, 'inputSchema'], text: 'is given in addition to "parameters": use one of them' });
    return undefined;
  }
  if (inputSchema !== undefined)
    return compileInputSchema({ inputSchema, jsonSchema, sensitive: sensitive ?? [] }, path, problems);
  for (const [name, value] of Object.entries({ jsonSchema, sensitive })) {
    if (value !== undefined) problems.push({ path: [...path, name], text: 'is only for a tool with an "inputSchema"' });
  }
  return compileParameters(parameters ?? {}, [...path, 'parameters'], problems);
}

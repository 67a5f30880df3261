import { createHash } from 'node:crypto';
import type { Parameters } from '../approval/request.ts';
import { canonicalJson, type Json } from '../json.ts';
import { type Path, type Problem, type Shape, shapeProblems } from '../schema/shape.ts';
import { type Checked, compileParameters } from './parameters.ts';
import type { ParameterMap, ParametersOf } from './parameters-of.ts';

/** What a handler is told of its call. @experimental */
export interface ToolContext {
  readonly executionId: string;
  /** Absent where nobody had to approve. */
  readonly requestId?: string | undefined;
  readonly agentTag: string;
  readonly toolCallId?: string | undefined;
  /** The same whenever this call is run again: a payment sent with it twice is made once. */
  readonly idempotencyKey: string;
  /** Aborts when the run is cancelled or over its time. */
  readonly signal: AbortSignal;
  /** Who approved, as far as the channel knows. */
  readonly approvedBy?: string | undefined;
  /** Never reaches the model. */
  log(message: string, data?: Json): void;
}

/** SPEC 2.3. @experimental */
export interface ToolDefinition<M extends ParameterMap = ParameterMap> {
  readonly tag: string;
  readonly description?: string;
  readonly requiresConfirmation?: boolean;
  /** A call that was interrupted may be run again: with the same `ctx.idempotencyKey` it has no second effect. */
  readonly idempotent?: boolean;
  readonly parameters?: M;
  /** What it returns, as JSON, is what the model sees. Bivariant, so that tools of all parameters fit one list. */
  handler(ctx: ToolContext, params: ParametersOf<M>): unknown;
}

/** Gives the tool back as it is: it is there for the types of the handler's parameters. @experimental */
export function defineTool<const M extends ParameterMap = Record<never, never>>(
  tool: ToolDefinition<M>,
): ToolDefinition<M> {
  return tool;
}

/** Tools whose handlers get the types of their own parameters: `T` is inferred from those. @experimental */
export type ToolList<T extends readonly unknown[]> = {
  readonly [K in keyof T]: Omit<ToolDefinition, 'parameters' | 'handler'> & {
    readonly parameters?: T[K] & ParameterMap;
    handler(ctx: ToolContext, params: HandlerParameters<NoInfer<T[K]>>): unknown;
  };
};

type HandlerParameters<M> = M extends ParameterMap ? ParametersOf<M> : Parameters;

/** A tool that has been checked. */
export interface Tool {
  readonly tag: string;
  readonly description: string;
  readonly requiresConfirmation: boolean;
  readonly idempotent: boolean;
  /** JSON Schema of the object of parameters. */
  readonly schema: { readonly [keyword: string]: Json };
  /** Of everything but the handler: an approval of another digest is stale. */
  readonly digest: string;
  /** Top-level parameters that deliveries mask. */
  readonly sensitive: readonly string[];
  check(value: unknown): Checked;
  handler(ctx: ToolContext, parameters: Parameters): unknown;
}

/** Names of functions that every provider takes. */
export const TOOL_TAG = /^[A-Za-z0-9_-]{1,64}$/;

const TOOL: Shape = {
  properties: {
    tag: 'string',
    description: 'string',
    requiresConfirmation: 'boolean',
    idempotent: 'boolean',
    parameters: { map: 'any' },
    handler: 'any',
  },
  required: ['tag', 'handler'],
};

/** Adds to `problems` what cannot be used, each with its path; the tools are whole only if it stays empty. */
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
      problems.push({ path: [...at, 'tag'], text: `is taken: two tools are named "${tool.tag}"` });
    tools.set(tool.tag, tool);
  }
  return tools;
}

function compileTool(value: unknown, path: Path, problems: Problem[]): Tool | undefined {
  const wrong = shapeProblems(value, TOOL, path);
  problems.push(...wrong);
  if (wrong.length > 0) return undefined;
  const given = value as ToolDefinition;
  const { tag, description = '', requiresConfirmation = false, idempotent = false, parameters = {} } = given;
  if (!TOOL_TAG.test(tag)) {
    problems.push({ path: [...path, 'tag'], text: 'is not a name of 1 to 64 characters A-Z a-z 0-9 _ -' });
  }
  if (typeof given.handler !== 'function') problems.push({ path: [...path, 'handler'], text: 'is not a function' });
  const rules = compileParameters(parameters, [...path, 'parameters'], problems);
  if (!rules) return undefined;
  const identity = { tag, description, requiresConfirmation, idempotent, parameters };
  return Object.freeze({
    tag,
    description,
    requiresConfirmation,
    idempotent,
    ...rules,
    digest: createHash('sha256').update(canonicalJson(identity)).digest('base64url'),
    handler: (ctx: ToolContext, own: Parameters) => given.handler(ctx, own as never),
  });
}

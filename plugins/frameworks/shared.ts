import { SvcError } from '../../core/errors.ts';
import { canonicalJson, isPlainObject } from '../../core/json.ts';
import type { InputSchema } from '../../core/tool/input-schema.ts';
import type { JsonSchema } from '../../core/tool/json-schema.ts';
import { changeNote, type ModelResult } from '../../core/tool/model-result.ts';
import { isStandardSchema } from '../../core/tool/standard-schema.ts';
import type { ToolContext } from '../../core/tool/tool.ts';

/** The part of `svc.gate(…)` that the adapters use. */
export interface FrameworkGate {
  readonly approvalTimeout: number;
  guard(
    tag: string,
    definition: {
      readonly inputSchema: InputSchema;
      readonly description?: string;
      readonly sensitive?: readonly string[];
    },
    execute: (input: unknown, ctx: ToolContext, own: Execute) => unknown,
  ): Guarded;
}

/** Runs the framework's own tool, with the parameters that were approved. */
export type Execute = (parameters: unknown, signal: AbortSignal) => unknown;

interface Guarded {
  run(call: FrameworkCall, options: CallOptions, own: Execute): Promise<FrameworkOutcome>;
  request(call: FrameworkCall, options?: CallOptions): Promise<FrameworkOutcome | undefined>;
}

interface FrameworkCall {
  readonly parameters: unknown;
  readonly executionId: string;
  readonly toolCallId: string;
  readonly modelText?: string | undefined;
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly waitMs?: number | undefined;
  readonly onRequested?: ((request: RequestedCall) => unknown) | undefined;
}

/** A request that was stored and announced. */
export interface RequestedCall {
  readonly requestId: string;
  readonly executionId: string;
  readonly tool: string;
  /** ISO 8601, UTC: when the request expires. */
  readonly timeout: string;
  readonly toolCallId?: string;
}

/** What a framework stores of a run that is suspended while a request waits. @experimental */
export interface PendingApproval {
  readonly requestId: string;
  readonly tool: string;
  /** ISO 8601, UTC. */
  readonly expiresAt: string;
}

/** The outcome of a gated call, as `gate.run` returns it. */
export interface FrameworkOutcome {
  readonly status: string;
  readonly result: unknown;
  readonly changed?: readonly string[];
  readonly executedWith?: { readonly [name: string]: never } | object;
  readonly requestId?: string;
  readonly expiresAt?: string;
  forModel(): string;
}

/** Options of every adapter. @experimental */
export interface ApprovalOptions<Source> {
  /**
   * Names the run or conversation, together with the ids of its calls: the same after a restart, or a call that is made
   * again makes a second request.
   */
  readonly executionId: string | ((source: Source) => string);
  /** By the name of a tool: its JSON Schema, if its own schema has none. */
  readonly jsonSchema?: { readonly [tool: string]: JsonSchema };
  /** By the name of a tool: names of parameters to mask. */
  readonly sensitive?: { readonly [tool: string]: readonly string[] };
  /** Called with each new or repeated request that waits; not awaited. */
  readonly onRequested?: ((request: RequestedCall) => unknown) | undefined;
}

/** Thrown in place of a result that a tool does not have: its message is the text for the model. @experimental */
export class ToolCallNotCompleted extends Error {
  override readonly name = 'ToolCallNotCompleted';
  /** `rejected`, `cancelled`, `denied`, `failed`, `interrupted`, `stale`, `lapsed` or `invalid`. */
  readonly status: string;
  readonly requestId: string | undefined;

  constructor({ status, requestId, ...outcome }: Omit<FrameworkOutcome, 'forModel'>, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    void outcome;
    this.status = status;
    this.requestId = requestId;
  }
}

/** A tool of a framework, with the name by which the model calls it. */
export interface NamedTool {
  readonly name: string;
  readonly description: string | undefined;
  readonly schema: unknown;
}

/**
 * A tool of a framework under the gate. `reads`: whether the framework passes what its schema makes of the parameters, or
 * what the model sent.
 */
export function guardTool(
  gate: FrameworkGate,
  { name, description, schema }: NamedTool,
  options: Pick<ApprovalOptions<never>, 'jsonSchema' | 'sensitive'>,
  reads: 'input' | 'output',
): Guarded {
  const given = options.jsonSchema?.[name];
  const inputSchema = given ?? schemaToBind(name, schema, reads);
  const sensitive = options.sensitive?.[name];
  const definition = { inputSchema, ...(description && { description }), ...(sensitive && { sensitive }) };
  return gate.guard(name, definition, (input, ctx, execute) => execute(input, ctx.signal));
}

/**
 * The schema to validate a call with. A Standard Schema that changes its input is replaced by its JSON Schema: the framework
 * applies it itself, before or after the gate.
 */
function schemaToBind(name: string, schema: unknown, reads: 'input' | 'output'): InputSchema {
  if (isStandardSchema(schema)) {
    const { jsonSchema } = schema['~standard'];
    if (jsonSchema === undefined) throw unusable(name, `its schema (${schema['~standard'].vendor}) has no JSON Schema`);
    const describe = (side: 'input' | 'output') => {
      try {
        return jsonSchema[side]({ target: 'draft-2020-12' });
      } catch (error) {
        throw unusable(name, `its schema has no JSON Schema of its ${side}: ${String(error)}`);
      }
    };
    const used = describe(reads);
    return isSameShape(used, describe(reads === 'input' ? 'output' : 'input')) ? schema : used;
  }
  const described: unknown = isPlainObject(schema) && 'jsonSchema' in schema ? schema.jsonSchema : schema;
  if (typeof described === 'object' && described !== null && !('then' in described)) return described as JsonSchema;
  throw unusable(name, 'its schema is neither a JSON Schema nor a Standard Schema');
}

/** Without what defaults change: which members are required, and whether others are allowed. */
function isSameShape(one: object, other: object): boolean {
  const shape = (schema: object) =>
    canonicalJson(
      JSON.parse(
        JSON.stringify(schema, (key, value) =>
          ['required', 'additionalProperties'].includes(key) ? undefined : value,
        ),
      ),
    );
  return shape(one) === shape(other);
}

export function unusable(name: string, why: string): SvcError {
  return new SvcError('agent_invalid', `The tool "${name}" cannot be held for approval.`, {
    why: `${why[0]?.toUpperCase()}${why.slice(1)}.`,
    state: 'Nothing ran.',
    next: [
      /JSON Schema/.test(why) ? `Add it to the options: jsonSchema: { ${JSON.stringify(name)}: … }.` : 'Leave it out.',
    ],
  });
}

/** Runs a call, and keeps what the tool itself returned or threw in this process, which need not be JSON. */
export async function runGuarded(
  guarded: Guarded,
  call: FrameworkCall,
  options: CallOptions,
  execute: Execute,
): Promise<{ readonly outcome: FrameworkOutcome; readonly value: unknown; readonly error: unknown }> {
  let ran: { readonly value?: unknown; readonly error?: unknown } | undefined;
  const outcome = await guarded.run(call, options, async (parameters, signal) => {
    try {
      const value = await execute(parameters, signal);
      ran = { value };
      return value;
    } catch (error) {
      ran = { error };
      throw error;
    }
  });
  const value = ran && 'value' in ran ? ran.value : outcome.result;
  return { outcome, value, error: ran?.error };
}

/** A call that waits, with what to store of it; or what the model reads in place of a result; or the result, and what to add. */
export type CallEnd =
  | { readonly pending: PendingApproval }
  | { readonly refusal: string }
  | { readonly value: unknown; readonly note: string | undefined };

/** How a call ended. Throws what the tool threw. */
export function endOf(name: string, { outcome, value, error }: Awaited<ReturnType<typeof runGuarded>>): CallEnd {
  const { status, requestId = '', expiresAt } = outcome;
  if (expiresAt !== undefined) return { pending: { requestId, tool: name, expiresAt } };
  if (status === 'failed' && error !== undefined) throw error;
  return status === 'completed' ? { value, note: noteOf(outcome) } : { refusal: outcome.forModel() };
}

export function notCompleted(outcome: FrameworkOutcome, cause?: unknown): ToolCallNotCompleted {
  return new ToolCallNotCompleted(outcome, outcome.forModel(), cause);
}

/** What the model reads of an edit; undefined if there was none. */
export function noteOf(outcome: FrameworkOutcome): string | undefined {
  return outcome.changed && changeNote(outcome as Omit<ModelResult, 'result'>);
}

/** The note is a separate line, so that the model does not mistake it for the tool's result. */
export function withNoteLine(value: unknown, note: string): string {
  return `${typeof value === 'string' ? value : JSON.stringify(value ?? null)}\n${note}`;
}

export function executionIdOf<Source>({ executionId }: ApprovalOptions<Source>, source: Source): string {
  return typeof executionId === 'function' ? executionId(source) : executionId;
}

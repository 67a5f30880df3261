import { SvcError } from '../../core/errors.ts';
import { canonicalJson, isPlainObject } from '../../core/json.ts';
import type { InputSchema } from '../../core/tool/input-schema.ts';
import type { JsonSchema } from '../../core/tool/json-schema.ts';
import { isStandardSchema } from '../../core/tool/standard-schema.ts';
import type { ApprovalOptions, FrameworkGate, Guarded } from './shared.ts';

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
    if (jsonSchema === undefined)
      throw undescribed(name, `its schema (${schema['~standard'].vendor}) has no JSON Schema`);
    const describe = (side: 'input' | 'output') => {
      try {
        return jsonSchema[side]({ target: 'draft-2020-12' });
      } catch (error) {
        throw undescribed(name, `its schema has no JSON Schema of its ${side}: ${String(error)}`);
      }
    };
    const used = describe(reads);
    return isSameShape(used, describe(reads === 'input' ? 'output' : 'input')) ? schema : used;
  }
  const described: unknown = isPlainObject(schema) && 'jsonSchema' in schema ? schema.jsonSchema : schema;
  if (typeof described === 'object' && described !== null && !('then' in described)) return described as JsonSchema;
  throw undescribed(name, 'its schema is neither a JSON Schema nor a Standard Schema');
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

/** Throws if the framework ends a call, which waits in place, before the approval expires. */
export function assertTimeout(gate: FrameworkGate, name: string, setting: string, timeoutMs: number | undefined): void {
  const { approvalTimeout } = gate;
  if (timeoutMs === undefined || timeoutMs >= approvalTimeout) return;
  const why = `its ${setting} (${timeoutMs}) is shorter than the approvalTimeout of the gate (${approvalTimeout})`;
  throw unusable(name, why, 'Set a longer one, set a shorter approvalTimeout, or suspend the run.');
}

export function withoutId(name: string): SvcError {
  return unusable(name, 'its call has no id', 'Let an agent call it.');
}

export function unusable(name: string, why: string, next = 'Leave it out of the tools that wait.'): SvcError {
  return new SvcError('agent_invalid', `The tool "${name}" cannot be held for approval.`, {
    why: `${why[0]?.toUpperCase()}${why.slice(1)}.`,
    state: 'Nothing ran.',
    next: [next],
  });
}

function undescribed(name: string, why: string): SvcError {
  return unusable(name, why, `Add it to the options: jsonSchema: { ${JSON.stringify(name)}: … }.`);
}

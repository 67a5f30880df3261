import type { StandardIssue, StandardSchema } from '../../core/tool/standard-schema.ts';
import { noteOf, runGuarded } from './call-end.ts';
import { decision, deferrals, type Hook, matchersOf } from './claude-hooks.ts';
import { guardTool, withoutId } from './guard-tool.ts';
import type { ApprovalOptions, FrameworkGate } from './shared.ts';

export { type ApprovalHookOptions, approvalHooks, type ClaudeAgentCall } from './claude-hooks.ts';
export type { ApprovalOptions, FrameworkGate, RequestedCall } from './shared.ts';

/** @experimental */
export interface ClaudeToolOptions extends Omit<ApprovalOptions<never>, 'executionId'> {
  /** Names the run or conversation: the same after a restart, or a call that is made again makes a second request. */
  readonly executionId: string;
  /**
   * `hold`, the default: the handler waits for the decision. `suspend`: the query ends with its `deferred_tool_use`; resume the
   * session once the request is decided, in any process.
   */
  readonly wait?: 'hold' | 'suspend';
}

interface SdkTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Shape;
  handler(input: unknown, extra: unknown): Promise<ToolResult>;
}

/** Seconds: the hook stores and announces a request. */
const DEFER_TIMEOUT = 60;

type Shape = { readonly [name: string]: StandardSchema };
type ToolResult = { readonly content: readonly unknown[]; readonly isError?: boolean };

/**
 * Tools of `createSdkMcpServer`, each of which waits for approval. Their types are unchanged. `hooks` defer the calls of a query
 * whose requests wait, if it suspends.
 * @example const { tools, hooks } = withApproval(gate, [refund], { executionId: chatId, wait: 'suspend' })
 * @experimental
 */
export function withApproval<const T extends readonly object[]>(
  gate: FrameworkGate,
  tools: T,
  options: ClaudeToolOptions,
): { tools: { -readonly [K in keyof T]: T[K] }; hooks: { PreToolUse?: ReturnType<typeof matchersOf> } } {
  const { executionId, onRequested } = options;
  const gated = (tools as readonly unknown[] as readonly SdkTool[]).map((tool) => {
    const schema = schemaOf(tool.inputSchema);
    return { tool, schema, guarded: guardTool(gate, { ...tool, schema }, options, 'output') };
  });
  const wrapped = gated.map(({ tool, guarded }) => ({
    ...tool,
    handler: async (parameters: unknown, extra: unknown): Promise<ToolResult> => {
      const { _meta, signal } = (extra ?? {}) as { _meta?: { [name: string]: unknown }; signal?: AbortSignal };
      const toolCallId = _meta?.['claudecode/toolUseId'];
      if (typeof toolCallId !== 'string') throw withoutId(tool.name);
      const { outcome, value, error } = await runGuarded(
        guarded,
        { parameters, executionId, toolCallId },
        { signal, onRequested },
        (input) => tool.handler(input, extra),
      );
      if (outcome.status === 'failed' && error !== undefined) throw error;
      if (outcome.status !== 'completed') return { content: [textPart(outcome.forModel())], isError: true };
      const result = value as ToolResult;
      const note = noteOf(outcome);
      return note === undefined ? result : { ...result, content: [...result.content, textPart(note)] };
    },
  }));
  const defers = deferrals();
  const defer: Hook = async (input) => {
    const { agent_id, mcp_server, tool_name, tool_input, tool_use_id } = input;
    // Its handler makes the request.
    if (agent_id !== undefined) return {};
    const named = gated.find(({ tool }) => tool_name === `mcp__${mcp_server?.name}__${tool.name}`);
    if (named === undefined || tool_use_id === undefined || mcp_server?.source !== 'sdk') return {};
    const parsed = await named.schema['~standard'].validate(tool_input);
    if (parsed.issues) return {};
    const call = { parameters: parsed.value, executionId, toolCallId: tool_use_id };
    return defers(input, await named.guarded.request(call, { onRequested })) ? decision('defer') : {};
  };
  const hooks = options.wait === 'suspend' ? { PreToolUse: matchersOf(defer, DEFER_TIMEOUT) } : {};
  return { tools: wrapped as unknown as { -readonly [K in keyof T]: T[K] }, hooks };
}

function textPart(text: string) {
  return { type: 'text', text };
}

/** The schemas of the parameters of a tool, as one of an object. */
function schemaOf(shape: Shape): StandardSchema {
  const members = Object.entries(shape);
  const validate = async (value: unknown) => {
    const given = Object(value) as { readonly [name: string]: unknown };
    const output: { [name: string]: unknown } = {};
    const issues: StandardIssue[] = [];
    for (const [name, member] of members) {
      const result = await member['~standard'].validate(given[name]);
      if (result.issues)
        issues.push(...result.issues.map((issue) => ({ ...issue, path: [name, ...(issue.path ?? [])] })));
      else if (result.value !== undefined) output[name] = result.value;
    }
    return issues.length > 0 ? { issues } : { value: output };
  };
  const describe = (side: 'input' | 'output') => (options: { readonly target: string }) => {
    const required: string[] = [];
    const properties = members.map(([name, { '~standard': standard }]) => {
      if (standard.jsonSchema === undefined) throw new Error(`${name} has none`);
      const absent = standard.validate(undefined);
      if ('issues' in absent || (side === 'output' && 'value' in absent && absent.value !== undefined))
        required.push(name);
      const { $schema, ...schema } = standard.jsonSchema[side](options);
      return [name, schema];
    });
    return { type: 'object', properties: Object.fromEntries(properties), required, additionalProperties: false };
  };
  const jsonSchema = { input: describe('input'), output: describe('output') };
  return { '~standard': { version: 1, vendor: 'claude-agent-sdk', validate, jsonSchema } };
}

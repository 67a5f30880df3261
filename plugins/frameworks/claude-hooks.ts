import { noteOf, runGuarded } from './call-end.ts';
import { guardTool } from './guard-tool.ts';
import { type ApprovalOptions, executionIdOf, type FrameworkGate, type FrameworkOutcome } from './shared.ts';

/** The part of a hook's input that an `executionId` can be derived from. @experimental */
export interface ClaudeAgentCall {
  readonly session_id: string;
}

/** @experimental */
export interface ApprovalHookOptions extends Omit<ApprovalOptions<ClaudeAgentCall>, 'executionId'> {
  /**
   * The tools that wait for approval, by their names in hooks, such as `Bash` and `mcp__shop__refund`. `inputSchema` is a JSON
   * Schema or a Standard Schema; without one, the parameters are any object.
   */
  readonly tools: { readonly [name: string]: { readonly description?: string; readonly inputSchema?: unknown } };
  /** Default: the id of the session. */
  readonly executionId?: ApprovalOptions<ClaudeAgentCall>['executionId'];
}

interface HookInput {
  readonly hook_event_name: string;
  readonly session_id: string;
  readonly prompt_id?: string;
  /** Of a sub-agent. */
  readonly agent_id?: string;
  readonly tool_name?: string;
  readonly tool_input?: unknown;
  readonly tool_use_id?: string;
  readonly tool_response?: unknown;
  readonly tool_calls?: readonly { readonly tool_use_id: string; readonly tool_response?: unknown }[];
  readonly error?: string;
  readonly mcp_server?: { readonly name: string; readonly source: string };
}

interface HookOutput {
  hookSpecificOutput?:
    | { hookEventName: 'PreToolUse'; permissionDecision: Decision; [field: string]: unknown }
    | { hookEventName: 'PostToolUse' | 'PostToolUseFailure'; additionalContext: string };
}

type Decision = 'allow' | 'deny' | 'defer';
export type Hook = (
  input: HookInput,
  toolUseId: string | undefined,
  options: { signal: AbortSignal },
) => Promise<HookOutput>;

/** A call that Claude runs: the gate stores what the hooks after it report. */
interface RunningCall {
  readonly settle: (result: unknown) => void;
  readonly fail: (error: Error) => void;
  readonly ended: Promise<FrameworkOutcome>;
}

/** The longest time-out of a hook, in seconds: a timer has 31 bits of milliseconds. */
const MAX_TIMEOUT = 2_147_483;

/**
 * The `hooks` of a `query` of the Claude Agent SDK, for tools that Claude runs itself: built-in ones, and those of MCP servers. The
 * hook waits for the decision.
 * @example query({ prompt, options: { hooks: approvalHooks(gate, { tools: { Bash: {} } }) } })
 * @experimental
 */
export function approvalHooks(gate: FrameworkGate, options: ApprovalHookOptions) {
  const guardedTools = new Map(
    Object.entries(options.tools).map(([name, { description, inputSchema: schema = { type: 'object' } }]) => [
      name,
      guardTool(gate, { name, description, schema }, options, 'input'),
    ]),
  );
  const running = new Map<string, RunningCall>();
  const before: Hook = async (input, _id, { signal }) => {
    const { session_id, tool_name = '', tool_input: parameters, tool_use_id: toolCallId = '' } = input;
    const guarded = guardedTools.get(tool_name);
    if (guarded === undefined) return {};
    const { executionId = session_id } = options;
    const call = { parameters, executionId: executionIdOf({ executionId }, input), toolCallId };
    return new Promise((resolve, reject) => {
      const run = runGuarded(guarded, call, { signal, onRequested: options.onRequested }, (updatedInput) => {
        return new Promise((settle, fail) => {
          running.set(toolCallId, { settle, fail, ended });
          resolve(decision('allow', { updatedInput }));
        });
      });
      const ended = run.then(({ outcome }) => outcome);
      ended.then((outcome) => resolve(answer(outcome)), reject);
    });
  };
  const after: Hook = async ({ hook_event_name, tool_use_id = '', tool_response, error }) => {
    const call = running.get(tool_use_id);
    if (call === undefined) return {};
    running.delete(tool_use_id);
    if (error === undefined) call.settle(tool_response);
    else call.fail(new Error(error));
    const additionalContext = noteOf(await call.ended);
    const hookEventName = hook_event_name as 'PostToolUse' | 'PostToolUseFailure';
    return additionalContext === undefined ? {} : { hookSpecificOutput: { hookEventName, additionalContext } };
  };
  /** What Claude did not run after all, such as a call that another hook denied. */
  const afterAll: Hook = async ({ tool_calls = [] }) => {
    for (const { tool_use_id, tool_response } of tool_calls) {
      running.get(tool_use_id)?.settle(tool_response);
      running.delete(tool_use_id);
    }
    return {};
  };
  const timeout = Math.min(Math.ceil(gate.approvalTimeout / 1000) + 60, MAX_TIMEOUT);
  return {
    PreToolUse: matchersOf(before, timeout),
    PostToolUse: matchersOf(after, timeout),
    PostToolUseFailure: matchersOf(after, timeout),
    PostToolBatch: matchersOf(afterAll, timeout),
  };
}

/** For every tool, because a matcher is a pattern. A failure blocks the call, where the default is to let it run. */
export function matchersOf(hook: Hook, timeout: number) {
  return [{ hooks: [hook], timeout, onFailure: 'block' as const }];
}

/** The answer to a call that Claude does not run. */
function answer(outcome: FrameworkOutcome): HookOutput {
  const text = outcome.forModel();
  const ran = outcome.status === 'completed' || outcome.status === 'failed';
  return decision('deny', { permissionDecisionReason: ran ? `The call ran before, with this result: ${text}` : text });
}

export function decision(permissionDecision: Decision, fields: object = {}): HookOutput {
  return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, ...fields } };
}

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
  /**
   * `hold`, the default: the hook waits for the decision. `suspend`: the query ends with its `deferred_tool_use`; resume the
   * session once the request is decided, in any process.
   */
  readonly wait?: 'hold' | 'suspend';
  /**
   * The signal of the query's `abortController`. Claude does not report how a call ends that runs when the query is aborted:
   * with the signal it counts as failed then; without, it counts as running until the process ends.
   */
  readonly signal?: AbortSignal;
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

const ABORTED = 'The query was aborted while the tool ran: it is unknown whether it had an effect.';

/** The longest time-out of a hook, in seconds: a timer has 31 bits of milliseconds. */
const MAX_TIMEOUT = 2_147_483;

/**
 * The `hooks` of a `query` of the Claude Agent SDK, for tools that Claude runs itself: built-in ones, and those of MCP servers.
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
  const abortAll = () => {
    for (const { fail } of running.values()) fail(new Error(ABORTED));
    running.clear();
  };
  options.signal?.addEventListener('abort', abortAll, { once: true });
  const defers = deferrals();
  const before: Hook = async (input, _id, { signal }) => {
    const { session_id, tool_name = '', tool_input: parameters, tool_use_id: toolCallId = '' } = input;
    const guarded = guardedTools.get(tool_name);
    if (guarded === undefined) return {};
    const { executionId = session_id } = options;
    const call = { parameters, executionId: executionIdOf({ executionId }, input), toolCallId };
    if (options.wait === 'suspend' && input.agent_id === undefined) {
      const request = await guarded.request(call, { onRequested: options.onRequested });
      if (defers(input, request)) return decision('defer');
    }
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

/**
 * Whether to defer a call with this request. Claude resumes one deferred call of a turn, and ignores a deferral that it cannot
 * resume: then the call waits in place. Calls of a sub-agent are not deferred: that would end it, and nothing resumes it.
 */
export function deferrals() {
  const deferred = new Map<string, { readonly turn: string | undefined; readonly toolCallId: string }>();
  return (input: HookInput, request: FrameworkOutcome | undefined): boolean => {
    const { session_id, prompt_id: turn, tool_use_id: toolCallId = '' } = input;
    const other = deferred.get(session_id);
    const isSame = other?.toolCallId === toolCallId;
    if (request?.status !== 'waiting') {
      if (isSame) deferred.delete(session_id);
      return false;
    }
    if (other !== undefined && other.turn === turn && !isSame) return false;
    deferred.set(session_id, { turn, toolCallId });
    return true;
  };
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

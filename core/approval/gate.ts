import type { HumanInLoop } from '../tool/human-in-loop.ts';
import type { Tool } from '../tool/tool.ts';
import type { CallOptions, GateCall } from './call.ts';
import { driveCall, type GatedTool, type GateOptions, runWithoutApproval } from './call-driver.ts';
import { CallOutcome, type CallResult } from './outcome.ts';
import type { ApprovalService } from './service.ts';

/** Runs the tools of one agent. A tool that needs approval runs at most once, with exactly what was approved. */
export class ApprovalGate {
  readonly #service: ApprovalService;
  readonly #options: GateOptions;
  readonly #tools: ReadonlyMap<string, GatedTool>;

  constructor(service: ApprovalService, options: GateOptions) {
    this.#service = service;
    this.#options = options;
    this.#tools = new Map(
      [...options.tools].map(([tag, tool]) => [
        tag,
        { tool, approvalReason: approvalReason(tool, options.humanInLoop) },
      ]),
    );
    for (const tool of options.tools.values()) service.registerTool(tool);
  }

  /** Resolves to the outcome for the model. Rejects with store errors, `value_invalid`, `call_conflict` and `call_circular`. */
  call(call: GateCall, options: CallOptions = {}): Promise<CallOutcome> {
    const gated = this.#tools.get(call.tool);
    const isUngated = gated && gated.approvalReason === undefined && options.resumed !== true;
    const result =
      isUngated && !this.#service.hooks.beforeToolCall.isUsed()
        ? this.#callUngated(gated, call, options)
        : driveCall(this.#service, this.#options, gated, call, options);
    return result.then((ended) => new CallOutcome(ended));
  }

  #callUngated(gated: GatedTool, call: GateCall, options: CallOptions): Promise<CallResult> {
    const service = this.#service;
    const { tool } = gated;
    const mayHaveRequest = options.resumed === undefined && hasName(call) && !service.isKnownUngated(tool.tag);
    if (!mayHaveRequest) return runWithoutApproval(service, this.#options.agentTag, tool, call, options);
    return this.#callOnceGated(gated, call, options);
  }

  /** Earlier settings may have required approval. Without an answer of the store the tool does not run. */
  async #callOnceGated(gated: GatedTool, call: GateCall, options: CallOptions): Promise<CallResult> {
    const service = this.#service;
    return (await service.wasGated(gated.tool.tag))
      ? driveCall(service, this.#options, gated, call, options)
      : runWithoutApproval(service, this.#options.agentTag, gated.tool, call, options);
  }
}

/** Whether a repetition of the call could be recognized. */
function hasName({ executionId, toolCallId, requestId }: GateCall): boolean {
  return requestId !== undefined || (executionId !== undefined && toolCallId !== undefined);
}

/** Why a tool needs approval; undefined if it needs none. */
function approvalReason({ tag, requiresConfirmation }: Tool, { enabled, alwaysRequireApproval }: HumanInLoop) {
  if (!enabled) return undefined;
  if (requiresConfirmation) return 'The tool requires confirmation.';
  return alwaysRequireApproval.has(tag) ? 'The tool always needs approval for this agent.' : undefined;
}

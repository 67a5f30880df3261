import type { Tool } from '../tool/tool.ts';
import type { CallOptions, GateCall, WaitOptions } from './call.ts';
import { type DriveOptions, driveCall, type GatedTool, type GateOptions, runWithoutApproval } from './call-driver.ts';
import { CallOutcome, type CallResult, isPending, type PendingResult } from './outcome.ts';
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
      [...options.tools].map(([tag, tool]) => [tag, { tool, approvalReason: approvalReason(tool, options) }]),
    );
    for (const tool of options.tools.values()) service.registerTool(tool);
  }

  /** Resolves to the outcome for the model. Rejects with store errors, `value_invalid`, `call_conflict` and `call_circular`. */
  async call(call: GateCall, options: CallOptions = {}): Promise<CallResult & CallOutcome> {
    return (await this.callOrLeave(call, options)) as CallResult & CallOutcome;
  }

  /** As `call`, for a caller that may leave, and for a tool that need not be one of the agent's. */
  callOrLeave(call: GateCall, options: WaitOptions, tool?: Tool): Promise<CallOutcome> {
    return this.#call(tool ? this.#gated(tool) : this.#tools.get(call.tool), call, options);
  }

  /**
   * Stores and announces the request of a call, and runs nothing. Waits for the decision as long as `waitMs`, by default not
   * at all. Undefined if it needs none, or is invalid.
   */
  async request(tool: Tool, call: GateCall, options: WaitOptions): Promise<CallOutcome | undefined> {
    const ask = { ...options, waitMs: options.waitMs ?? 0, askOnly: true } as const;
    const ended = await driveCall(this.#service, this.#options, this.#gated(tool), call, ask);
    return ended && isPending(ended) ? new CallOutcome(ended) : undefined;
  }

  #gated(tool: Tool): GatedTool {
    // Decisions in this process validate changes as the tool does.
    this.#service.registerTool(tool);
    return { tool, approvalReason: approvalReason(tool, this.#options) };
  }

  #call(gated: GatedTool | undefined, call: GateCall, options: DriveOptions): Promise<CallOutcome> {
    const isUngated = gated && gated.approvalReason === undefined && options.resumed !== true;
    const result =
      isUngated && !this.#service.hooks.beforeToolCall.isUsed()
        ? this.#callUngated(gated, call, options)
        : driveCall(this.#service, this.#options, gated, call, options);
    return result.then((ended) => {
      if (ended === undefined) throw new Error('A call without askOnly has an outcome.');
      return new CallOutcome(ended);
    });
  }

  #callUngated(
    gated: GatedTool,
    call: GateCall,
    options: DriveOptions,
  ): Promise<CallResult | PendingResult | undefined> {
    const service = this.#service;
    const { tool } = gated;
    const mayHaveRequest = options.resumed === undefined && hasName(call) && !service.isKnownUngated(tool.tag);
    if (!mayHaveRequest) return runWithoutApproval(service, this.#options.agentTag, tool, call, options);
    return this.#callOnceGated(gated, call, options);
  }

  /** Earlier settings may have required approval. Without an answer of the store the tool does not run. */
  async #callOnceGated(
    gated: GatedTool,
    call: GateCall,
    options: DriveOptions,
  ): Promise<CallResult | PendingResult | undefined> {
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
function approvalReason({ tag, requiresConfirmation }: Tool, { humanInLoop, reason }: GateOptions): string | undefined {
  if (!humanInLoop.enabled) return undefined;
  if (requiresConfirmation) return reason ?? 'The tool requires confirmation.';
  return humanInLoop.alwaysRequireApproval.has(tag) ? 'The tool always needs approval for this agent.' : undefined;
}

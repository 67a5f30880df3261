import type { HumanInLoop } from '../agent/human-in-loop.ts';
import { storable } from '../agent/own-json.ts';
import type { Checked } from '../agent/parameters.ts';
import type { Tool } from '../agent/tool.ts';
import { SvcError } from '../errors.ts';
import type { Route } from './announce.ts';
import { type Asked, ask, askedBefore, type CheckedCall } from './ask.ts';
import { Context } from './context.ts';
import type { ApprovalDesk } from './desk.ts';
import { callDigest, tooLarge } from './digest.ts';
import { follow } from './follow.ts';
import { isRequestId, newExecutionId } from './id.ts';
import { type CallOutcome, failed, invalid, tooLargeFor } from './outcome.ts';
import type { CallOptions } from './passage.ts';
import { rule } from './policy.ts';
import type { Parameters } from './request.ts';

export { type CallOptions, DETACH } from './passage.ts';

/** A tool call as a model makes it. @experimental */
export interface GateCall {
  /** The tool's tag. */
  readonly tool: string;
  readonly parameters: unknown;
  /** Default: one of its own. */
  readonly executionId?: string;
  /**
   * The call's name in its execution: put to the gate again, after a crash too, it attaches to its request, though a
   * policy may not ask for one any more. Where neither the tool nor a policy could, the store is not looked at.
   */
  readonly toolCallId?: string;
  /** A new request's id, chosen by a caller that has stored it with the call; in place of `toolCallId`. */
  readonly requestId?: string;
  /** Shared by the calls of one turn. */
  readonly groupId?: string;
}

export interface GateSetup {
  readonly agentTag: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly humanInLoop: HumanInLoop;
  readonly routes?: readonly Route[];
  /** Milliseconds; default 30,000. */
  readonly leaseMs?: number;
}

interface Entry {
  readonly tool: Tool;
  /** Why a call of it needs a human; undefined where it does not. */
  readonly reason: string | undefined;
}

/** A request and a seat that was taken before it was read. */
type Found = Omit<Asked, 'digest'> & Partial<Pick<Asked, 'digest'>>;

const LEASE_MS = 30_000;
/** Characters of the names that a caller gives. */
const LONGEST_NAME = 200;

/** Between an agent and its tools: what needs a human's yes runs after it, at most once, and as it was shown. */
export class ApprovalGate {
  readonly #desk: ApprovalDesk;
  readonly #setup: GateSetup;
  readonly #entries: ReadonlyMap<string, Entry>;

  constructor(desk: ApprovalDesk, setup: GateSetup) {
    this.#desk = desk;
    this.#setup = setup;
    this.#entries = new Map(
      [...setup.tools].map(([tag, tool]) => [tag, { tool, reason: reasonFor(tool, setup.humanInLoop) }]),
    );
    for (const tool of setup.tools.values()) desk.define(tool);
  }

  /** Gives what the model is to see. Throws only where the store does, and for names that are used twice. */
  call(call: GateCall, options: CallOptions = {}): Promise<CallOutcome> {
    const entry = this.#entries.get(call.tool);
    const free = entry && entry.reason === undefined && options.resumed !== true;
    if (free && !this.#desk.kernel.hooks.beforeToolCall.isUsed()) return this.#straight(entry.tool, call, options);
    return this.#reviewed(entry, call, options);
  }

  async #straight(tool: Tool, call: GateCall, options: CallOptions, known?: Parameters): Promise<CallOutcome> {
    let parameters = known;
    if (parameters === undefined) {
      const checked = tool.check(call.parameters);
      if (!checked.ok) return unfit(tool, checked);
      parameters = checked.parameters;
    }
    if (options.beforeRun) await options.beforeRun();
    const context = new Context({
      agentTag: this.#setup.agentTag,
      executionId: call.executionId,
      toolCallId: call.toolCallId,
      requestId: call.requestId,
      signal: options.signal,
      log: this.#desk.log,
    });
    try {
      return { status: 'completed', result: (await tool.handler(context, parameters)) as CallOutcome['result'] };
    } catch (error) {
      return failed(error, { tool: tool.tag, parameters });
    }
  }

  async #reviewed(entry: Entry | undefined, call: GateCall, options: CallOptions): Promise<CallOutcome> {
    checkNames(call);
    if (options.resumed && call.requestId !== undefined) {
      const found = await this.#desk.sit(call.requestId);
      if (found) return this.#follow(entry?.tool, call, options, { ...found, made: false });
    }
    if (!entry) return invalid('unknown_tool', `There is no tool of that name.`, call.tool);
    const { tool } = entry;
    const checked = tool.check(call.parameters);
    if (!checked.ok) return unfit(tool, checked);
    const { parameters } = checked;
    const { agentTag, humanInLoop } = this.#setup;
    const executionId = call.executionId ?? newExecutionId();
    const ruling = await rule(this.#desk.kernel.hooks, { agentTag, executionId, tool: tool.tag, parameters });
    const reason = entry.reason ?? (ruling.verdict === 'allow' ? undefined : (ruling.reason ?? 'A policy.'));
    const named: CheckedCall = {
      executionId,
      tool,
      given: call.parameters,
      parameters,
      ...(call.toolCallId !== undefined && { toolCallId: call.toolCallId }),
      ...(call.requestId !== undefined && { requestId: call.requestId }),
    };
    if (reason === undefined) {
      // A policy may have asked for it before: what was decided then stands, and what ran does not run again.
      const before = options.resumed === undefined ? await askedBefore(this.#desk, named) : undefined;
      if (before) return this.#follow(tool, call, options, before);
      return this.#straight(tool, { ...call, executionId }, options, parameters);
    }
    if (tooLarge(parameters)) return tooLargeFor(tool.tag);
    const asked = await ask(this.#desk, {
      ...named,
      agentTag,
      reason,
      timeoutMs: humanInLoop.approvalTimeout,
      ...(call.groupId !== undefined && { groupId: call.groupId }),
      ...(ruling.verdict === 'deny' && { denied: ruling.reason ?? 'A policy.' }),
    });
    return this.#follow(tool, call, options, asked);
  }

  #follow(
    tool: Tool | undefined,
    call: GateCall,
    options: CallOptions,
    { row, made, seat, digest: known }: Found,
  ): Promise<CallOutcome> {
    const { routes = [], leaseMs = LEASE_MS } = this.#setup;
    const { requestId, executionId } = row.record;
    const digest = known ?? (tool && digestOf(tool, executionId, call.parameters));
    return follow({ desk: this.#desk, tool, requestId, digest, routes, leaseMs, options }, seat, row, made);
  }
}

/** Undefined where the parameters no longer fit: the tool has changed then. */
function digestOf(tool: Tool, executionId: string, parameters: unknown): string | undefined {
  const checked = tool.check(parameters);
  return checked.ok ? callDigest(executionId, tool.digest, checked.parameters) : undefined;
}

/** Rule 3.1.1. */
function reasonFor({ tag, requiresConfirmation }: Tool, { enabled, alwaysRequireApproval }: HumanInLoop) {
  if (!enabled) return undefined;
  if (requiresConfirmation) return 'The tool requires confirmation.';
  return alwaysRequireApproval.has(tag) ? 'The tool always needs approval for this agent.' : undefined;
}

function unfit({ tag }: Tool, { problems }: Extract<Checked, { ok: false }>): CallOutcome {
  const said = problems.map(({ parameter, why }) => (parameter === '' ? why : `${parameter} ${why}`));
  return invalid('invalid_parameters', `The parameters cannot be used: ${said.join('; ')}.`, tag);
}

function checkNames({ executionId, toolCallId, requestId, groupId }: GateCall): void {
  for (const [name, value] of Object.entries({ executionId, toolCallId, groupId })) {
    if (value === undefined) continue;
    if (typeof value === 'string' && value !== '' && value.length <= LONGEST_NAME && storable(value) === value)
      continue;
    throw new SvcError('value_invalid', `The ${name} of a call cannot be used.`, {
      why: `It is not a text of 1 to ${LONGEST_NAME} characters.`,
      state: 'Nothing ran.',
    });
  }
  if (requestId === undefined || isRequestId(requestId)) return;
  throw new SvcError('value_invalid', 'The requestId of a call cannot be used.', {
    why: 'It is not one that this SDK made.',
    state: 'Nothing ran.',
  });
}

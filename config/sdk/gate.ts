import { ungatedTools } from '../../core/agent/define.ts';
import { withToolSpan } from '../../core/agent/telemetry.ts';
import type { CallOptions, GateCall } from '../../core/approval/call.ts';
import { ApprovalGate } from '../../core/approval/gate.ts';
import type { CallOutcome } from '../../core/approval/outcome.ts';
import { SvcError } from '../../core/errors.ts';
import {
  approvalSettingsProblems,
  compileHumanInLoop,
  type HumanInLoop,
  type HumanInLoopConfig,
} from '../../core/tool/human-in-loop.ts';
import { compileTools, type Tool, type ToolList } from '../../core/tool/tool.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../../core/validate-shape.ts';
import type { Runtime } from '../load/runtime.ts';
import { warnUngatedTools } from './agents.ts';
import { openApprovals } from './approval-runtime.ts';
import { approvalSettings, routesFor } from './delivery-routes.ts';

/** @experimental */
export interface GateDefinition<T extends readonly unknown[] = readonly unknown[]> {
  readonly agentTag: string;
  readonly tools: ToolList<T>;
  readonly humanInLoop?: HumanInLoopConfig | undefined;
}

const MAX_TAG_LENGTH = 128;

/** An approval gate for the tools of an agent that another framework runs. @experimental */
export class Gate {
  readonly #agentTag: string;
  readonly #open: () => Promise<ApprovalGate>;
  #gate: ApprovalGate | undefined;
  #opened: Promise<ApprovalGate> | undefined;

  /** Throws `agent_invalid` with every problem; the first call checks the configuration. */
  constructor(definition: GateDefinition, runtime: () => Promise<Runtime>) {
    const { agentTag, tools, humanInLoop } = compileGate(definition);
    warnUngatedTools({ tag: agentTag, ungatedTools: ungatedTools(tools, humanInLoop) });
    this.#agentTag = agentTag;
    this.#open = async () => {
      const opened = await runtime();
      assertNoProblems(approvalSettingsProblems(humanInLoop, approvalSettings(opened), ['humanInLoop']));
      const routes = await routesFor(opened, humanInLoop);
      const { service } = await openApprovals(opened);
      return new ApprovalGate(service, { agentTag, tools, humanInLoop, routes });
    };
  }

  /**
   * Runs the tool, waiting for approval where required. A rejection is returned as a result, never thrown.
   * @example await gate.run({ tool: 'refund', parameters, toolCallId, executionId })
   */
  run(call: GateCall, options?: Pick<CallOptions, 'signal' | 'onRequested' | 'onDecided'>): Promise<CallOutcome> {
    const invalid = callError(call, options);
    if (invalid) return Promise.reject(invalid);
    const gate = this.#gate;
    const { tool, toolCallId: callId } = call;
    return withToolSpan({ tool, callId, agentTag: this.#agentTag }, () =>
      gate ? gate.call(call, options) : this.#openAndCall(call, options),
    );
  }

  async #openAndCall(call: GateCall, options?: CallOptions): Promise<CallOutcome> {
    this.#opened ??= this.#open();
    try {
      this.#gate = await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
    return this.#gate.call(call, options);
  }
}

const CALL_FIELDS: ReadonlySet<string> = new Set([
  'tool',
  'parameters',
  'executionId',
  'toolCallId',
  'requestId',
  'groupId',
]);
const CALL_SHAPE: Shape = {
  properties: Object.fromEntries([...CALL_FIELDS].map((name) => [name, name === 'tool' ? 'string' : 'any'])),
  required: ['tool'],
};
const OPTIONS_SHAPE: Shape = { properties: { signal: 'any', onRequested: 'any', onDecided: 'any' } };

/** A fast path for most calls: ten times as fast as checking the shape. */
function isWellFormed(call: GateCall): boolean {
  if (typeof call !== 'object' || call === null || typeof call.tool !== 'string') return false;
  for (const name in call) if (!CALL_FIELDS.has(name)) return false;
  return true;
}

/** Rejects unknown fields: a misspelt `parameters` would otherwise be ignored. */
function callError(call: GateCall, options?: object): SvcError | undefined {
  if (options === undefined && isWellFormed(call)) return undefined;
  const problems = [...shapeProblems(call, CALL_SHAPE), ...(options === undefined ? [] : optionProblems(options))];
  if (problems.length === 0) return undefined;
  return new SvcError('value_invalid', 'The gate call is not valid.', {
    why: problems.map(problemText).join(' '),
    state: 'Nothing ran and no approval was requested.',
  });
}

function optionProblems(options: CallOptions): Problem[] {
  const problems = shapeProblems(options, OPTIONS_SHAPE);
  if (problems.length > 0) return problems;
  const { signal, onRequested, onDecided } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    problems.push({ path: ['options', 'signal'], text: 'is not an AbortSignal' });
  }
  for (const [name, listener] of Object.entries({ onRequested, onDecided })) {
    if (listener !== undefined && typeof listener !== 'function') {
      problems.push({ path: ['options', name], text: 'is not a function' });
    }
  }
  return problems;
}

interface CompiledGate {
  readonly agentTag: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly humanInLoop: HumanInLoop;
}

const GATE_SHAPE: Shape = {
  properties: { agentTag: 'string', tools: 'any', humanInLoop: 'any' },
  required: ['agentTag', 'tools'],
};

function compileGate(definition: GateDefinition): CompiledGate {
  const problems = shapeProblems(definition, GATE_SHAPE);
  assertNoProblems(problems);
  const { agentTag, tools: definitions, humanInLoop: config } = definition;
  if (agentTag === '' || agentTag.length > MAX_TAG_LENGTH) {
    problems.push({ path: ['agentTag'], text: `is not a string of 1 to ${MAX_TAG_LENGTH} characters` });
  }
  const tools = compileTools(definitions, ['tools'], problems);
  const humanInLoop = compileHumanInLoop(config, [...tools.keys()], ['humanInLoop'], problems);
  assertNoProblems(problems);
  return { agentTag, tools, humanInLoop };
}

function assertNoProblems(problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  throw new SvcError('agent_invalid', 'The gate cannot be defined.', {
    why: problems.map(problemText).join(' '),
    next: ['Fix the problems listed above.'],
    details: { problems: problems.map(problemText) },
  });
}

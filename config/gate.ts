import { idleTools } from '../core/agent/define.ts';
import {
  compileHumanInLoop,
  type HumanInLoop,
  type HumanInLoopConfig,
  surroundingProblems,
} from '../core/agent/human-in-loop.ts';
import { toolSpan } from '../core/agent/span.ts';
import { compileTools, type Tool, type ToolList } from '../core/agent/tool.ts';
import { ApprovalGate, type CallOptions, type GateCall } from '../core/approval/gate.ts';
import type { CallOutcome } from '../core/approval/outcome.ts';
import { SvcError } from '../core/errors.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../core/schema/shape.ts';
import { warnOfIdle } from './agents.ts';
import { loadApprovals, surroundings } from './approval-runtime.ts';
import { routesOf } from './routes.ts';
import type { Runtime } from './runtime.ts';

/** @experimental */
export interface GateDefinition<T extends readonly unknown[] = readonly unknown[]> {
  readonly agentTag: string;
  readonly tools: ToolList<T>;
  readonly humanInLoop?: HumanInLoopConfig;
}

const LONGEST_TAG = 128;

/** The gate alone, for agents of other frameworks. @experimental */
export class Gate {
  readonly #agentTag: string;
  readonly #opening: () => Promise<ApprovalGate>;
  #gate: ApprovalGate | undefined;
  #opened: Promise<ApprovalGate> | undefined;

  /** Throws `agent_invalid` with every mistake; what the configuration must have is looked for by the first call. */
  constructor(definition: GateDefinition, runtime: () => Promise<Runtime>) {
    const { agentTag, tools, humanInLoop } = compile(definition);
    warnOfIdle({ tag: agentTag, idle: idleTools(tools, humanInLoop) });
    this.#agentTag = agentTag;
    this.#opening = async () => {
      const found = await runtime();
      refuse(surroundingProblems(humanInLoop, surroundings(found), ['humanInLoop']));
      const routes = await routesOf(found, humanInLoop);
      const { desk } = await loadApprovals(found);
      return new ApprovalGate(desk, { agentTag, tools, humanInLoop, routes });
    };
  }

  /**
   * Runs the tool, after a human's yes where one is needed. A no is a result and never an exception.
   * @example await gate.run({ tool: 'refund', parameters, toolCallId, executionId })
   */
  run(call: GateCall, options?: Pick<CallOptions, 'signal' | 'onRequested' | 'onDecided'>): Promise<CallOutcome> {
    const misused = misuse(call, options);
    if (misused) return Promise.reject(misused);
    const gate = this.#gate;
    const { tool, toolCallId: callId } = call;
    return toolSpan({ tool, callId, agentTag: this.#agentTag }, () =>
      gate ? gate.call(call, options) : this.#first(call, options),
    );
  }

  async #first(call: GateCall, options?: CallOptions): Promise<CallOutcome> {
    this.#opened ??= this.#opening();
    try {
      this.#gate = await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
    return this.#gate.call(call, options);
  }
}

const NAMES: ReadonlySet<string> = new Set(['tool', 'parameters', 'executionId', 'toolCallId', 'requestId', 'groupId']);
const CALL: Shape = {
  properties: Object.fromEntries([...NAMES].map((name) => [name, name === 'tool' ? 'string' : 'any'])),
  required: ['tool'],
};
const OPTIONS: Shape = { properties: { signal: 'any', onRequested: 'any', onDecided: 'any' } };

/** What nearly every call is, told in a tenth of the time that the shape takes. */
function isFit(call: GateCall): boolean {
  if (typeof call !== 'object' || call === null || typeof call.tool !== 'string') return false;
  for (const name in call) if (!NAMES.has(name)) return false;
  return true;
}

/** A name that is not known would be missed where it counts: the name of the call, or its parameters. */
function misuse(call: GateCall, options?: object): SvcError | undefined {
  if (options === undefined && isFit(call)) return undefined;
  const problems = [...shapeProblems(call, CALL), ...(options === undefined ? [] : optionProblems(options))];
  if (problems.length === 0) return undefined;
  return new SvcError('value_invalid', 'The call cannot be put to the gate.', {
    why: problems.map(problemText).join(' '),
    state: 'Nothing ran, and nobody was asked.',
  });
}

function optionProblems(options: CallOptions): Problem[] {
  const problems = shapeProblems(options, OPTIONS);
  if (problems.length > 0) return problems;
  const { signal, onRequested, onDecided } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    problems.push({ path: ['options', 'signal'], text: 'is not an AbortSignal' });
  }
  for (const [name, hear] of Object.entries({ onRequested, onDecided })) {
    if (hear !== undefined && typeof hear !== 'function') {
      problems.push({ path: ['options', name], text: 'is not a function' });
    }
  }
  return problems;
}

interface Compiled {
  readonly agentTag: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly humanInLoop: HumanInLoop;
}

const GATE: Shape = {
  properties: { agentTag: 'string', tools: 'any', humanInLoop: 'any' },
  required: ['agentTag', 'tools'],
};

function compile(definition: GateDefinition): Compiled {
  const problems = shapeProblems(definition, GATE);
  refuse(problems);
  const { agentTag, tools: given, humanInLoop: config } = definition;
  if (agentTag === '' || agentTag.length > LONGEST_TAG) {
    problems.push({ path: ['agentTag'], text: `is not a text of 1 to ${LONGEST_TAG} characters` });
  }
  const tools = compileTools(given, ['tools'], problems);
  const humanInLoop = compileHumanInLoop(config, [...tools.keys()], ['humanInLoop'], problems);
  refuse(problems);
  return { agentTag, tools, humanInLoop };
}

function refuse(problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  throw new SvcError('agent_invalid', 'The gate cannot be defined.', {
    why: problems.map(problemText).join(' '),
    next: ['Mend the definition.'],
    details: { problems: problems.map(problemText) },
  });
}

import { ungatedTools } from '../../core/agent/define.ts';
import { withToolSpan } from '../../core/agent/telemetry.ts';
import type { GateCall, WaitOptions } from '../../core/approval/call.ts';
import { ApprovalGate } from '../../core/approval/gate.ts';
import type { CallOutcome } from '../../core/approval/outcome.ts';
import { SvcError } from '../../core/errors.ts';
import {
  approvalSettingsProblems,
  compileHumanInLoop,
  type HumanInLoop,
  type HumanInLoopConfig,
} from '../../core/tool/human-in-loop.ts';
import type { InputSchema } from '../../core/tool/input-schema.ts';
import type { JsonSchema } from '../../core/tool/json-schema.ts';
import { LONGEST_WAIT_MS } from '../../core/tool/longest-wait.ts';
import type { StandardOutput } from '../../core/tool/standard-schema.ts';
import { compileTools, type Tool, type ToolContext, type ToolDefinition, type ToolList } from '../../core/tool/tool.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../../core/validate-shape.ts';
import type { Runtime } from '../load/runtime.ts';
import { warnUngatedTools } from './agents.ts';
import { openApprovals } from './approval-runtime.ts';
import { approvalSettings, routesFor } from './delivery-routes.ts';

/** @experimental */
export interface GateDefinition<T extends readonly unknown[] = readonly unknown[]> {
  readonly agentTag: string;
  /** Default: none, for a gate whose tools are all guarded. */
  readonly tools?: ToolList<T> | undefined;
  readonly humanInLoop?: HumanInLoopConfig | undefined;
}

/** A tool for `gate.guard`, which requires approval by default. @experimental */
export type GuardDefinition<S extends InputSchema = InputSchema> = Omit<
  ToolDefinition,
  'tag' | 'parameters' | 'inputSchema' | 'handler'
> & { readonly inputSchema: S };

/** @experimental */
export type RunOptions = Pick<WaitOptions, 'signal' | 'onRequested' | 'onDecided' | 'waitMs'>;

/** A tool of `gate.guard`. `Own` is what its callers pass to `execute`. @experimental */
export interface GuardedTool<Own = undefined> {
  readonly tag: string;
  /** The JSON Schema that approvals are bound to. */
  readonly schema: JsonSchema;
  /** Runs the tool, as `gate.run` does. */
  run(call: GuardedCall, options?: RunOptions, ...own: OwnArguments<Own>): Promise<CallOutcome>;
  /**
   * Stores and announces the request of a call, and runs nothing: for a framework that suspends its run. The outcome is
   * `waiting` or `decided`; undefined if the call needs no approval or its parameters are invalid.
   */
  request(call: GuardedCall, options?: RunOptions): Promise<CallOutcome | undefined>;
}

/** @experimental */
export type GuardedCall = Omit<GateCall, 'tool'>;

type OwnArguments<Own> = undefined extends Own ? [own?: Own] : [own: Own];

const MAX_TAG_LENGTH = 128;
const NO_OPTIONS: RunOptions = Object.freeze({});

/** An approval gate for the tools of an agent that another framework runs. @experimental */
export class Gate {
  readonly #agentTag: string;
  readonly #humanInLoop: HumanInLoop;
  readonly #open: () => Promise<ApprovalGate>;
  #gate: ApprovalGate | undefined;
  #opened: Promise<ApprovalGate> | undefined;

  /** Throws `agent_invalid` with every problem; the first call checks the configuration. */
  constructor(definition: GateDefinition, runtime: () => Promise<Runtime>) {
    const { agentTag, tools, humanInLoop } = compileGate(definition);
    warnUngatedTools({ tag: agentTag, ungatedTools: ungatedTools(tools, humanInLoop) });
    this.#agentTag = agentTag;
    this.#humanInLoop = humanInLoop;
    this.#open = async () => {
      const opened = await runtime();
      assertNoProblems(approvalSettingsProblems(humanInLoop, approvalSettings(opened), ['humanInLoop']));
      const routes = await routesFor(opened, humanInLoop);
      const { service, notices } = await openApprovals(opened);
      notices.add(agentTag, routes);
      return new ApprovalGate(service, { agentTag, tools, humanInLoop, routes });
    };
  }

  /** The longest wait for a decision, in milliseconds. A framework that ends a call sooner cannot hold one. */
  get approvalTimeout(): number {
    return this.#humanInLoop.approvalTimeout;
  }

  /**
   * Runs the tool, waiting for approval where required. A rejection is returned as a result, never thrown.
   * @example await gate.run({ tool: 'refund', parameters, toolCallId, executionId })
   */
  run(call: GateCall, options: RunOptions = NO_OPTIONS): Promise<CallOutcome> {
    const invalid = callError(call, options);
    if (invalid) return Promise.reject(invalid);
    return this.#inSpan(call, (gate) => gate.callOrLeave(call, options));
  }

  /**
   * Gates a tool that is known only at run time, such as one of an MCP server. Throws `agent_invalid`.
   * @example const refund = gate.guard('refund', { inputSchema, description }, (input) => client.callTool('refund', input))
   */
  guard<const S extends InputSchema, Own = undefined>(
    tag: string,
    definition: GuardDefinition<S>,
    execute: (input: StandardOutput<S>, ctx: ToolContext, own: Own) => unknown,
  ): GuardedTool<Own> {
    const tool = compileGuarded(tag, definition, execute);
    warnUngatedTools({ tag: this.#agentTag, ungatedTools: ungatedTools(new Map([[tag, tool]]), this.#humanInLoop) });
    const invalidCall = (call: GuardedCall, options?: object) => callError({ ...call, tool: tag }, options);
    return {
      tag,
      schema: tool.schema,
      run: ((call: GuardedCall, options: RunOptions = NO_OPTIONS, own?: Own) => {
        const invalid = invalidCall(call, options);
        if (invalid) return Promise.reject(invalid);
        const handler = (ctx: ToolContext, input: unknown) => execute(input as StandardOutput<S>, ctx, own as Own);
        const named = { ...call, tool: tag };
        return this.#inSpan(named, (gate) => gate.callOrLeave(named, options, { ...tool, handler }));
      }) as GuardedTool<Own>['run'],
      request: async (call, options = NO_OPTIONS) => {
        const invalid = invalidCall(call, { waitMs: 0, ...options });
        if (invalid) throw invalid;
        const named = { ...call, tool: tag };
        return (await this.#ready()).request(tool, named, options);
      },
    };
  }

  #inSpan(
    { tool, toolCallId: callId }: GateCall,
    work: (gate: ApprovalGate) => Promise<CallOutcome>,
  ): Promise<CallOutcome> {
    const gate = this.#gate;
    return withToolSpan({ tool, callId, agentTag: this.#agentTag }, () =>
      gate ? work(gate) : this.#ready().then(work),
    );
  }

  async #ready(): Promise<ApprovalGate> {
    this.#opened ??= this.#open();
    try {
      this.#gate = await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
    return this.#gate;
  }
}

const CALL_FIELDS: ReadonlySet<string> = new Set([
  'tool',
  'parameters',
  'executionId',
  'toolCallId',
  'requestId',
  'groupId',
  'requester',
  'model',
  'modelText',
]);
const CALL_SHAPE: Shape = {
  properties: Object.fromEntries([...CALL_FIELDS].map((name) => [name, name === 'tool' ? 'string' : 'any'])),
  required: ['tool'],
};
const OPTIONS_SHAPE: Shape = { properties: { signal: 'any', onRequested: 'any', onDecided: 'any', waitMs: 'number' } };

/** A fast path for most calls: ten times as fast as checking the shape. */
function isWellFormed(call: GateCall): boolean {
  if (typeof call !== 'object' || call === null || typeof call.tool !== 'string') return false;
  for (const name in call) if (!CALL_FIELDS.has(name)) return false;
  return true;
}

/** Rejects unknown fields: a misspelt `parameters` would otherwise be ignored. */
function callError(call: GateCall, options?: object): SvcError | undefined {
  if ((options === undefined || options === NO_OPTIONS) && isWellFormed(call)) return undefined;
  const problems = [
    ...shapeProblems(call, CALL_SHAPE),
    ...(options === undefined ? [] : optionProblems(options, call)),
  ];
  if (problems.length === 0) return undefined;
  return new SvcError('value_invalid', 'The gate call is not valid.', {
    why: problems.map(problemText).join(' '),
    state: 'Nothing ran and no approval was requested.',
  });
}

function optionProblems(options: RunOptions, call: GateCall): Problem[] {
  const problems = shapeProblems(options, OPTIONS_SHAPE);
  if (problems.length > 0) return problems;
  const { signal, onRequested, onDecided, waitMs } = options;
  if (waitMs !== undefined && !(waitMs >= 0 && waitMs <= LONGEST_WAIT_MS)) {
    problems.push({
      path: ['options', 'waitMs'],
      text: `is not a number of milliseconds from 0 to ${LONGEST_WAIT_MS}`,
    });
  }
  const isNamed = call?.requestId !== undefined || (call?.executionId !== undefined && call.toolCallId !== undefined);
  if (waitMs !== undefined && !isNamed) {
    const text = 'needs executionId and toolCallId: without them the call cannot be made again';
    problems.push({ path: ['options', 'waitMs'], text });
  }
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
  required: ['agentTag'],
};

function compileGate(definition: GateDefinition): CompiledGate {
  const problems = shapeProblems(definition, GATE_SHAPE);
  assertNoProblems(problems);
  const { agentTag, tools: definitions, humanInLoop: config } = definition;
  if (agentTag === '' || agentTag.length > MAX_TAG_LENGTH) {
    problems.push({ path: ['agentTag'], text: `is not a string of 1 to ${MAX_TAG_LENGTH} characters` });
  }
  const tools = compileTools(definitions ?? [], ['tools'], problems);
  const humanInLoop = compileHumanInLoop(config, [...tools.keys()], ['humanInLoop'], problems);
  assertNoProblems(problems);
  return { agentTag, tools, humanInLoop };
}

const GUARD_SHAPE: Shape = {
  properties: {
    ...{ inputSchema: 'any', jsonSchema: 'any', sensitive: { list: 'string' }, description: 'string' },
    ...{ requiresConfirmation: 'boolean', idempotent: 'boolean' },
  },
  required: ['inputSchema'],
};

function compileGuarded(tag: unknown, definition: GuardDefinition, execute: unknown): Tool {
  const problems = shapeProblems(definition, GUARD_SHAPE);
  assertNoProblems(problems);
  const handler = typeof execute === 'function' ? () => undefined : execute;
  const tools = compileTools([{ requiresConfirmation: true, ...definition, tag, handler }], [], problems);
  assertNoProblems(problems);
  const [tool] = tools.values();
  if (!tool) throw new Error('A guarded tool was not compiled.');
  return tool;
}

function assertNoProblems(problems: readonly Problem[]): void {
  if (problems.length === 0) return;
  throw new SvcError('agent_invalid', 'The gate cannot be defined.', {
    why: problems.map(problemText).join(' '),
    next: ['Fix the problems listed above.'],
    details: { problems: problems.map(problemText) },
  });
}

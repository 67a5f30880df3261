import { SvcError } from '../errors.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../schema/shape.ts';
import {
  type ApprovalSurroundings,
  compileHumanInLoop,
  type HumanInLoop,
  type HumanInLoopConfig,
  surroundingProblems,
} from './human-in-loop.ts';
import { compileTools, type Tool, type ToolList } from './tool.ts';

/** SPEC 2.1. @experimental */
export interface AgentDefinition<T extends readonly unknown[] = readonly unknown[]> {
  readonly tag: string;
  readonly name?: string;
  readonly model: ModelChoice;
  readonly systemPrompt?: string;
  readonly tools: ToolList<T>;
  readonly humanInLoop?: HumanInLoopConfig;
  readonly limits?: RunLimits;
}

/** @experimental */
export interface ModelChoice {
  /** A provider of the AI SDK, `scripted`, or what a plugin registers. */
  readonly provider: string;
  readonly model: string;
  /** Handed to the provider as they are: `baseURL`, `apiKey`, `headers`. Never stored. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** @experimental */
export interface RunLimits {
  /** Turns of the model; default 32. */
  readonly steps?: number;
  /** Milliseconds from start to end, waiting for humans included; default none. */
  readonly durationMs?: number;
}

/** An agent whose definition has been checked. */
export interface CompiledAgent {
  readonly tag: string;
  readonly name: string;
  readonly model: Required<ModelChoice>;
  readonly systemPrompt: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly humanInLoop: HumanInLoop;
  readonly limits: { readonly steps: number; readonly durationMs?: number };
  /** Tools that say they need approval while humanInLoop is not enabled. */
  readonly idle: readonly string[];
}

const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const DEFAULT_STEPS = 32;
const MOST_STEPS = 10_000;
const LONGEST_MS = 31_536_000_000;

const AGENT: Shape = {
  properties: {
    tag: 'string',
    name: 'string',
    model: {
      properties: { provider: 'string', model: 'string', settings: { map: 'any' } },
      required: ['provider', 'model'],
    },
    systemPrompt: 'string',
    tools: 'any',
    humanInLoop: 'any',
    limits: { properties: { steps: 'number', durationMs: 'number' } },
  },
  required: ['tag', 'model', 'tools'],
};

/** Throws `agent_invalid` with every mistake and its path, as far as that can be told without the configuration. */
export function compileAgent(value: unknown): CompiledAgent {
  const problems = shapeProblems(value, AGENT);
  refuse(problems, value);
  const given = value as AgentDefinition;
  const { tag, name = tag, systemPrompt = '', model } = given;
  if (!TAG.test(tag)) problems.push({ path: ['tag'], text: 'is not a name of 1 to 128 characters A-Z a-z 0-9 _ . -' });
  const tools = compileTools(given.tools, ['tools'], problems);
  const humanInLoop = compileHumanInLoop(given.humanInLoop, tagsOf(given.tools), ['humanInLoop'], problems);
  const limits = checkLimits(given.limits ?? {}, problems);
  refuse(problems, value);
  return Object.freeze({
    tag,
    name,
    model: { provider: model.provider, model: model.model, settings: model.settings ?? {} },
    systemPrompt,
    tools,
    humanInLoop,
    limits,
    idle: idleTools(tools, humanInLoop),
  });
}

/** Throws `agent_invalid` where the configuration lacks what the agent leans on. */
export function checkSurroundings(agent: CompiledAgent, around: ApprovalSurroundings): void {
  refuse(surroundingProblems(agent.humanInLoop, around, ['humanInLoop']), agent);
}

/** Tools that say they need approval while humanInLoop is not enabled. */
export function idleTools(tools: ReadonlyMap<string, Tool>, humanInLoop: HumanInLoop): string[] {
  const { enabled, alwaysRequireApproval } = humanInLoop;
  if (enabled) return [];
  const asks = ({ tag, requiresConfirmation }: Tool) => requiresConfirmation || alwaysRequireApproval.has(tag);
  return [...tools.values()].filter(asks).map(({ tag }) => tag);
}

/** Those of tools that cannot be used too: a list that names one is no second mistake. */
function tagsOf(tools: readonly unknown[]): string[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool) => (typeof tool?.tag === 'string' ? [tool.tag] : []));
}

function checkLimits({ steps = DEFAULT_STEPS, durationMs }: RunLimits, problems: Problem[]): CompiledAgent['limits'] {
  if (!isWithin(steps, MOST_STEPS)) {
    problems.push({ path: ['limits', 'steps'], text: `is not a whole number from 1 to ${MOST_STEPS}` });
  }
  if (durationMs !== undefined && !isWithin(durationMs, LONGEST_MS)) {
    problems.push({ path: ['limits', 'durationMs'], text: `is not a whole number from 1 to ${LONGEST_MS}` });
  }
  return { steps, ...(durationMs !== undefined && { durationMs }) };
}

const isWithin = (value: number, most: number): boolean => Number.isInteger(value) && value >= 1 && value <= most;

function refuse(problems: readonly Problem[], value: unknown): void {
  const [first] = problems;
  if (!first) return;
  const tag = (value as { readonly tag?: unknown } | null | undefined)?.tag;
  throw new SvcError('agent_invalid', `The agent ${typeof tag === 'string' ? `"${tag}" ` : ''}cannot be defined.`, {
    why: problems.map(problemText).join(' '),
    next: ['Mend the definition.'],
    details: { problems: problems.map(problemText), path: first.path },
  });
}

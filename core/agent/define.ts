import { SvcError } from '../errors.ts';
import {
  type ApprovalSettings,
  approvalSettingsProblems,
  compileHumanInLoop,
  type HumanInLoop,
  type HumanInLoopConfig,
} from '../tool/human-in-loop.ts';
import { LONGEST_WAIT_MS } from '../tool/longest-wait.ts';
import { compileTools, nameForModel, type Tool, type ToolList } from '../tool/tool.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../validate-shape.ts';

/** The argument of `svc.agents.define`. @experimental */
export interface AgentDefinition<T extends readonly unknown[] = readonly unknown[]> {
  readonly tag: string;
  /** Default: the tag. */
  readonly name?: string | undefined;
  readonly model: ModelChoice;
  readonly systemPrompt?: string | undefined;
  readonly tools: ToolList<T>;
  readonly humanInLoop?: HumanInLoopConfig | undefined;
  readonly limits?: RunLimits | undefined;
}

/** @experimental */
export interface ModelChoice {
  /** A provider of the AI SDK, `scripted`, or one that a plugin registers. */
  readonly provider: string;
  readonly model: string;
  /** Passed to the provider unchanged, such as `baseURL`, `apiKey`, `headers`. Never stored. */
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
}

/** @experimental */
export interface RunLimits {
  /** Model turns, 1 to 10,000; default 32. */
  readonly steps?: number | undefined;
  /** Milliseconds from start to end, including the wait for humans; default none. */
  readonly durationMs?: number | undefined;
}

/** A validated agent definition. */
export interface CompiledAgent {
  readonly tag: string;
  readonly name: string;
  readonly model: { readonly [K in keyof Required<ModelChoice>]: NonNullable<ModelChoice[K]> };
  readonly systemPrompt: string;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly humanInLoop: HumanInLoop;
  readonly limits: { readonly steps: number; readonly durationMs?: number };
  /** Tools that require approval although humanInLoop is not enabled. */
  readonly ungatedTools: readonly string[];
}

const AGENT_TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const DEFAULT_STEPS = 32;
const MAX_STEPS = 10_000;

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

/** Throws `agent_invalid` with every mistake and its path. Does not read svc.config. */
export function compileAgent(value: unknown): CompiledAgent {
  const problems = shapeProblems(value, AGENT);
  assertNoProblems(problems, value);
  const given = value as AgentDefinition;
  const { tag, name = tag, systemPrompt = '', model } = given;
  if (!AGENT_TAG.test(tag))
    problems.push({ path: ['tag'], text: 'is not a valid tag: use 1 to 128 of A-Z a-z 0-9 _ . -' });
  const tools = compileTools(given.tools, ['tools'], problems);
  addSharedNames(tools, problems);
  const humanInLoop = compileHumanInLoop(given.humanInLoop, tagsOf(given.tools), ['humanInLoop'], problems);
  const limits = compileLimits(given.limits ?? {}, problems);
  assertNoProblems(problems, value);
  return Object.freeze({
    tag,
    name,
    model: { provider: model.provider, model: model.model, settings: model.settings ?? {} },
    systemPrompt,
    tools,
    humanInLoop,
    limits,
    ungatedTools: ungatedTools(tools, humanInLoop),
  });
}

/** Throws `agent_invalid` if svc.config lacks a setting that the agent needs. */
export function assertApprovalSettings(agent: CompiledAgent, settings: ApprovalSettings): void {
  assertNoProblems(approvalSettingsProblems(agent.humanInLoop, settings, ['humanInLoop']), agent);
}

/** Tools that require approval although humanInLoop is not enabled. */
export function ungatedTools(tools: ReadonlyMap<string, Tool>, humanInLoop: HumanInLoop): string[] {
  const { enabled, alwaysRequireApproval } = humanInLoop;
  if (enabled) return [];
  const requiresApproval = ({ tag, requiresConfirmation }: Tool) =>
    requiresConfirmation || alwaysRequireApproval.has(tag);
  return [...tools.values()].filter(requiresApproval).map(({ tag }) => tag);
}

/** A call of a model must name one tool. */
function addSharedNames(tools: ReadonlyMap<string, Tool>, problems: Problem[]): void {
  const tagOfName = new Map<string, string>();
  for (const [index, tag] of [...tools.keys()].entries()) {
    const other = tagOfName.get(nameForModel(tag));
    tagOfName.set(nameForModel(tag), tag);
    if (other === undefined) continue;
    const text = `is the same name as "${other}" for a model, which reads "${nameForModel(tag)}"`;
    problems.push({ path: ['tools', index, 'tag'], text });
  }
}

/** Includes the tags of invalid tools, so that a list that contains one is not reported as well. */
function tagsOf(tools: readonly unknown[]): string[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool) => (typeof tool?.tag === 'string' ? [tool.tag] : []));
}

function compileLimits({ steps = DEFAULT_STEPS, durationMs }: RunLimits, problems: Problem[]): CompiledAgent['limits'] {
  if (!isWithin(steps, MAX_STEPS)) {
    problems.push({ path: ['limits', 'steps'], text: `is not a whole number from 1 to ${MAX_STEPS}` });
  }
  if (durationMs !== undefined && !isWithin(durationMs, LONGEST_WAIT_MS)) {
    problems.push({ path: ['limits', 'durationMs'], text: `is not a whole number from 1 to ${LONGEST_WAIT_MS}` });
  }
  return { steps, ...(durationMs !== undefined && { durationMs }) };
}

const isWithin = (value: number, max: number): boolean => Number.isInteger(value) && value >= 1 && value <= max;

function assertNoProblems(problems: readonly Problem[], value: unknown): void {
  const [first] = problems;
  if (!first) return;
  const tag = (value as { readonly tag?: unknown } | null | undefined)?.tag;
  throw new SvcError('agent_invalid', `The agent ${typeof tag === 'string' ? `"${tag}" ` : ''}cannot be defined.`, {
    why: problems.map(problemText).join(' '),
    next: ['Fix the definition.'],
    details: { problems: problems.map(problemText), path: first.path },
  });
}

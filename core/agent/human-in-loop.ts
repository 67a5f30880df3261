import { nearest } from '../nearest.ts';
import { type Path, type Problem, type Shape, shapeProblems } from '../schema/shape.ts';
import { addressProblem } from '../url.ts';

/** SPEC 2.2. @experimental */
export interface HumanInLoopConfig {
  /** Default false: no tool waits, whatever else is said. */
  readonly enabled?: boolean;
  readonly alwaysRequireApproval?: readonly string[];
  /** Milliseconds, 1,000 to 31,536,000,000 (a year); default 300,000. */
  readonly approvalTimeout?: number;
  /** https, or http on a loopback address. */
  readonly approvalWebhook?: string;
  readonly approvalBroker?: { readonly broker: string; readonly event: string };
}

/** A `HumanInLoopConfig` that has been checked. */
export interface HumanInLoop {
  readonly enabled: boolean;
  readonly alwaysRequireApproval: ReadonlySet<string>;
  readonly approvalTimeout: number;
  readonly approvalWebhook?: string;
  readonly approvalBroker?: { readonly broker: string; readonly event: string };
}

/** What of the configuration a definition leans on. */
export interface ApprovalSurroundings {
  readonly brokers: readonly string[];
  /** Whether `approvals.callbackBase` and `approvals.callbackKey` are there: never what they are. */
  readonly callbackBase: boolean;
  readonly callbackKey: boolean;
}

export const DEFAULT_APPROVAL_TIMEOUT = 300_000;
const SHORTEST = 1_000;
const LONGEST = 31_536_000_000;

const CONFIG: Shape = {
  properties: {
    enabled: 'boolean',
    alwaysRequireApproval: { list: 'string' },
    approvalTimeout: 'number',
    approvalWebhook: 'string',
    approvalBroker: { properties: { broker: 'string', event: 'string' }, required: ['broker', 'event'] },
  },
};

/** Adds to `problems` what cannot be used, each with its path, as far as that can be told without the configuration. */
export function compileHumanInLoop(
  value: unknown,
  toolTags: readonly string[],
  path: Path,
  problems: Problem[],
): HumanInLoop {
  const wrong = shapeProblems(value ?? {}, CONFIG, path);
  problems.push(...wrong);
  const given: HumanInLoopConfig = wrong.length > 0 ? {} : ((value ?? {}) as HumanInLoopConfig);
  const { enabled = false, alwaysRequireApproval = [], approvalTimeout = DEFAULT_APPROVAL_TIMEOUT } = given;
  const say = (key: string, text: string) => problems.push({ path: [...path, key], text });
  for (const [index, tag] of alwaysRequireApproval.entries()) {
    if (toolTags.includes(tag)) continue;
    const near = nearest(tag, toolTags);
    const hint = near ? `did you mean "${near}"?` : `its tools are ${toolTags.join(', ') || 'none'}`;
    problems.push({ path: [...path, 'alwaysRequireApproval', index], text: `names no tool of this agent; ${hint}` });
  }
  if (!Number.isInteger(approvalTimeout) || approvalTimeout < SHORTEST || approvalTimeout > LONGEST) {
    say('approvalTimeout', `is not a whole number of milliseconds from ${SHORTEST} to ${LONGEST}`);
  }
  if (given.approvalWebhook !== undefined) {
    const why = addressProblem(given.approvalWebhook);
    if (why) say('approvalWebhook', why);
  }
  if (given.approvalBroker?.event === '') {
    problems.push({ path: [...path, 'approvalBroker', 'event'], text: 'is empty' });
  }
  return Object.freeze({
    enabled,
    alwaysRequireApproval: new Set(alwaysRequireApproval),
    approvalTimeout,
    ...(given.approvalWebhook !== undefined && { approvalWebhook: given.approvalWebhook }),
    ...(given.approvalBroker !== undefined && { approvalBroker: Object.freeze({ ...given.approvalBroker }) }),
  });
}

/** What the configuration lacks of what it leans on. */
export function surroundingProblems(
  { approvalWebhook, approvalBroker }: HumanInLoop,
  { brokers, callbackBase, callbackKey }: ApprovalSurroundings,
  path: Path,
): Problem[] {
  const problems: Problem[] = [];
  const webhook = [...path, 'approvalWebhook'];
  if (approvalWebhook !== undefined && !callbackBase) {
    problems.push({ path: webhook, text: 'needs approvals.callbackBase in svc.config: nobody could answer' });
  }
  if (approvalWebhook !== undefined && !callbackKey) {
    problems.push({ path: webhook, text: 'needs approvals.callbackKey in svc.config: anybody could answer' });
  }
  if (approvalBroker !== undefined && !brokers.includes(approvalBroker.broker)) {
    const near = nearest(approvalBroker.broker, brokers);
    const hint = near ? `did you mean "${near}"?` : `configured are ${brokers.join(', ') || 'none'}`;
    problems.push({ path: [...path, 'approvalBroker', 'broker'], text: `names no broker of svc.config; ${hint}` });
  }
  return problems;
}

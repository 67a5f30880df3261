import { nearest } from '../nearest.ts';
import { addressProblem } from '../url.ts';
import { type Path, type Problem, type Shape, shapeProblems } from '../validate-shape.ts';
import { LONGEST_WAIT_MS } from './longest-wait.ts';

/** Which tool calls of an agent need approval, and how reviewers are notified. @experimental */
export interface HumanInLoopConfig {
  /** Default false: no tool waits for approval, whatever the other options are. */
  readonly enabled?: boolean | undefined;
  /** Tags of tools that need approval in addition to those with `requiresConfirmation`. */
  readonly alwaysRequireApproval?: readonly string[] | undefined;
  /** Milliseconds, 1,000 to 31,536,000,000 (a year); default 300,000. */
  readonly approvalTimeout?: number | undefined;
  /**
   * Milliseconds after an approval in which the call may start, as long as `approvalTimeout` by default. A call that no
   * process has taken up by then does not run (`approval_lapsed`).
   */
  readonly approvalValidFor?: number | undefined;
  /** An https URL, or http on a loopback address. */
  readonly approvalWebhook?: string | undefined;
  readonly approvalBroker?: { readonly broker: string; readonly event: string } | undefined;
}

/** A validated `HumanInLoopConfig`. */
export interface HumanInLoop {
  readonly enabled: boolean;
  readonly alwaysRequireApproval: ReadonlySet<string>;
  readonly approvalTimeout: number;
  readonly approvalValidFor: number;
  readonly approvalWebhook?: string;
  readonly approvalBroker?: { readonly broker: string; readonly event: string };
}

/** The settings of svc.config that a definition depends on. */
export interface ApprovalSettings {
  readonly brokers: readonly string[];
  /** Whether `approvals.callbackBase` and `approvals.callbackKey` are set. */
  readonly callbackBase: boolean;
  readonly callbackKey: boolean;
}

const DEFAULT_APPROVAL_TIMEOUT = 300_000;
const MIN_TIMEOUT_MS = 1_000;

const CONFIG: Shape = {
  properties: {
    enabled: 'boolean',
    alwaysRequireApproval: { list: 'string' },
    approvalTimeout: 'number',
    approvalValidFor: 'number',
    approvalWebhook: 'string',
    approvalBroker: { properties: { broker: 'string', event: 'string' }, required: ['broker', 'event'] },
  },
};

/** Adds each mistake with its path to `problems`. Settings of svc.config are checked by `approvalSettingsProblems`. */
export function compileHumanInLoop(
  value: unknown,
  toolTags: readonly string[],
  path: Path,
  problems: Problem[],
): HumanInLoop {
  const found = shapeProblems(value ?? {}, CONFIG, path);
  problems.push(...found);
  const given: HumanInLoopConfig = found.length > 0 ? {} : ((value ?? {}) as HumanInLoopConfig);
  const { enabled = false, alwaysRequireApproval = [], approvalTimeout = DEFAULT_APPROVAL_TIMEOUT } = given;
  const { approvalValidFor = approvalTimeout } = given;
  const add = (key: string, text: string) => problems.push({ path: [...path, key], text });
  for (const [index, tag] of alwaysRequireApproval.entries()) {
    if (toolTags.includes(tag)) continue;
    const near = nearest(tag, toolTags);
    const hint = near ? `did you mean "${near}"?` : `its tools are ${toolTags.join(', ') || 'none'}`;
    problems.push({ path: [...path, 'alwaysRequireApproval', index], text: `is not a tool of this agent; ${hint}` });
  }
  for (const [key, value] of Object.entries({ approvalTimeout, approvalValidFor: given.approvalValidFor })) {
    if (value === undefined || (Number.isInteger(value) && value >= MIN_TIMEOUT_MS && value <= LONGEST_WAIT_MS))
      continue;
    add(key, `is not a whole number of milliseconds from ${MIN_TIMEOUT_MS} to ${LONGEST_WAIT_MS}`);
  }
  if (given.approvalWebhook !== undefined) {
    const why = addressProblem(given.approvalWebhook);
    if (why) add('approvalWebhook', why);
  }
  if (given.approvalBroker?.event === '') {
    problems.push({ path: [...path, 'approvalBroker', 'event'], text: 'is empty' });
  }
  return Object.freeze({
    enabled,
    alwaysRequireApproval: new Set(alwaysRequireApproval),
    approvalTimeout,
    approvalValidFor,
    ...(given.approvalWebhook !== undefined && { approvalWebhook: given.approvalWebhook }),
    ...(given.approvalBroker !== undefined && { approvalBroker: Object.freeze({ ...given.approvalBroker }) }),
  });
}

/** The settings of svc.config that are missing for this definition: none if it is not enabled. */
export function approvalSettingsProblems(
  { enabled, approvalWebhook, approvalBroker }: HumanInLoop,
  { brokers, callbackBase, callbackKey }: ApprovalSettings,
  path: Path,
): Problem[] {
  const problems: Problem[] = [];
  if (!enabled) return problems;
  const webhook = [...path, 'approvalWebhook'];
  if (approvalWebhook !== undefined && !callbackBase) {
    problems.push({ path: webhook, text: 'needs approvals.callbackBase in svc.config: without it nobody can respond' });
  }
  if (approvalWebhook !== undefined && !callbackKey) {
    problems.push({ path: webhook, text: 'needs approvals.callbackKey in svc.config: without it anybody can respond' });
  }
  if (approvalBroker !== undefined && !brokers.includes(approvalBroker.broker)) {
    const near = nearest(approvalBroker.broker, brokers);
    const hint = near ? `did you mean "${near}"?` : `its brokers are ${brokers.join(', ') || 'none'}`;
    problems.push({ path: [...path, 'approvalBroker', 'broker'], text: `is not a broker of svc.config; ${hint}` });
  }
  return problems;
}

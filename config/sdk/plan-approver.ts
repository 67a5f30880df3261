import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ApprovalGate } from '../../core/approval/gate.ts';
import { idRange } from '../../core/approval/request.ts';
import type { RequestRow } from '../../core/approval/service.ts';
import { hasLapsed } from '../../core/approval/state.ts';
import type { Connection } from '../../core/dialect.ts';
import { shorten } from '../../core/display/limit.ts';
import { SvcError } from '../../core/errors.ts';
import { canonicalJson, type Json } from '../../core/json.ts';
import { osActor } from '../../core/migration/history-table.ts';
import type { Migration } from '../../core/migration/migration.ts';
import {
  type AddedMigrations,
  type AskOptions,
  MIGRATION_AGENT,
  MIGRATION_TOOL,
  type PlanApprover,
  type PlanDescription,
  type RequestContext,
  type RunApproval,
} from '../../core/migration/plan-approver.ts';
import { HOUR_MS } from '../../core/migration/preview-statements.ts';
import { allRows } from '../../core/records.ts';
import { callKey, isOversized } from '../../core/tool/call-digest.ts';
import { compileHumanInLoop } from '../../core/tool/human-in-loop.ts';
import { compileTools, type Tool } from '../../core/tool/tool.ts';
import { lintLines, lintMigrations, withRows } from '../load/lint.ts';
import { ownToken } from '../load/own-token.ts';
import { planApprovalSettings, planApprovers } from '../load/plan-approval.ts';
import type { Runtime } from '../load/runtime.ts';
import { closeApprovals, openApprovals } from './approval-runtime.ts';
import { routesFor } from './delivery-routes.ts';

const text = { type: 'string' };
const TOOL = {
  tag: MIGRATION_TOOL,
  description:
    'Changes the schema of a database: runs the statements of these migrations. Approve it as it is: it cannot be changed.',
  inputSchema: {
    type: 'object',
    properties: {
      environment: text,
      database: text,
      action: text,
      losses: { type: 'array', items: text },
      warnings: { type: 'array', items: text },
      migrations: { type: 'array', items: { type: 'object' } },
      requestedBy: text,
      keepHours: { type: 'number' },
      commit: text,
      plan: text,
    },
    required: ['environment', 'database', 'action', 'losses', 'warnings', 'migrations', 'requestedBy', 'plan'],
    additionalProperties: false,
  },
  requiresConfirmation: true,
  // The migration lock and the journal make a second attempt safe.
  idempotent: true,
};

/** A plan of another process that stopped is not waited for: its process no longer holds the migration lock. */
const UNDER_LOCK = { resumed: true, waitMs: 0 };

/** The approver of a database, in an environment with `approval`. A plan is a call of a tool that waits for people. */
export class CallPlanApprover implements PlanApprover {
  readonly when: PlanApprover['when'];
  readonly #runtime: Runtime;
  readonly #database: string;
  readonly #executionId: string;
  readonly #timeoutMs: number;

  constructor(runtime: Runtime, database: string) {
    const approval = runtime.config.environments?.[runtime.env]?.approval;
    if (!approval) throw new Error(`The environment ${runtime.env} has no approval.`);
    const { when, timeoutMs } = planApprovalSettings(approval);
    this.when = when;
    this.#runtime = runtime;
    this.#database = database;
    this.#executionId = `migrations of ${database}`;
    this.#timeoutMs = timeoutMs;
  }

  async describe(connection: Pick<Connection, 'count'>, { before, added }: AddedMigrations): Promise<RequestContext> {
    const commit = await currentCommit(this.#runtime.root);
    const isAdded = (one: Migration): boolean => added.includes(one);
    const { findings } = await lintMigrations(this.#runtime, this.#database, [...before, ...added], isAdded);
    const counted = await withRows(connection, findings);
    return {
      requestedBy: (await this.#requester()) ?? osActor(),
      ...(commit !== undefined && { commit }),
      warnings: added.flatMap(({ tag }) => lintLines(counted, tag).map((line) => `${tag}: ${line}`)),
    };
  }

  async ask(plan: PlanDescription, { waitMs = 0, askAgain = false, signal, onWaiting }: AskOptions): Promise<string> {
    if (isOversized(plan as unknown as Json)) throw tooLarge();
    const { service } = await openApprovals(this.#runtime);
    const gate = await this.#gate(
      compiledTool(() => undefined),
      reasonOf(plan),
    );
    const deadline = performance.now() + waitMs;
    for (let attempt = 0; ; ) {
      const toolCallId = attempt === 0 ? plan.plan : `${plan.plan}.${attempt}`;
      const row = await this.#find(toolCallId);
      if (row && isApproved(row, await service.clock.now())) {
        assertSamePlan(row, plan);
        return row.record.requestId;
      }
      if (row && row.record.status !== 'waiting') {
        const next = await this.#find(`${plan.plan}.${attempt + 1}`);
        if (isRejectedByPeople(row) && !next && !askAgain) throw rejected(row);
        attempt += 1;
        continue;
      }
      const requester = await this.#requester();
      const outcome = await gate.request(
        compiledTool(() => undefined),
        {
          tool: MIGRATION_TOOL,
          executionId: this.#executionId,
          toolCallId,
          parameters: row?.record.body.parameters ?? plan,
          ...(requester !== undefined && { requester }),
        },
        {
          waitMs: Math.max(0, deadline - performance.now()),
          ...(signal && { signal }),
          onRequested: ({ requestId, timeout: expiresAt }) => waitMs > 0 && onWaiting?.({ requestId, expiresAt }),
        },
      );
      if (outcome?.status === 'waiting') throw pending(plan, outcome.requestId ?? '', outcome.expiresAt ?? '');
      if (outcome?.status !== 'decided') throw new Error(`The request of a plan is ${outcome?.status}.`);
    }
  }

  async requestedKeep(tags: readonly string[]): Promise<number | undefined> {
    const { service } = await openApprovals(this.#runtime);
    const now = await service.clock.now();
    const { env } = this.#runtime;
    let waiting: number | undefined;
    const rows = allRows(service.rows, 'byExecution', {
      equals: { executionId: this.#executionId },
      // The timeout limits the time to decide, and then the time to run.
      ...idRange('apr', new Date(now - 2 * this.#timeoutMs)),
      direction: 'desc',
      limit: 100,
    });
    for await (const row of rows) {
      const { status, body } = row.record;
      const { environment, action, migrations, keepHours } = body.parameters as unknown as PlanDescription;
      const asked = migrations.slice(-tags.length).map(({ tag }) => tag);
      const isSame = environment === env && action === 'migrate' && canonicalJson(asked) === canonicalJson(tags);
      if (keepHours === undefined || !isSame) continue;
      if (isApproved(row, now)) return keepHours * HOUR_MS;
      if (status === 'waiting' && !service.isDue(row.record)) waiting ??= keepHours * HOUR_MS;
    }
    return waiting;
  }

  async use<T>(approval: RunApproval, work: () => Promise<T>, isContinued: boolean): Promise<T> {
    const { service } = await openApprovals(this.#runtime);
    const { requestId } = approval;
    const row = await service.read(requestId);
    const { parameters, toolCallId } = row?.record.body ?? {};
    if (!row || parameters?.plan !== approval.approved) throw notApproved('Its request is gone or was changed.');
    let ended: { readonly result: T } | { readonly error: unknown } | undefined;
    const tool = compiledTool(async () => {
      try {
        ended = { result: await work() };
        return { ran: true };
      } catch (error) {
        ended = { error };
        throw error;
      }
    });
    const gate = await this.#gate(tool);
    const { executionId } = row.record;
    const call = { tool: MIGRATION_TOOL, executionId, toolCallId, requestId, parameters };
    const outcome = await gate.callOrLeave(call, UNDER_LOCK, tool);
    if (ended && 'error' in ended) throw ended.error;
    if (ended) return ended.result;
    // An earlier attempt failed or was interrupted: what is left of its plan is still approved.
    if (isContinued) return work();
    throw notApproved(`Its request is ${outcome.status}.`);
  }

  async store(): Promise<string> {
    const { config, env } = this.#runtime;
    const { service } = await openApprovals(this.#runtime);
    return service.personTokens.keepApprovers(planApprovers(config, env) ?? [], ownToken());
  }

  close(): Promise<void> {
    return closeApprovals(this.#runtime);
  }

  async #gate(tool: Tool, reason?: string): Promise<ApprovalGate> {
    const { service } = await openApprovals(this.#runtime);
    const humanInLoop = compileHumanInLoop({ enabled: true, approvalTimeout: this.#timeoutMs }, [], [], []);
    const routes = await routesFor(this.#runtime, humanInLoop);
    return new ApprovalGate(service, {
      agentTag: MIGRATION_AGENT,
      tools: new Map([[tool.tag, tool]]),
      humanInLoop,
      routes,
      ...(reason !== undefined && { reason }),
    });
  }

  async #find(toolCallId: string): Promise<RequestRow | undefined> {
    const { service } = await openApprovals(this.#runtime);
    const found = await service.calls.get(callKey(this.#executionId, toolCallId));
    return found && service.getExpiringIfDue(found.record.requestId);
  }

  /** The owner of SVC_TOKEN: nobody approves what they asked for. */
  async #requester(): Promise<string | undefined> {
    const token = ownToken();
    if (token === undefined) return undefined;
    const { service } = await openApprovals(this.#runtime);
    return (await service.personTokens.verify(token)).id;
  }
}

function compiledTool(handler: () => unknown): Tool {
  const problems: never[] = [];
  const [tool] = compileTools([{ ...TOOL, handler }], [], problems).values();
  if (!tool) throw new Error('The tool of a plan is not valid.');
  return tool;
}

/** Approved as it is, and not yet used up. A call that was interrupted may be made again. */
function isApproved({ record }: RequestRow, now: number): boolean {
  const { status, body } = record;
  const isUsed = body.outcome !== undefined || body.run === 'done' || hasLapsed(record, now);
  return status === 'approved' && body.decision?.modifiedParams === undefined && !isUsed;
}

const isRejectedByPeople = ({ record: { status, body } }: RequestRow): boolean =>
  status === 'rejected' && body.decision?.cause !== 'timeout';

/** Fails closed: the digest names the plan, and what people have read must be that plan too. */
function assertSamePlan({ record: { body } }: RequestRow, plan: PlanDescription): void {
  const shown = body.parameters as unknown as PlanDescription;
  const isSame =
    shown.plan === plan.plan &&
    shown.environment === plan.environment &&
    shown.database === plan.database &&
    shown.action === plan.action &&
    canonicalJson(shown.migrations as unknown as Json) === canonicalJson(plan.migrations as unknown as Json);
  if (!isSame) throw notApproved('What was approved differs from the plan.');
}

async function currentCommit(cwd: string): Promise<string | undefined> {
  try {
    return (await promisify(execFile)('git', ['rev-parse', '--short=12', 'HEAD'], { cwd })).stdout.trim();
  } catch {
    // No repository, no commit, or no git.
    return undefined;
  }
}

/** `migrate main (prd): DROP TABLE "orders" (orders has 30 rows), and 2 more` */
function reasonOf({ database, environment, action, losses: [loss, ...others] }: PlanDescription): string {
  const what = `${action} ${database} (${environment})`;
  if (loss === undefined) return what;
  const withoutTag = loss.replace(/^\S+: /, '');
  return `${what}: ${shorten(withoutTag, 300).text}${others.length === 0 ? '' : `, and ${others.length} more`}`;
}

function pending({ database, environment, losses }: PlanDescription, requestId: string, expiresAt: string): SvcError {
  return new SvcError(
    'approval_pending',
    `The plan for ${database} (${environment}) waits for approval: ${requestId}`,
    {
      ...(losses.length > 0 && { why: losses.slice(0, 3).join('; ') }),
      state: `Nothing was changed. The request is open until ${expiresAt}.`,
      next: [
        `svc approvals show ${requestId}    for those who decide`,
        'Run the command again once it is approved, or wait for the decision: --wait 30m',
      ],
      details: { requestId, expiresAt },
    },
  );
}

function rejected({ record: { requestId, body } }: RequestRow): SvcError {
  const { by = '', reason } = body.decision ?? {};
  return new SvcError('approval_rejected', `The plan was rejected by ${by}: ${requestId}`, {
    ...(reason !== undefined && { why: reason }),
    state: 'Nothing was changed.',
    next: ['Change the migration. Or ask again, for the same plan: --ask-again'],
    details: { requestId },
  });
}

function notApproved(why: string): SvcError {
  return new SvcError('approval_stale', 'The plan is not approved.', {
    why,
    state: 'Nothing was changed.',
    next: ['Run the command again: it requests approval.'],
  });
}

function tooLarge(): SvcError {
  return new SvcError('migration_too_large', 'The plan is too large for a request of approval.', {
    why: 'Those who decide read every statement, and a request has at most 256 KiB.',
    state: 'Nothing was changed.',
    next: ['Run it in parts: svc db migrate --to <tag>'],
  });
}

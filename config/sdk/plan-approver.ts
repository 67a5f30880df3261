import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ApprovalGate } from '../../core/approval/gate.ts';
import type { RequestRow } from '../../core/approval/service.ts';
import type { Connection } from '../../core/dialect.ts';
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
  type PlanRequest,
  type RequestContext,
  type RunApproval,
  type WaitingRequest,
} from '../../core/migration/plan-approver.ts';
import { HOUR_MS } from '../../core/migration/preview-statements.ts';
import { callKey, isOversized } from '../../core/tool/call-digest.ts';
import { compileHumanInLoop, type HumanInLoop } from '../../core/tool/human-in-loop.ts';
import { compileTools, type Tool } from '../../core/tool/tool.ts';
import { lintLines, lintMigrations, withRows } from '../load/lint.ts';
import { ownToken } from '../load/own-token.ts';
import { planApprovalSettings, planApprovers } from '../load/plan-approval.ts';
import type { Runtime } from '../load/runtime.ts';
import { closeApprovals, openApprovals } from './approval-runtime.ts';
import { inboxUrl } from './callback/inbox/inbox-url.ts';
import { routesFor } from './delivery-routes.ts';
import { notApproved, pending, rejected, replacedBy, tooLarge, withdrawn } from './plan-errors.ts';
import { hasRun, isApproved, PlanRequests, planOf } from './plan-requests.ts';

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
      history: text,
    },
    required: [
      'environment',
      'database',
      'action',
      'losses',
      'warnings',
      'migrations',
      'requestedBy',
      'plan',
      'history',
    ],
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
  readonly #humanInLoop: HumanInLoop;

  constructor(runtime: Runtime, database: string) {
    const approval = runtime.config.environments?.[runtime.env]?.approval;
    if (!approval) throw new Error(`The environment ${runtime.env} has no approval.`);
    const { when, timeoutMs } = planApprovalSettings(approval);
    this.when = when;
    this.#runtime = runtime;
    this.#database = database;
    this.#executionId = `migrations of ${database}`;
    this.#timeoutMs = timeoutMs;
    this.#humanInLoop = compileHumanInLoop({ enabled: true, approvalTimeout: timeoutMs }, [], [], []);
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

  async ask(
    { plan, reason, readHistory }: PlanRequest,
    { waitMs = 0, askAgain = false, asRunner = false, signal, onWaiting }: AskOptions,
  ): Promise<string> {
    if (isOversized(plan as unknown as Json)) throw tooLarge();
    const { service } = await openApprovals(this.#runtime);
    const [gate, requests] = await Promise.all([this.#gate(notRun(), reason), this.#requests()]);
    const deadline = performance.now() + waitMs;
    let waitedFor: string | undefined;
    for (let attempt = 0; ; ) {
      const toolCallId = attempt === 0 ? plan.plan : `${plan.plan}.${attempt}`;
      const row = await this.#find(toolCallId);
      if (row && isApproved(row, await service.clock.now())) {
        assertSamePlan(row, plan);
        return row.record.requestId;
      }
      // Another run has used it since this plan was made. Under the lock, it is made again, and nothing of it is left.
      if (row && hasRun(row) && (await readHistory()) !== plan.history) return row.record.requestId;
      if (row && row.record.status !== 'waiting') {
        const next = await this.#find(`${plan.plan}.${attempt + 1}`);
        if (isRejectedByPeople(row) && !next && !askAgain) throw rejected(row);
        if (row.record.requestId === waitedFor && row.record.status !== 'rejected') throw withdrawn(row);
        const newer = asRunner && row.record.status === 'cancelled' && (await requests.openInPlaceOf(plan));
        if (newer) throw replacedBy(newer);
        attempt += 1;
        continue;
      }
      const requester = await this.#requester();
      const endings: Promise<void>[] = [];
      const outcome = await gate.request(
        notRun(),
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
          onRequested: (request) => {
            if (waitMs > 0) onWaiting?.(this.#waiting(request.requestId, request.timeout));
            endings.push(requests.endReplacedBy(plan, request, readHistory));
            return endings[0];
          },
        },
      );
      // A failure was reported: the request is valid all the same.
      await Promise.allSettled(endings);
      waitedFor = outcome?.requestId;
      if (outcome?.status === 'waiting') {
        const { requestId = '', expiresAt = '' } = outcome;
        // It may have been out of date.
        if ((await service.read(requestId))?.record.status !== 'cancelled')
          throw pending(plan, this.#waiting(requestId, expiresAt));
      } else if (outcome?.status !== 'decided') throw new Error(`The request of a plan is ${outcome?.status}.`);
    }
  }

  async withdraw(requestId: string, reason: string): Promise<void> {
    const requests = await this.#requests();
    await requests.end(requestId, reason);
  }

  async withdrawStale(readHistory: PlanRequest['readHistory']): Promise<void> {
    const { service } = await openApprovals(this.#runtime);
    const requests = await this.#requests();
    // The plan has run.
    await service.runListener('The search for plans that are out of date', () => requests.endStale(readHistory));
  }

  async requestedKeep(tags: readonly string[]): Promise<number | undefined> {
    const { service } = await openApprovals(this.#runtime);
    const now = await service.clock.now();
    const requests = await this.#requests();
    let waiting: number | undefined;
    for await (const row of requests.list()) {
      const { action, migrations, keepHours } = planOf(row);
      const asked = migrations.slice(-tags.length).map(({ tag }) => tag);
      const isSame = action === 'migrate' && canonicalJson(asked) === canonicalJson(tags);
      if (keepHours === undefined || !isSame) continue;
      if (isApproved(row, now)) return keepHours * HOUR_MS;
      if (row.record.status === 'waiting' && !service.isDue(row.record)) waiting ??= keepHours * HOUR_MS;
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

  #waiting(requestId: string, expiresAt: string): WaitingRequest {
    const inbox = inboxUrl(this.#runtime.config);
    return { requestId, expiresAt, ...(inbox !== undefined && { url: `${inbox}/${requestId}` }) };
  }

  async #gate(tool: Tool, reason?: string): Promise<ApprovalGate> {
    const { service } = await openApprovals(this.#runtime);
    return new ApprovalGate(service, {
      agentTag: MIGRATION_AGENT,
      tools: new Map([[tool.tag, tool]]),
      humanInLoop: this.#humanInLoop,
      routes: await routesFor(this.#runtime, this.#humanInLoop),
      ...(reason !== undefined && { reason }),
    });
  }

  async #requests(): Promise<PlanRequests> {
    const { service } = await openApprovals(this.#runtime);
    return new PlanRequests(service, {
      executionId: this.#executionId,
      env: this.#runtime.env,
      timeoutMs: this.#timeoutMs,
      routes: await routesFor(this.#runtime, this.#humanInLoop),
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

/** The tool of a request. */
const notRun = (): Tool => compiledTool(() => undefined);

function compiledTool(handler: () => unknown): Tool {
  const problems: never[] = [];
  const [tool] = compileTools([{ ...TOOL, handler }], [], problems).values();
  if (!tool) throw new Error('The tool of a plan is not valid.');
  return tool;
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

/** `3f2a91c04d17`, and whether it has what is requested. */
async function currentCommit(cwd: string): Promise<string | undefined> {
  const git = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)('git', ['--no-optional-locks', ...args], { cwd })).stdout.trim();
  try {
    const [commit, changes] = await Promise.all([
      git('rev-parse', '--short=12', 'HEAD'),
      git('status', '--porcelain', '--', 'svc/database'),
    ]);
    return changes === '' ? commit : `${commit}, with changes that are not committed`;
  } catch {
    // No repository, no commit, or no git.
    return undefined;
  }
}

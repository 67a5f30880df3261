import { announceDecision, type DeliveryRoute } from '../../core/approval/announce.ts';
import { PROCESS_NAME } from '../../core/approval/call.ts';
import { type ApprovalRequest, idRange } from '../../core/approval/request.ts';
import type { ApprovalService, RequestRow } from '../../core/approval/service.ts';
import { hasLapsed, isUndone } from '../../core/approval/state.ts';
import type { PlanDescription, PlanRequest } from '../../core/migration/plan-approver.ts';
import { isOfSameKind, isPartOf, requestedPlan } from '../../core/migration/requested-plan.ts';
import { allRows } from '../../core/records.ts';

/** What is stored of a request for a plan. */
export const planOf = ({ record }: RequestRow): PlanDescription => record.body.parameters as unknown as PlanDescription;

/** Approved as it is, and not yet used up. A call that was interrupted may be made again. */
export function isApproved({ record }: RequestRow, now: number): boolean {
  const { status, body } = record;
  const isUsed = body.outcome !== undefined || body.run === 'done' || hasLapsed(record, now);
  return status === 'approved' && body.decision?.modifiedParams === undefined && !isUsed;
}

/** Approved, and what was approved has run. */
export const hasRun = ({ record: { status, body } }: RequestRow): boolean =>
  status === 'approved' && body.run === 'done';

const CHANGED_HISTORY = 'The plan can no longer run: the history of the database has changed.';

/** The requests for the plans of one database in one environment. */
export class PlanRequests {
  readonly #service: ApprovalService;
  readonly #executionId: string;
  readonly #env: string;
  readonly #timeoutMs: number;
  readonly #routes: readonly DeliveryRoute[];

  constructor(
    service: ApprovalService,
    {
      executionId,
      env,
      timeoutMs,
      routes,
    }: {
      readonly executionId: string;
      readonly env: string;
      readonly timeoutMs: number;
      readonly routes: readonly DeliveryRoute[];
    },
  ) {
    this.#service = service;
    this.#executionId = executionId;
    this.#env = env;
    this.#timeoutMs = timeoutMs;
    this.#routes = routes;
  }

  /** Those that may still be decided or run, and some that have ended, the newest first. */
  async *list(): AsyncGenerator<RequestRow> {
    const service = this.#service;
    const rows = allRows(service.rows, 'byExecution', {
      equals: { executionId: this.#executionId },
      // The timeout limits the time to decide, and then the time to run.
      ...idRange('apr', new Date((await service.clock.now()) - 2 * this.#timeoutMs)),
      direction: 'desc',
      limit: 100,
    });
    for await (const row of rows) {
      const { agentTag, body } = row.record;
      if (requestedPlan({ ...body, agentTag }) && planOf(row).environment === this.#env) yield row;
    }
  }

  /** Another plan of the kind of this one, that waits or is approved and has not run. */
  async openInPlaceOf(plan: PlanDescription): Promise<RequestRow | undefined> {
    const open = await this.#open();
    return open.find((row) => planOf(row).plan !== plan.plan && isOfSameKind(planOf(row), plan));
  }

  /** Ends the others that cannot be used once there is this one, or this one if it is out of date itself. */
  async endReplacedBy(
    plan: PlanDescription,
    request: Pick<ApprovalRequest, 'requestId' | 'timestamp'>,
    readHistory: PlanRequest['readHistory'],
  ): Promise<void> {
    const open = await this.#open();
    const others = open.filter(({ record }) => record.requestId !== request.requestId);
    if (others.length === 0) return;
    // Read after the requests: one that was made with another history was made before this one became true.
    const history = await readHistory();
    if (history !== plan.history) {
      for (const row of open) if (!others.includes(row)) await this.#end(row, CHANGED_HISTORY, 'approval_stale');
      return;
    }
    for (const row of others) {
      const isReplaced = isOfSameKind(planOf(row), plan) && isOlder(row, request);
      const reason = isReplaced ? `Replaced by ${request.requestId}: the plan has changed.` : CHANGED_HISTORY;
      if (planOf(row).history !== history) await this.#end(row, reason, 'approval_stale');
      else if (isReplaced) await this.#end(row, reason, mayStillRun(planOf(row), plan) ? 'leave' : 'approval_stale');
    }
  }

  /** Ends those that were made with another history. */
  async endStale(readHistory: PlanRequest['readHistory']): Promise<void> {
    const open = await this.#open();
    if (open.length === 0) return;
    const history = await readHistory();
    for (const row of open) {
      if (planOf(row).history !== history) await this.#end(row, CHANGED_HISTORY, 'approval_stale');
    }
  }

  async end(requestId: string, reason: string): Promise<void> {
    const row = await this.#service.read(requestId);
    if (row) await this.#end(row, reason, 'approval_stale');
  }

  async #end(row: RequestRow, reason: string, whenApproved: 'approval_stale' | 'leave'): Promise<void> {
    const service = this.#service;
    const ended = await service.cancel(row, reason, PROCESS_NAME, whenApproved);
    if (ended)
      void service.report('The announcement', (signal) => announceDecision(service, ended, this.#routes, signal));
  }

  async #open(): Promise<readonly RequestRow[]> {
    const service = this.#service;
    const now = await service.clock.now();
    const open: RequestRow[] = [];
    for await (const row of this.list()) {
      const { record } = row;
      if (isUndone(record) && !service.isDue(record) && !hasLapsed(record, now)) open.push(row);
    }
    return open;
  }
}

/** Whether an approved plan is another choice than this one, not its earlier state: a part of it with --to, or another --keep. */
const mayStillRun = (approved: PlanDescription, plan: PlanDescription): boolean =>
  isPartOf(approved, plan) || approved.keepHours !== plan.keepHours;

/** By the clock of the store. */
function isOlder({ record }: RequestRow, than: Pick<ApprovalRequest, 'requestId' | 'timestamp'>): boolean {
  const { timestamp } = record.body;
  return timestamp === than.timestamp ? record.requestId < than.requestId : timestamp < than.timestamp;
}

import { runningIn } from '../core/agent/prune.ts';
import { type AuditEntry, auditTrail, type DeliveryAttempt, deliveriesOf, prune } from '../core/approval/audit.ts';
import type { ApprovalDesk } from '../core/approval/desk.ts';
import { isOutage } from '../core/approval/home.ts';
import { type ApprovalPage, type ListQuery, list } from '../core/approval/list.ts';
import type { ApprovalRecord } from '../core/approval/request.ts';
import { decide, type Signal, type SignalAnswer, type SignalOptions } from '../core/approval/signal.ts';
import { recordOf } from '../core/approval/view.ts';
import { SvcError } from '../core/errors.ts';
import type { Json } from '../core/json.ts';
import { loadApprovals } from './approval-runtime.ts';
import { takeDecisions } from './broker-decisions.ts';
import { refusalTo } from './callback/handler.ts';
import { openCallback } from './callback/open.ts';
import type { Runtime } from './runtime.ts';

/** @experimental */
export interface ShownRecord extends ApprovalRecord {
  /** Who hands this on with a decision has seen the sensitive parameters. */
  readonly shown?: string;
  /** What the tool was defined as when it was called. */
  readonly definition?: { readonly description: string; readonly schema: Json };
  /** Every attempt to tell somebody, the oldest first. */
  readonly deliveries: readonly DeliveryAttempt[];
}

/** Requests of every agent in the store, whichever process made them. @experimental */
export class Approvals {
  readonly #runtime: () => Promise<Runtime>;

  constructor(runtime: () => Promise<Runtime>) {
    this.#runtime = runtime;
  }

  /** A page, the oldest first; without a query those that wait. Sensitive parameters are masked. */
  async list(query: ListQuery = {}): Promise<ApprovalPage> {
    return list(await this.#desk(), query);
  }

  /** `reveal` shows sensitive parameters, to somebody who is to decide. Throws `approval_unknown`. */
  async get(requestId: string, { reveal = false }: { readonly reveal?: boolean } = {}): Promise<ShownRecord> {
    const desk = await this.#desk();
    const row = await desk.meet(requestId);
    if (!row) {
      throw new SvcError('approval_unknown', 'No request has that id.', { details: { requestId } });
    }
    const { toolDigest, digest } = row.record.body;
    const definition = await desk.definition(toolDigest);
    const deliveries: DeliveryAttempt[] = [];
    for await (const delivery of deliveriesOf(desk, requestId)) deliveries.push(delivery);
    return {
      ...recordOf(row.record, reveal),
      ...(definition && { definition }),
      deliveries,
      ...(reveal && { shown: digest }),
    };
  }

  /** Decides a request; `svc.agents.signal` is the same. */
  async signal(signal: Signal, options: SignalOptions = {}): Promise<SignalAnswer> {
    return decide(await this.#desk(), signal, options);
  }

  /** Every event and every delivery, one by one: `JSON.stringify` of each is a line of the audit. */
  async *export(range: { readonly since?: Date; readonly before?: Date } = {}): AsyncGenerator<AuditEntry> {
    yield* auditTrail(await this.#desk(), range);
  }

  /** Removes requests that were made that long ago and are over, but for those of executions under way. Gives how many. */
  async prune(options: { readonly olderThanMs: number }): Promise<number> {
    const desk = await this.#desk();
    return prune(desk, options, runningIn(desk.home));
  }

  /** Answers the callback of SPEC 4.1: a web-standard handler, to be mounted wherever `approvals.callbackBase` leads. */
  handler(): (request: Request) => Promise<Response> {
    let opened: Promise<(request: Request) => Promise<Response>> | undefined;
    return async (request) => {
      opened ??= this.#runtime().then(openCallback);
      const opening = opened;
      opening.catch(() => {
        if (opened === opening) opened = undefined;
      });
      let answer: (request: Request) => Promise<Response>;
      try {
        answer = await opening;
      } catch (error) {
        // A mistake in the configuration is the program's, and is told to it.
        if (isOutage(error)) return refusalTo(request, error);
        throw error;
      }
      return answer(request);
    };
  }

  /** Takes decisions from the broker of `approvals.decisions`, until what it gives is called. Undefined where none is named. */
  async takeDecisions(): Promise<(() => Promise<void>) | undefined> {
    return takeDecisions(await this.#runtime());
  }

  async #desk(): Promise<ApprovalDesk> {
    return (await loadApprovals(await this.#runtime())).desk;
  }
}

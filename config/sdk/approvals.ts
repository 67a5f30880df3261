import { isRunningIn } from '../../core/agent/execution-record.ts';
import {
  type AuditCheck,
  type AuditEntry,
  auditTrail,
  pruneApprovals,
  verifyAudit,
} from '../../core/approval/audit.ts';
import { isOutage } from '../../core/approval/backend.ts';
import {
  decide,
  type Signal,
  type SignalInput,
  type SignalOptions,
  type SignalResult,
} from '../../core/approval/decide.ts';
import { type ApprovalPage, type ListQuery, listApprovals } from '../../core/approval/list-approvals.ts';
import type { RevealOptions } from '../../core/approval/reveal.ts';
import type { AuditProof } from '../../core/approval/seal/proof.ts';
import { proveRequest } from '../../core/approval/seal/prove.ts';
import type { SealReport } from '../../core/approval/seal/sealer.ts';
import type { ApprovalService } from '../../core/approval/service.ts';
import {
  createStandingRule,
  listStandingRules,
  type NewStandingRule,
  revokeStandingRule,
  type StandingRule,
} from '../../core/approval/standing-rules.ts';
import { SvcError } from '../../core/errors.ts';
import type { Runtime } from '../load/runtime.ts';
import { type ApprovalDetails, approvalDetails, unknownRequestError } from './approval-details.ts';
import { openApprovals } from './approval-runtime.ts';
import { consumeDecisions } from './broker-decisions.ts';
import { assertInbox } from './callback/inbox/inbox-url.ts';
import type { CallbackOptions } from './callback/options.ts';
import { onceSuccessful } from './once-successful.ts';
import { openSealer, type SealOptions, sealPublicKeys, sealSource, sealsForRemoval } from './seals.ts';

/** The requests of all agents in the store, whichever process created them. @experimental */
export class Approvals {
  readonly #runtime: () => Promise<Runtime>;
  readonly #sealer = onceSuccessful(async () => openSealer(await this.#runtime()));

  constructor(runtime: () => Promise<Runtime>) {
    this.#runtime = runtime;
  }

  /** Returns a page, oldest first; without a query, the requests that wait. Sensitive parameters are masked. */
  async list(query: ListQuery = {}): Promise<ApprovalPage> {
    return listApprovals(await this.#service(), query);
  }

  /**
   * Returns a request. `reveal` includes sensitive parameters, for a reviewer, and adds an event that names them: `actor`,
   * `principal` or `token`, as for a decision. Throws `approval_unknown` and `token_invalid`.
   */
  async get(requestId: string, options: { readonly reveal?: boolean } & RevealOptions = {}): Promise<ApprovalDetails> {
    return approvalDetails(await this.#service(), requestId, options);
  }

  /** Decides a request, as `svc.agents.signal` does. */
  async signal<Name extends string>(signal: SignalInput<Name>, options: SignalOptions = {}): Promise<SignalResult> {
    return decide(await this.#service(), signal as Signal, options);
  }

  /**
   * Lets later calls like one that was approved run without a decision of their own, if its rule has `standing` and the
   * person is of that role. Throws `value_invalid`, `token_invalid`, `approval_unknown`, `decision_invalid` and
   * `decision_refused`.
   */
  async allow(standing: NewStandingRule, options: Pick<SignalOptions, 'token' | 'principal'>): Promise<StandingRule> {
    return createStandingRule(await this.#service(), standing, options);
  }

  /** Yields every standing rule with how often it was used, those that have ended too. */
  async *standingRules(): AsyncGenerator<StandingRule> {
    yield* listStandingRules(await this.#service());
  }

  /** Ends a standing rule. Calls that it has approved are unchanged. Throws `standing_unknown`. */
  async revokeStandingRule(standingId: string): Promise<StandingRule> {
    return revokeStandingRule(await this.#service(), standingId);
  }

  /** Yields every event and delivery of the audit; `JSON.stringify` each for a JSON Lines file. */
  async *export(range: { readonly since?: Date; readonly before?: Date } = {}): AsyncGenerator<AuditEntry> {
    yield* auditTrail(await this.#service(), range);
  }

  /**
   * Checks that the stored events of every request fit together and match it, as each has the hash of the one before it,
   * and that they are those that were sealed, if `approvals.seals` is set or an option names seals or keys. Without seals,
   * it does not find changes after which all hashes were computed again. Throws `config_invalid` without a public key.
   */
  async verify({
    since,
    before,
    ...options
  }: { readonly since?: Date; readonly before?: Date } & SealOptions = {}): Promise<AuditCheck> {
    const source = await sealSource(await this.#runtime(), options);
    const range = { ...(since && { since }), ...(before && { before }) };
    return verifyAudit(await this.#service(), range, source);
  }

  /**
   * Signs what is new in the audit, and gives it to the sinks of `approvals.seals`. `all` looks at every request, and not
   * only at those that may have new events. Throws `config_invalid`, `audit_broken` and `seal_undelivered`.
   */
  async seal(options: { readonly all?: boolean } = {}): Promise<SealReport> {
    return (await this.#sealer()).seal(options);
  }

  /**
   * Proves what was requested and what happened, to everyone with the public key of the seals. Throws `approval_unknown`, and
   * `seal_missing` for a request that no seal covers yet.
   */
  async prove(requestId: string): Promise<AuditProof> {
    const service = await this.#service();
    const row = await service.read(requestId);
    if (!row) throw unknownRequestError(requestId);
    const proof = await proveRequest(service, row.record, sealPublicKeys(await this.#runtime(), []));
    if (proof) return proof;
    throw new SvcError('seal_missing', 'No seal covers the request yet.', {
      next: ['svc approvals seal    seals what is new'],
      details: { requestId },
    });
  }

  /**
   * Removes decided requests older than `olderThanMs`, except those of running executions. Returns the count. Throws
   * `seals_needed` for a store that is sealed, without `approvals.seals`, and `audit_broken` if some were kept because they
   * are not what was sealed.
   */
  async prune(options: { readonly olderThanMs: number }): Promise<number> {
    const service = await this.#service();
    const seals = await sealsForRemoval(await this.#runtime());
    return pruneApprovals(service, options, isRunningIn(service.backend), seals);
  }

  /**
   * Returns a web-standard handler for the approval callback, and the pressed buttons of channels with `presses`; serve it
   * where `approvals.callbackBase` points. With `approvals.server` it also serves the HTTP API and the inbox. Throws
   * `config_invalid` for a channel that cannot be opened.
   */
  handler(options: CallbackOptions = {}): (request: Request) => Promise<Response> {
    return this.#served(options);
  }

  /**
   * Returns the handler of `handler`, for a program that serves the inbox: it throws `config_invalid` without
   * `approvals.server` or `approvals.callbackBase`.
   */
  inbox(options: CallbackOptions = {}): (request: Request) => Promise<Response> {
    return this.#served(options, ({ config }) => assertInbox(config));
  }

  #served(options: CallbackOptions, check?: (runtime: Runtime) => void): (request: Request) => Promise<Response> {
    // Most programs that use this package serve no pages.
    const load = () => import('./callback/handler.ts');
    const open = onceSuccessful(async () => {
      const runtime = await this.#runtime();
      check?.(runtime);
      return (await load()).openCallback(runtime, options);
    });
    return async (request) => {
      let respond: (request: Request) => Promise<Response>;
      try {
        respond = await open();
      } catch (error) {
        // An outage is a 503 for the HTTP client; a configuration error is thrown to the program.
        if (isOutage(error)) return (await load()).errorResponse(request, error);
        throw error;
      }
      return respond(request);
    };
  }

  /** Consumes decisions from the broker of `approvals.decisions`. Returns a stop function; undefined without such a broker. */
  async consumeDecisions(): Promise<(() => Promise<void>) | undefined> {
    return consumeDecisions(await this.#runtime());
  }

  async #service(): Promise<ApprovalService> {
    return (await openApprovals(await this.#runtime())).service;
  }
}

/**
 * The approval callback as a web-standard handler, for Hono, Next, Express or Node's own server.
 * @example app.all('/svc/*', (c) => approvalHandler(svc)(c.req.raw))
 * @experimental
 */
export function approvalHandler(
  svc: { readonly approvals: Approvals },
  options: CallbackOptions = {},
): (request: Request) => Promise<Response> {
  return svc.approvals.handler(options);
}

import { executionRecords } from '../../../core/agent/execution-record.ts';
import { summarizeExecution } from '../../../core/agent/read-executions.ts';
import { type AuditEntry, auditEntries } from '../../../core/approval/audit.ts';
import { isCallId } from '../../../core/approval/call.ts';
import { decide } from '../../../core/approval/decide.ts';
import { countWaiting, listApprovals } from '../../../core/approval/list-approvals.ts';
import { isRequestId } from '../../../core/approval/request.ts';
import type { ApprovalService } from '../../../core/approval/service.ts';
import { approvalDetails } from '../approval-details.ts';
import type { ApprovalWatcher } from '../approval-watcher.ts';
import { bearerOf } from '../people-source.ts';
import type { Caller, Callers } from './api/authenticate.ts';
import { delegate, endDelegation, ownDelegations } from './api/delegations.ts';
import type { EventStreams } from './api/event-streams.ts';
import { openApi } from './api/openapi.ts';
import { listQuery } from './api/query.ts';
import { allow, allStandingRules, endStandingRule } from './api/standing-rules.ts';
import { assertEmpty, assertJson, readDecisionBody, reviewedDecision, signalFor } from './decision-body.ts';
import { NOT_FOUND, notAllowed, refuseQuery, UNAUTHORIZED, UNKNOWN_EXECUTION } from './http-errors.ts';
import { type HttpError, jsonResponse } from './response.ts';

/*
 * For the people of the role of `approvals.server`, with a token that proves who they are: the routes of
 * docs/reference/http-api.md, all below {callbackBase}/api/v1.
 */

const PATH =
  /\/api\/v1\/(?:(?<own>login|openapi\.json|me|count|events|delegations|standing-rules)|(?<executions>executions)\/(?<executionId>[^/]+)|(?<owned>delegations|standing-rules)\/(?<ownedId>[^/]+)\/revoke|approvals(?:\/(?<requestId>[^/]+)(?:\/(?<action>audit|reveal|decision))?)?)\/?$/;

const METHODS: Readonly<Record<string, readonly ('GET' | 'POST')[]>> = {
  reveal: ['POST'],
  decision: ['POST'],
  delegations: ['GET', 'POST'],
  'standing-rules': ['GET', 'POST'],
  'delegations/revoke': ['POST'],
  'standing-rules/revoke': ['POST'],
};

/** Where a decision or a reading comes from, for the record. */
const FROM = 'approvals server';

export interface PeopleApi {
  /** Who may list and decide all requests: the members of the role of `approvals.server`. */
  readonly members: readonly string[];
  /** Where those people sign in for a token. */
  readonly login?: object | undefined;
  readonly watcher: ApprovalWatcher;
}

interface ServedStore extends Pick<PeopleApi, 'login'> {
  readonly approvals: ApprovalService;
  readonly product: string;
  readonly env: string;
  readonly callers: Callers;
  readonly streams: EventStreams;
}

/** A call with a valid token. */
interface Call extends Caller {
  readonly request: Request;
  readonly token: string;
  /** Of a request, an execution, a delegation or a standing rule; empty without one. */
  readonly id: string;
  readonly query: URLSearchParams;
}

type Answer = (call: Call) => Promise<Response>;

const API = /\/api\/v1(?:\/|$)/;
const UNKNOWN_ROUTE: HttpError = {
  status: 404,
  error: 'route_unknown',
  message: 'The API has no such route. GET /api/v1/openapi.json lists them.',
};
const NO_API: HttpError = {
  status: 404,
  error: 'route_unknown',
  message: 'There is no API here: approvals.server is not in the configuration of this server.',
};

/** Whether the URL is below that of the API. */
export const isApiUrl = ({ url }: Request): boolean => API.test(new URL(url).pathname);

/** Answers what no route matches. */
export const unknownRoute = (hasApi: boolean) => async (): Promise<never> => {
  throw hasApi ? UNKNOWN_ROUTE : NO_API;
};

/** Whether the URL is one of the API, and not that of a single request with its own token. */
export const isPeopleRoute = ({ url }: Request): boolean => PATH.test(new URL(url).pathname);

/** Answers the people of the role. Throws an `HttpError`, or what `decide` throws. */
export function peopleApi(store: ServedStore): (request: Request) => Promise<Response> {
  const { callers } = store;
  const answers = answersOf(store);
  return async (request) => {
    const url = new URL(request.url);
    const { own, executions, executionId, owned, ownedId, requestId, action } = PATH.exec(url.pathname)?.groups ?? {};
    const revoke = owned && `${owned}/revoke`;
    const name = own ?? executions ?? revoke ?? action ?? (requestId === undefined ? 'list' : 'show');
    const methods = METHODS[name] ?? ['GET'];
    if (!methods.some((one) => one === request.method)) throw notAllowed(...methods);
    if (name === 'login') return jsonResponse(200, { oidc: store.login });
    if (name === 'openapi.json') return jsonResponse(200, openApi());
    // Not the header of a proxy, nor the cookie of a page: a login alone decides nothing.
    const token = bearerOf(request.headers);
    if (token === undefined) throw UNAUTHORIZED;
    if (request.method === 'POST') assertJson(request);
    const caller = await callers.authenticate(token, request);
    if (requestId !== undefined && !isRequestId(requestId)) throw NOT_FOUND;
    const id = requestId ?? ownedId ?? idOfExecution(executionId);
    const answer = answers[name];
    if (!answer) throw NOT_FOUND;
    return answer({ ...caller, request, token, id, query: url.searchParams });
  };
}

function answersOf({ approvals, product, env, callers, streams }: ServedStore): Readonly<Record<string, Answer>> {
  return {
    async me({ principal, expiresAt, query }) {
      listQuery(query, []);
      return jsonResponse(200, { product, env, principal, ...(expiresAt && { expiresAt: expiresAt.toISOString() }) });
    },
    async count({ query }) {
      listQuery(query, []);
      return jsonResponse(200, await countWaiting(approvals));
    },
    async events({ request, principal, token, query }) {
      listQuery(query, []);
      return streams.open(request, { principal, isAllowed: () => callers.isAllowed(token) });
    },
    async list({ query }) {
      return jsonResponse(200, await listApprovals(approvals, listQuery(query)).catch(refuseQuery));
    },
    async executions({ id, query }) {
      const rows = approvals.backend.records(executionRecords);
      const own = { ...listQuery(query, ['cursor', 'limit']), executionId: id };
      const [execution, page] = await Promise.all([
        summarizeExecution(rows, id),
        listApprovals(approvals, own).catch(refuseQuery),
      ]);
      if (!execution && page.records.length === 0) throw UNKNOWN_EXECUTION;
      return jsonResponse(200, { ...(execution && { execution }), ...page });
    },
    async delegations({ request, principal, token, query }) {
      listQuery(query, []);
      if (request.method === 'GET')
        return jsonResponse(200, { delegations: await ownDelegations(approvals, principal) });
      return jsonResponse(200, await delegate(approvals, token, await readDecisionBody(request)));
    },
    async 'delegations/revoke'({ id, request, principal }) {
      assertEmpty(await readDecisionBody(request));
      return jsonResponse(200, await endDelegation(approvals, id, principal));
    },
    async 'standing-rules'({ request, token, query }) {
      listQuery(query, []);
      if (request.method === 'GET') return jsonResponse(200, { standingRules: await allStandingRules(approvals) });
      return jsonResponse(200, await allow(approvals, token, await readDecisionBody(request)));
    },
    async 'standing-rules/revoke'({ id, request, principal }) {
      assertEmpty(await readDecisionBody(request));
      return jsonResponse(200, await endStandingRule(approvals, id, principal));
    },
    async show({ id }) {
      return jsonResponse(200, { request: await approvalDetails(approvals, id) });
    },
    async audit({ id, query }) {
      listQuery(query, []);
      const row = await approvals.getExpiringIfDue(id);
      if (!row) throw NOT_FOUND;
      const entries: AuditEntry[] = [];
      for await (const entry of auditEntries(approvals, row)) entries.push(entry);
      return jsonResponse(200, { entries });
    },
    async reveal({ id, request, token }) {
      assertEmpty(await readDecisionBody(request));
      return jsonResponse(200, { request: await approvalDetails(approvals, id, { reveal: true, token, from: FROM }) });
    },
    async decision({ id, request, token }) {
      const { reviewToken, ...decision } = reviewedDecision(request, await readDecisionBody(request));
      const idempotencyKey = request.headers.get('idempotency-key') ?? undefined;
      const { override } = decision;
      const options = { token, from: FROM, override, reviewToken, idempotencyKey };
      const result = await decide(approvals, signalFor(id, decision), options);
      return jsonResponse(result.status === 'waiting' ? 202 : 200, result);
    },
  };
}

function idOfExecution(segment = ''): string {
  let id: string;
  try {
    id = decodeURIComponent(segment);
  } catch {
    throw UNKNOWN_EXECUTION;
  }
  if (segment !== '' && !isCallId(id)) throw UNKNOWN_EXECUTION;
  return id;
}

import { decide } from '../../../core/approval/decide.ts';
import { type ListQuery, listApprovals } from '../../../core/approval/list-approvals.ts';
import { isRequestId } from '../../../core/approval/request.ts';
import type { ApprovalService } from '../../../core/approval/service.ts';
import { approvalDetails } from '../approval-details.ts';
import { bearerOf } from '../people-source.ts';
import type { Access } from './access.ts';
import { assertEmpty, assertJson, readDecisionBody, reviewedDecision, signalFor } from './decision-body.ts';
import { invalidQuery, NOT_FOUND, notAllowed, refuseQuery, UNAUTHORIZED } from './http-errors.ts';
import { jsonResponse } from './response.ts';

/*
 * For the people of the role of `approvals.server`, with a token that proves who they are:
 *
 *   GET  {callbackBase}/api/v1/login                            how to sign in; without a token
 *   GET  {callbackBase}/api/v1/me                               the person, the product and the environment
 *   GET  {callbackBase}/api/v1/approvals                        a page of requests; the query is a `ListQuery`
 *   GET  {callbackBase}/api/v1/approvals/<requestId>            a request, with sensitive parameters masked
 *   POST {callbackBase}/api/v1/approvals/<requestId>/reveal     the whole request; an event says who read it
 *   POST {callbackBase}/api/v1/approvals/<requestId>/decision   decides, with a body like that of the callback
 */

const ROUTE = /\/api\/v1\/(?:(me|login)|approvals(?:\/([^/]+)(?:\/(reveal|decision))?)?)\/?$/;
interface ServedStore {
  readonly approvals: ApprovalService;
  readonly product: string;
  readonly env: string;
  /** Where people sign in for a token. */
  readonly login?: object | undefined;
}

/** Whether the URL is one of the API, and not that of a single request with its own token. */
export const isPeopleRoute = ({ url }: Request): boolean => ROUTE.test(new URL(url).pathname);

/** Answers the people whom `access` lets in. Throws an `HttpError`, or what `decide` throws. */
export function peopleApi(
  { approvals, product, env, login }: ServedStore,
  access: Access,
): (request: Request) => Promise<Response> {
  const listed = (fields: URLSearchParams) => listApprovals(approvals, listQuery(fields)).catch(refuseQuery);

  return async (request) => {
    const url = new URL(request.url);
    const [, own, requestId, action] = ROUTE.exec(url.pathname) ?? [];
    const method = action === undefined ? 'GET' : 'POST';
    if (request.method !== method) throw notAllowed(method);
    if (own === 'login') return jsonResponse(200, { oidc: login });
    // Not the header of a proxy, nor the cookie of a page: a login alone decides nothing.
    const token = bearerOf(request.headers);
    if (token === undefined) throw UNAUTHORIZED;
    if (action !== undefined) assertJson(request);
    const { principal, expiresAt } = await access(token);
    if (own === 'me') {
      return jsonResponse(200, { product, env, principal, ...(expiresAt && { expiresAt: expiresAt.toISOString() }) });
    }
    if (requestId === undefined) return jsonResponse(200, await listed(url.searchParams));
    if (!isRequestId(requestId)) throw NOT_FOUND;
    if (action === undefined) return jsonResponse(200, { request: await approvalDetails(approvals, requestId) });
    const body = await readDecisionBody(request);
    const from = 'approvals server';
    if (action === 'reveal') {
      assertEmpty(body);
      return jsonResponse(200, { request: await approvalDetails(approvals, requestId, { reveal: true, token, from }) });
    }
    const { reviewToken, ...decision } = reviewedDecision(request, body);
    const { override } = decision;
    const options = { token, from, override, ...(reviewToken !== undefined && { reviewToken }) };
    const result = await decide(approvals, signalFor(requestId, decision), options);
    return jsonResponse(result.status === 'waiting' ? 202 : 200, result);
  };
}

const ISO = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/;
const isText = (key: string): boolean => ['status', 'agentTag', 'executionId', 'cursor'].includes(key);

/** The query of a list. What is not valid is left to `listApprovals`, but for a name that is unknown or occurs twice. */
function listQuery(fields: URLSearchParams): ListQuery {
  const query: Record<string, string | number | boolean | Date> = {};
  for (const [key, value] of fields) {
    if (Object.hasOwn(query, key)) throw invalidQuery(`The query has "${key}" twice.`);
    if (isText(key)) query[key] = value;
    else if (key === 'since' || key === 'before') query[key] = ISO.test(value) ? new Date(value) : value;
    else if (key === 'limit') query[key] = /^\d+$/.test(value) ? Number(value) : value;
    else if (key === 'newestFirst') query[key] = value === 'true' || (value !== 'false' && value);
    else throw invalidQuery(`The query has "${key}", which is not known.`);
  }
  return query;
}

import { decide, type SignalOptions, type SignalResult } from '../../../core/approval/decide.ts';
import { isPersonToken } from '../../../core/approval/person-tokens.ts';
import { toApprovalRecord, toApprovalRequest } from '../../../core/approval/public-view.ts';
import { isRequestId } from '../../../core/approval/request.ts';
import { recordReveal } from '../../../core/approval/reveal.ts';
import type { ApprovalService, RequestRow } from '../../../core/approval/service.ts';
import { callbackToken, isIssuedFor, type TokenClaims, tokensEqual, viewToken } from '../../../core/approval/token.ts';
import { shortDigest } from '../../../core/tool/call-digest.ts';
import type { Runtime } from '../../load/runtime.ts';
import { openApprovals } from '../approval-runtime.ts';
import { commandLineLogin } from '../oidc-people.ts';
import { bearerOf, type PeopleSource } from '../people-source.ts';
import {
  type Decision,
  jsonDecision,
  parseForm,
  parseModifiedParams,
  readDecisionBody,
  signalFor,
} from './decision-body.ts';
import { invalidDecision, isHttpError, NOT_ALLOWED, NOT_FOUND, throttle, UNAUTHORIZED } from './http-errors.ts';
import { PAGE_HEADERS } from './layout.ts';
import { RateLimit } from './limits.ts';
import { type Account, closedPage, decidedPage, decisionPage, messagePage, summaryPage } from './page.ts';
import { isPeopleRoute, type PeopleApi, peopleApi } from './people-api.ts';
import { type HttpError, htmlResponse, httpErrorOf, jsonResponse } from './response.ts';
import { SignIn } from './sign-in.ts';
import { requireCallbackKey, tokenClaims } from './token.ts';

export interface CallbackContext {
  readonly approvals: ApprovalService;
  readonly product: string;
  readonly env: string;
  /** `approvals.callbackKey`. */
  readonly key: string;
  /** Of `approvals.oidc` and `approvals.proxy`. */
  readonly people?: PeopleSource | undefined;
  /** With `approvals.oidc` and `approvals.callbackBase`. */
  readonly signIn?: SignIn | undefined;
  /** With `approvals.server`. */
  readonly api?: PeopleApi | undefined;
}

/** @experimental */
export interface CallbackOptions {
  /** The address that the connection of a request comes from: `approvals.proxy` with `peers` needs it. */
  peerOf?(request: Request): string | undefined;
  /** Ends open event streams of the API when your server stops; without it, they end when the client is closed. */
  readonly stopping?: AbortSignal | undefined;
}

/** The token proves access to the request, not who used it. */
const ACTOR = 'callback token, unverified';
const PATH = /\/approvals\/([^/]+)\/respond\/?$/;
/** Per minute: for each request, and for all calls without a valid token together. */
const MAX_PER_REQUEST = 60;
const MAX_UNAUTHORIZED = 600;

/** Handles `{callbackBase}/approvals/<requestId>/respond?token=…`. GET never decides, because link previews follow it. */
export function callbackHandler(
  context: CallbackContext,
  { peerOf, stopping }: CallbackOptions = {},
): (request: Request) => Promise<Response> {
  const perRequest = new RateLimit(MAX_PER_REQUEST);
  const unauthorized = new RateLimit(MAX_UNAUTHORIZED);
  const api = context.api && peopleApi({ ...context, ...context.api, stopping });
  return async (request) => {
    const people = isPeopleRoute(request) ? api : undefined;
    try {
      if (!people && context.signIn?.isReturn(request)) {
        return await context.signIn.complete(request, (requestId) => throttle(perRequest, requestId));
      }
      const decider = () => deciderOf(context, request, peerOf?.(request));
      if (people) return await people(request);
      return await respond(context, request, decider, { perRequest, unauthorized });
    } catch (error) {
      return people ? responseTo(toHttpError(error), false) : errorResponse(request, error);
    }
  };
}

/** HTML for browsers, JSON for everything else. */
export function errorResponse(request: Request, error: unknown): Response {
  const wantsPage = request.method === 'GET' || request.method === 'HEAD' || isForm(request);
  return responseTo(toHttpError(error), wantsPage);
}

const toHttpError = (error: unknown): HttpError => (isHttpError(error) ? error : httpErrorOf(error));

async function respond(
  context: CallbackContext,
  request: Request,
  decider: () => SignalOptions,
  limits: { readonly perRequest: RateLimit; readonly unauthorized: RateLimit },
): Promise<Response> {
  const { approvals, signIn } = context;
  const url = new URL(request.url);
  const requestId = PATH.exec(url.pathname)?.[1];
  if (requestId === undefined || !isRequestId(requestId)) throw NOT_FOUND;
  if (!['GET', 'HEAD', 'POST'].includes(request.method)) throw NOT_ALLOWED;
  const token = url.searchParams.get('token');
  if (token === null || token === '') throw UNAUTHORIZED;
  // Each limit is checked before the store is read. A caller without a token cannot use up the limit of a request.
  if (isIssuedFor(context.key, token, { ...context, requestId })) throttle(limits.perRequest, requestId);
  else throttle(limits.unauthorized, '');
  const row = await approvals.read(requestId);
  if (!row) throw NOT_FOUND;
  const claims = tokenClaims(context, row);
  if (!tokensEqual(token, callbackToken(context.key, claims))) throw UNAUTHORIZED;
  const place = { requestId, token };
  if (request.method !== 'POST') {
    if (signIn && url.searchParams.has('sign-in')) return signIn.begin(place);
    const account = await signIn?.accountOf(request, place);
    return page(200, summaryPage({ ...context, request: toApprovalRequest(row.record), account }));
  }
  const body = await readDecisionBody(request);
  if (isForm(request)) {
    const fields = parseForm(body);
    const own = decider();
    const visitor = own.token === undefined ? await signIn?.visitorOf(request, fields, place, own) : undefined;
    if (visitor instanceof Response) return visitor;
    const { decider: person, account } = visitor ?? { decider: own, account: undefined };
    return respondToForm({ ...context, account }, row, claims, person, fields);
  }
  const decision = jsonDecision(request, body);
  const options = { ...decider(), override: decision.override };
  const result = await decide(approvals, signalFor(requestId, decision), options, row);
  // A vote was accepted; the request is not decided.
  return jsonResponse(result.status === 'waiting' ? 202 : 200, result);
}

/**
 * Who decides: the owner of a token in `Authorization: Bearer`, with `approvals.oidc` also of an ID token, or whom the header
 * of the proxy names. Any other authorization is for what is in front of this server.
 */
function deciderOf({ people }: CallbackContext, { headers }: Request, peer: string | undefined): SignalOptions {
  const bearer = bearerOf(headers) ?? '';
  const token = isPersonToken(bearer) ? bearer : people?.tokenOf(headers, peer);
  return { actor: ACTOR, ...(token !== undefined && { token }) };
}

/** A decision as form fields; accepted only from a page that showed the whole request. */
async function respondToForm(
  context: CallbackContext & { readonly account: Account | undefined },
  row: RequestRow,
  claims: TokenClaims,
  decider: SignalOptions,
  fields: URLSearchParams,
): Promise<Response> {
  const { approvals, key } = context;
  const { record } = row;
  const action = fields.get('action');
  const view = viewToken(key, claims);
  if (action === 'show') {
    const found = await approvals.expireIfDue(row);
    const { record: current } = found;
    // Links end up in logs and chats, so a decided request is no longer shown.
    if (current.status !== 'waiting' || approvals.isDue(current)) {
      return page(200, closedPage({ ...context, request: toApprovalRecord(current) }));
    }
    const definition = await approvals.getToolDefinition(record.body.toolDigest);
    const digest = shortDigest(record.body.digest);
    const more = { digest, view, ...(definition && { description: definition.description }) };
    const unattendedSince = await approvals.presence.unattendedSince(current);
    const { record: shown } = await recordReveal(approvals, found, decider);
    return page(200, decisionPage({ ...context, request: toApprovalRecord(shown, true, unattendedSince) }, more));
  }
  if (action !== 'approve' && action !== 'reject') throw invalidDecision('The form has no valid action.');
  if (!tokensEqual(fields.get('view') ?? '', view))
    throw invalidDecision('The form was not sent from the page of this request.');
  const reason = fields.get('reason')?.trim();
  const changes = fields.get('modifiedParams')?.trim();
  const decision: Decision = {
    approved: action === 'approve',
    ...(reason && { reason }),
    ...(changes && { modifiedParams: parseModifiedParams(changes) }),
  };
  const result: SignalResult = await decide(approvals, signalFor(record.requestId, decision), {
    ...decider,
    reviewToken: record.body.digest,
  });
  return page(200, decidedPage({ ...context, request: toApprovalRequest(record) }, result));
}

function isForm(request: Request): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(request.headers.get('content-type') ?? '');
}

function responseTo({ status, error, message, details, headers }: HttpError, wantsPage: boolean): Response {
  if (wantsPage) return htmlResponse(status, messagePage('Approval', message), { ...PAGE_HEADERS, ...headers });
  const challenge = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  return jsonResponse(status, { error, message, ...details }, { ...challenge, ...headers });
}

function page(status: number, text: string): Response {
  return htmlResponse(status, text, PAGE_HEADERS);
}

/** Opens the callback of a configuration. Throws `config_invalid` without a callback key, and `driver_missing`. */
export async function openCallback(
  runtime: Runtime,
  options?: CallbackOptions,
): Promise<(request: Request) => Promise<Response>> {
  const key = requireCallbackKey('The callback', runtime.config);
  const { service, watcher, owner, people, oidc } = await openApprovals(runtime);
  await people?.open();
  const { product, env } = owner;
  const { callbackBase: base, server, roles, oidc: provider } = runtime.config.approvals ?? {};
  const members = server && roles?.[server.role];
  const api = members && { members, watcher, login: provider && commandLineLogin(provider) };
  const signIn = oidc && base !== undefined ? new SignIn({ oidc, product, env, base, key }) : undefined;
  return callbackHandler({ approvals: service, product, env, key, people, signIn, api }, options);
}

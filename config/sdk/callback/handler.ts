import { decide, type SignalOptions } from '../../../core/approval/decide.ts';
import { isPersonToken } from '../../../core/approval/person-tokens.ts';
import type { Presses } from '../../../core/approval/presses.ts';
import { toApprovalRequest } from '../../../core/approval/public-view.ts';
import { isRequestId } from '../../../core/approval/request.ts';
import type { ApprovalService, RequestRow } from '../../../core/approval/service.ts';
import { callbackToken, isIssuedFor, type TokenClaims, tokensEqual, viewToken } from '../../../core/approval/token.ts';
import { shortDigest } from '../../../core/tool/call-digest.ts';
import type { ServerConfig } from '../../define.ts';
import type { Runtime } from '../../load/runtime.ts';
import { openApprovals } from '../approval-runtime.ts';
import { commandLineLogin } from '../oidc-people.ts';
import { bearerOf, type PeopleSource } from '../people-source.ts';
import { Callers } from './api/authenticate.ts';
import { EventStreams } from './api/event-streams.ts';
import { jsonDecision, parseForm, readDecisionBody, signalFor } from './decision-body.ts';
import { answerForm } from './decision-form.tsx';
import { isForm, NOT_ALLOWED, NOT_FOUND, throttle, toHttpError, UNAUTHORIZED } from './http-errors.ts';
import { peopleDoor } from './inbox/door.ts';
import { inboxHandler, isInboxPlace, isInboxRoute } from './inbox/handler.ts';
import { PAGE_HEADERS } from './layout.tsx';
import { RateLimit } from './limits.ts';
import type { CallbackOptions } from './options.ts';
import {
  type Account,
  closedPage,
  confirmationPage,
  decidedPage,
  decisionPage,
  messagePage,
  summaryPage,
} from './page.tsx';
import { isApiUrl, isPeopleRoute, type PeopleApi, peopleApi, unknownRoute } from './people-api.ts';
import { openPresses, pressedChannel, pressesHandler } from './presses.ts';
import { type HttpError, htmlResponse, jsonResponse } from './response.ts';
import { SignIn } from './sign-in.ts';
import { callbackUrl, requireCallbackKey, tokenClaims, withoutSlash } from './token.ts';

export interface CallbackContext {
  readonly approvals: ApprovalService;
  readonly product: string;
  readonly env: string;
  /** `approvals.callbackKey`. */
  readonly key: string;
  /** Of `approvals.oidc` and `approvals.proxy`. */
  readonly people?: PeopleSource | undefined;
  /** `approvals.callbackBase`. */
  readonly base?: string | undefined;
  /** With `callbackBase`, where people can sign in: with `approvals.oidc`, and in the inbox. */
  readonly sessions?: SignIn | undefined;
  /** With `approvals.server`. */
  readonly api?: PeopleApi | undefined;
  /** `approvals.server.environments`. */
  readonly environments?: ServerConfig['environments'];
  /** Of `approvals.channels`. */
  readonly presses?: ReadonlyMap<string, Presses> | undefined;
}

/** Requests that are answered alike. */
interface Route {
  matches(request: Request): boolean;
  answer(request: Request): Promise<Response>;
  fail(request: Request, error: unknown): Response;
}

/** The token proves access to the request, not who used it. */
const ACTOR = 'callback token, unverified';
const PATH = /\/approvals\/([^/]+)\/respond\/?$/;
/** Per minute: for each request, and for all calls without a valid token together. */
const MAX_PER_REQUEST = 60;
const MAX_UNAUTHORIZED = 600;
/** Per minute, of all people: each is a call to the provider. */
const MAX_SIGN_INS = 6_000;

/**
 * Handles `{callbackBase}/approvals/<requestId>/respond?token=…`, where GET never decides, because link previews follow it, and
 * what else the context serves.
 */
export function callbackHandler(
  context: CallbackContext,
  { peerOf, stopping }: CallbackOptions = {},
): (request: Request) => Promise<Response> {
  const perRequest = new RateLimit(MAX_PER_REQUEST);
  const unauthorized = new RateLimit(MAX_UNAUTHORIZED);
  const signIns = new RateLimit(MAX_SIGN_INS);
  const { approvals, api: served, base, sessions } = context;
  const callers = served && new Callers(approvals, served.members);
  const streams = served && new EventStreams({ approvals, watcher: served.watcher, stopping });
  const api = served && callers && streams && peopleApi({ ...context, ...served, callers, streams });
  const decider = (request: Request) => deciderOf(context, request, peerOf?.(request));
  const inbox =
    callers && streams && sessions && base !== undefined
      ? inboxHandler(
          { ...context, base, streams },
          peopleDoor(callers, sessions, (request) => decider(request).token),
        )
      : undefined;
  const throttleSignIn = ({ place, state }: { readonly place: string; readonly state: string }) => {
    throttle(perRequest, isInboxPlace(place) ? state : place);
    throttle(signIns, '');
  };
  const { presses = new Map<string, Presses>() } = context;
  const rest: Route = {
    matches: () => true,
    answer: (request) => respond(context, request, () => decider(request), { perRequest, unauthorized }),
    fail: errorResponse,
  };
  const routes: Route[] = [];
  if (api) routes.push({ matches: isPeopleRoute, answer: api, fail: jsonError });
  if (sessions) {
    const answer = (request: Request) => sessions.complete(request, throttleSignIn);
    routes.push({ ...rest, matches: (request) => sessions.isReturn(request), answer });
  }
  routes.push({
    matches(request) {
      const name = pressedChannel(request);
      // `{callbackBase}/inbox` may look like the URL of a channel.
      return name !== undefined && (presses.has(name) || !isInboxRoute(request));
    },
    answer: pressesHandler(approvals, presses),
    fail: jsonError,
  });
  if (inbox) routes.push({ ...rest, matches: isInboxRoute, answer: inbox });
  routes.push({
    matches: (request) => isApiUrl(request) && !PATH.test(new URL(request.url).pathname),
    answer: unknownRoute(api !== undefined),
    fail: jsonError,
  });
  return async (request) => {
    const { answer, fail } = routes.find(({ matches }) => matches(request)) ?? rest;
    return answer(request).catch((error: unknown) => fail(request, error));
  };
}

const jsonError = (_request: Request, error: unknown): Response => responseTo(toHttpError(error), false);

/** HTML for browsers, JSON for everything else. */
export function errorResponse(request: Request, error: unknown): Response {
  const wantsPage = request.method === 'GET' || request.method === 'HEAD' || isForm(request);
  return responseTo(toHttpError(error), wantsPage);
}

async function respond(
  context: CallbackContext,
  request: Request,
  decider: () => SignalOptions,
  limits: { readonly perRequest: RateLimit; readonly unauthorized: RateLimit },
): Promise<Response> {
  const { approvals, sessions } = context;
  const signIn = sessions?.hasProvider ? sessions : undefined;
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
  const place = callbackUrl('', requestId, token);
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

/** The answer to a form of the page of a request. */
async function respondToForm(
  context: CallbackContext & { readonly account: Account | undefined },
  row: RequestRow,
  claims: TokenClaims,
  decider: SignalOptions,
  fields: URLSearchParams,
): Promise<Response> {
  const view = viewToken(context.key, claims);
  const shown = { digest: shortDigest(row.record.body.digest), view };
  const request = toApprovalRequest(row.record);
  const answer = await answerForm({ approvals: context.approvals, row, decider, fields, view });
  switch (answer.kind) {
    case 'form':
      return page(answer.problems.length > 0 ? 422 : 200, decisionPage({ ...context, request }, answer, shown));
    case 'confirm':
      return page(200, confirmationPage({ ...context, request }, answer, shown));
    case 'closed':
      return page(200, closedPage({ ...context, request: answer.request }));
    case 'decided':
      return page(200, decidedPage({ ...context, request }, answer));
  }
}

function responseTo({ status, error, message, details, headers }: HttpError, wantsPage: boolean): Response {
  if (wantsPage) return htmlResponse(status, messagePage('Approval', message), { ...PAGE_HEADERS, ...headers });
  const challenge = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  return jsonResponse(status, { error, message, ...details }, { ...challenge, ...headers });
}

function page(status: number, text: string): Response {
  return htmlResponse(status, text, PAGE_HEADERS);
}

/** Opens the callback of a configuration. Throws `config_invalid` without a callback key, `driver_missing`, and what a channel throws. */
export async function openCallback(
  runtime: Runtime,
  options?: CallbackOptions,
): Promise<(request: Request) => Promise<Response>> {
  const key = requireCallbackKey('The callback', runtime.config);
  const { service, watcher, owner, people, oidc } = await openApprovals(runtime);
  await people?.open();
  const { product, env } = owner;
  const { callbackBase, server, roles, oidc: provider } = runtime.config.approvals ?? {};
  const members = server && roles?.[server.role];
  const api = members && { members, watcher, login: provider && commandLineLogin(provider) };
  const base = callbackBase === undefined ? undefined : withoutSlash(callbackBase);
  const presses = await openPresses(runtime);
  const sessions =
    base !== undefined && (oidc || members)
      ? new SignIn({ verify: service.verifyToken, oidc, product, env, base, key })
      : undefined;
  const context = { approvals: service, product, env, key, people, base, sessions, api, presses };
  return callbackHandler({ ...context, environments: server?.environments }, options);
}

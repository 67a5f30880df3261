import type { ApprovalDesk, Row } from '../../core/approval/desk.ts';
import { isRequestId } from '../../core/approval/id.ts';
import type { Parameters } from '../../core/approval/request.ts';
import { decide, type Signal, type SignalAnswer } from '../../core/approval/signal.ts';
import { callbackToken, sameToken, type TokenFacts, viewToken } from '../../core/approval/token.ts';
import { recordOf, requestOf } from '../../core/approval/view.ts';
import { changedNumber } from '../../core/json.ts';
import { problemText, type Shape, shapeProblems } from '../../core/schema/shape.ts';
import { htmlAnswer, jsonAnswer, type Refusal, refusalOf } from './answer.ts';
import { BODY_LIMIT, readBody } from './body.ts';
import { decisionPage, doorPage, messagePage, overPage, PAGE_HEADERS } from './page.ts';
import { RateLimit } from './rate-limit.ts';

export interface CallbackPlace {
  readonly desk: ApprovalDesk;
  readonly product: string;
  readonly env: string;
  /** `approvals.callbackKey`. */
  readonly key: string;
}

/** Who has the token decided, and nobody knows who that is. */
const ACTOR = 'callback token, unverified';
const PATH = /\/approvals\/([^/]+)\/respond\/?$/;
/** A minute, for one request and for all that come with no right token. */
const MOST_A_REQUEST = 60;
const MOST_UNKNOWN = 600;
const DECISION: Shape = {
  properties: { approved: 'boolean', reason: 'string', modifiedParams: { map: 'json' } },
  required: ['approved'],
};

const NOT_FOUND: Refusal = { status: 404, error: 'approval_unknown', message: 'There is no such request.' };
const UNAUTHORIZED: Refusal = { status: 401, error: 'token_invalid', message: 'The token is missing or not right.' };
const TOO_LARGE: Refusal = {
  status: 413,
  error: 'body_too_large',
  message: `A decision has at most ${BODY_LIMIT} bytes.`,
};
const NOT_ALLOWED: Refusal = {
  status: 405,
  error: 'method_not_allowed',
  message: 'POST decides, GET shows.',
  headers: { allow: 'GET, HEAD, POST' },
};

/** Answers `{callback_base}/approvals/<requestId>/respond?token=…` (SPEC 4.1). GET shows and never decides. */
export function callbackHandler(place: CallbackPlace): (request: Request) => Promise<Response> {
  const perRequest = new RateLimit(MOST_A_REQUEST);
  const unknown = new RateLimit(MOST_UNKNOWN);
  return async (request) => {
    try {
      return await answered(place, request, { perRequest, unknown });
    } catch (error) {
      return refusalTo(request, error);
    }
  };
}

/** Whoever reads pages gets pages. */
export function refusalTo(request: Request, error: unknown): Response {
  const wantsPage = request.method === 'GET' || request.method === 'HEAD' || isForm(request);
  return refused(isRefusal(error) ? error : refusalOf(error), wantsPage);
}

async function answered(
  place: CallbackPlace,
  request: Request,
  limits: { readonly perRequest: RateLimit; readonly unknown: RateLimit },
): Promise<Response> {
  const { desk } = place;
  const url = new URL(request.url);
  const requestId = PATH.exec(url.pathname)?.[1];
  if (requestId === undefined || !isRequestId(requestId)) throw NOT_FOUND;
  if (!['GET', 'HEAD', 'POST'].includes(request.method)) throw NOT_ALLOWED;
  const token = url.searchParams.get('token');
  if (token === null || token === '') throw UNAUTHORIZED;
  const body = request.method === 'POST' ? await readBody(request) : '';
  if (body === undefined) throw TOO_LARGE;
  const row = await desk.read(requestId);
  if (!row) {
    throttle(limits.unknown, '');
    throw NOT_FOUND;
  }
  const facts = factsOf(place, row);
  if (!sameToken(token, callbackToken(place.key, facts))) {
    throttle(limits.unknown, '');
    throw UNAUTHORIZED;
  }
  // Whoever has no token cannot use up what is left to those who have.
  throttle(limits.perRequest, requestId);
  if (request.method !== 'POST') return page(200, doorPage(requestOf(row.record)));
  if (isForm(request)) return form(place, row, facts, new URLSearchParams(body));
  return jsonAnswer(200, await decide(desk, signalOf(row, decisionIn(request, body)), { actor: ACTOR }));
}

interface Decision {
  readonly approved: boolean;
  readonly reason?: string;
  readonly modifiedParams?: Parameters;
}

/** SPEC 2.6. */
function decisionIn(request: Request, body: string): Decision {
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(request.headers.get('content-type') ?? '')) {
    throw invalid('The content type is not application/json.');
  }
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw invalid('The body is not JSON.');
  }
  const problems = shapeProblems(value, DECISION);
  if (problems.length > 0) throw invalid(problems.map(problemText).join(' '));
  refuseChangedNumber(body);
  return value as Decision;
}

/** From the pages: the same decision, in a form's fields, and only from a page that showed everything. */
async function form(place: CallbackPlace, row: Row, facts: TokenFacts, fields: URLSearchParams): Promise<Response> {
  const { desk, key } = place;
  const { record } = row;
  const action = fields.get('action');
  const view = viewToken(key, facts);
  if (action === 'show') {
    const settled = await desk.settled(row);
    // What nobody can decide any more is shown to nobody: the link lies in logs and chats.
    if (settled.record.status !== 'waiting' || desk.isDue(settled.record)) {
      return page(200, overPage(recordOf(settled.record)));
    }
    const definition = await desk.definition(record.body.toolDigest);
    return page(200, decisionPage(requestOf(record, true), definition?.description, view));
  }
  if (action !== 'approve' && action !== 'reject') throw invalid('The form does not say what to do.');
  if (!sameToken(fields.get('view') ?? '', view))
    throw invalid('The form does not come from the page of this request.');
  const reason = fields.get('reason')?.trim();
  const changes = fields.get('modifiedParams')?.trim();
  const decision: Decision = {
    approved: action === 'approve',
    ...(reason && { reason }),
    ...(changes && { modifiedParams: changesIn(changes) }),
  };
  const answer: SignalAnswer = await decide(desk, signalOf(row, decision), { actor: ACTOR, shown: record.body.digest });
  return page(200, messagePage(`The request is ${answer.status}`, `Decided at ${answer.decidedAt}.`));
}

function changesIn(text: string): Parameters {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (shapeProblems(value, { map: 'json' }).length > 0)
    throw invalid('The parameters to change are not a JSON object.');
  refuseChangedNumber(text);
  return value as Parameters;
}

function refuseChangedNumber(json: string): void {
  if (changedNumber(json) === undefined) return;
  throw invalid('A number has more digits than can be kept: the tool would run with another one.');
}

function signalOf({ record }: Row, { approved, reason, modifiedParams }: Decision): Signal {
  const { requestId, executionId } = record;
  return {
    executionId,
    signal: approved ? 'approve' : 'reject',
    payload: { requestId, ...(reason !== undefined && { reason }), ...(modifiedParams && { modifiedParams }) },
  };
}

export function factsOf({ product, env }: Pick<CallbackPlace, 'product' | 'env'>, { record }: Row): TokenFacts {
  const { requestId, expiresAt, body } = record;
  return { product, env, requestId, digest: body.digest, timeout: expiresAt.toISOString() };
}

function isForm(request: Request): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(request.headers.get('content-type') ?? '');
}

function throttle(limit: RateLimit, name: string): void {
  const seconds = limit.secondsToWait(name);
  if (seconds === 0) return;
  const refusal: Refusal = {
    status: 429,
    error: 'too_many_requests',
    message: 'Too many requests in a minute.',
    headers: { 'retry-after': String(seconds) },
  };
  throw refusal;
}

function invalid(message: string): Refusal {
  return { status: 400, error: 'decision_invalid', message };
}

function isRefusal(thrown: unknown): thrown is Refusal {
  return typeof thrown === 'object' && thrown !== null && !(thrown instanceof Error) && 'status' in thrown;
}

function refused({ status, error, message, facts, headers }: Refusal, wantsPage: boolean): Response {
  if (wantsPage) return htmlAnswer(status, messagePage('Approval', message), { ...PAGE_HEADERS, ...headers });
  return jsonAnswer(status, { error, message, ...facts }, headers);
}

function page(status: number, text: string): Response {
  return htmlAnswer(status, text, PAGE_HEADERS);
}

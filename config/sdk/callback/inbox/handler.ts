import { inboxPageAndCount } from '../../../../core/approval/inbox.ts';
import { APPROVAL_STATUSES, isRequestId } from '../../../../core/approval/request.ts';
import type { ServerConfig } from '../../../define.ts';
import type { EventStreams } from '../api/event-streams.ts';
import { parseForm, readDecisionBody } from '../decision-body.ts';
import {
  assertSameSite,
  invalidDecision,
  invalidQuery,
  isForm,
  NOT_ALLOWED,
  NOT_FOUND,
  notAllowed,
  refuseQuery,
  toHttpError,
} from '../http-errors.ts';
import { htmlResponse } from '../response.ts';
import { answerRequest, type RequestContext, showRequest } from './answer-request.tsx';
import type { Door, Visitor } from './door.ts';
import { errorPage } from './door-page.tsx';
import type { InboxFrame } from './frame.tsx';
import { type ListFilter, listPage, refreshedList, type ShownList, showList } from './list-page.tsx';
import { isRefresh, LIST_AGE_MS, LIVE_HEADERS } from './live.tsx';
import { RecentReads } from './recent-reads.ts';

/*
 * Pages for the people whom a door lets in; they need no scripts:
 *
 *   GET  {callbackBase}/inbox                what waits, by deadline; filters and the cursor of a page are the query
 *   GET  {callbackBase}/inbox/events         what changes, for pages that are open, as of the API
 *   GET  {callbackBase}/inbox/<requestId>    a request, with sensitive parameters masked
 *   POST {callbackBase}/inbox/<requestId>    shows all parameters, or decides
 *
 * With `action=sign-in` and `action=sign-out`, a POST to each of them signs in and out.
 */

const ROUTE = /\/inbox(?:\/([^/]+))?\/?$/;
const PAGE_SIZE = 20;
const MAX_COUNT = 100;

export const isInboxRoute = ({ url }: Request): boolean => ROUTE.test(new URL(url).pathname);

export interface InboxContext extends RequestContext {
  /** The URL below which the inbox is, without a slash at the end. */
  readonly base: string;
  /** By environment, the URL below which its inbox is. */
  readonly environments?: ServerConfig['environments'];
  readonly streams: EventStreams;
}

/** The inbox. */
export function inboxHandler(context: InboxContext, door: Door): (request: Request) => Promise<Response> {
  const inboxUrl = `${context.base}/inbox`;
  const lists = new RecentReads<ShownList>(LIST_AGE_MS);
  const answer = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url);
    const requestId = ROUTE.exec(pathname)?.[1];
    const isEvents = requestId === 'events';
    if (requestId !== undefined && !isEvents && !isRequestId(requestId)) throw NOT_FOUND;
    const isPost = request.method === 'POST';
    if (!isPost && request.method !== 'GET' && request.method !== 'HEAD') throw NOT_ALLOWED;
    const fields = isPost ? await ownForm(request, context.base) : undefined;
    const visitor = await door.enter(request, placeOf(requestId, searchParams), fields);
    if (visitor instanceof Response) return visitor;
    if (isEvents) return events(context.streams, request, visitor, searchParams);
    const frame: InboxFrame = { ...context, visitor, inboxUrl };
    if (requestId === undefined) {
      if (fields) throw NOT_ALLOWED;
      const shown = await lists.read(listKey(searchParams, visitor), () => list(context, frame, searchParams));
      return htmlResponse(200, isRefresh(request) ? refreshedList(shown) : listPage(frame, shown), LIVE_HEADERS);
    }
    const row = await context.approvals.getExpiringIfDue(requestId);
    if (!row) throw NOT_FOUND;
    if (!fields) return showRequest(context, frame, row);
    return answerRequest(context, frame, row, fields).finally(() => lists.clear());
  };
  return (request) =>
    answer(request).catch((error: unknown) => errorPage(toHttpError(error), inboxUrl, request.method === 'POST'));
}

async function events(
  streams: EventStreams,
  request: Request,
  visitor: Visitor,
  query: URLSearchParams,
): Promise<Response> {
  if (request.method !== 'GET') throw notAllowed('GET');
  const about = query.get('request') ?? undefined;
  if (about !== undefined && !isRequestId(about)) throw invalidQuery('The id of the request is not one.');
  return streams.openPage(request, visitor, about);
}

/** Everybody sees the same list, unless it is of what a person may decide. */
function listKey(query: URLSearchParams, { principal }: Visitor): string {
  return query.get('mine') === '1' ? `${query} ${JSON.stringify(principal)}` : `${query}`;
}

/** The fields of a form of the inbox itself. Throws an `HttpError`. */
async function ownForm(request: Request, base: string): Promise<URLSearchParams> {
  assertSameSite(request, base);
  if (!isForm(request)) throw invalidDecision('The content type is not application/x-www-form-urlencoded.');
  return parseForm(await readDecisionBody(request));
}

/** Whether a person signs in for the inbox, and not for one request. */
export const isInboxPlace = (place: string): boolean => place.startsWith('/inbox');

/** The path of a page below the base, with its query. */
function placeOf(requestId: string | undefined, query: URLSearchParams): string {
  const kept = new URLSearchParams(query);
  kept.delete('sign-in');
  return `/inbox${requestId === undefined ? '' : `/${requestId}`}${kept.size === 0 ? '' : `?${kept}`}`;
}

async function list(
  { approvals, environments }: InboxContext,
  frame: InboxFrame,
  query: URLSearchParams,
): Promise<ShownList> {
  const filter = filterOf(query);
  const { status, agent, tool, text, mine } = filter;
  const cursor = query.get('cursor') ?? undefined;
  const asked = {
    status,
    limit: PAGE_SIZE,
    ...(agent !== '' && { agentTag: agent }),
    ...(tool !== '' && { tool }),
    ...(text !== '' && { text }),
    ...(mine && { decidableBy: frame.visitor.principal }),
    ...(cursor !== undefined && { cursor }),
  };
  const [page, { waiting, atLeast }] = await inboxPageAndCount(approvals, asked, MAX_COUNT).catch(refuseQuery);
  return showList({
    ...frame,
    environments,
    filter,
    page,
    waiting: `${waiting}${atLeast ? '+' : ''}`,
    isFirst: cursor === undefined,
    now: new Date(await approvals.clock.now()),
  });
}

const FILTERS = ['status', 'agent', 'tool', 'text', 'mine', 'cursor'];

/** Throws an `HttpError`. */
function filterOf(query: URLSearchParams): ListFilter {
  const names = [...query.keys()];
  if (new Set(names).size < names.length || names.some((name) => !FILTERS.includes(name))) {
    throw invalidQuery('The filter of the list has a field that is not known, or one twice.');
  }
  const given = query.get('status') ?? 'waiting';
  const status = APPROVAL_STATUSES.find((one) => one === given);
  if (!status) throw invalidQuery(`The status is not one of ${APPROVAL_STATUSES.join(', ')}.`);
  const mine = query.get('mine') ?? '';
  if (!['', '0', '1'].includes(mine)) throw invalidQuery('The field "mine" of the filter is not 0 or 1.');
  const textOf = (name: string) => query.get(name)?.trim() ?? '';
  return { status, agent: textOf('agent'), tool: textOf('tool'), text: textOf('text'), mine: mine === '1' };
}

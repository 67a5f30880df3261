import type { InboxPage } from '../../../../core/approval/inbox.ts';
import { parametersText, statusText, timeLeft, utcText } from '../../../../core/approval/record-text.ts';
import { APPROVAL_STATUSES, type ApprovalRecord } from '../../../../core/approval/request.ts';
import { shorten } from '../../../../core/display/limit.ts';
import { roleText } from '../../../../core/display/role-text.ts';
import { displayText, shortenText } from '../../../../core/display/text.ts';
import { type Content, type Html, html } from '../html.ts';
import { page } from '../layout.ts';
import { renderJson } from '../render-json.ts';
import { type InboxFrame, inboxBar } from './frame.ts';
import { LIVE_SCRIPT, liveState } from './live.ts';

/** The fields of the filter, as a URL has them. */
export interface ListFilter {
  readonly status: ApprovalRecord['status'];
  readonly agent: string;
  readonly tool: string;
  readonly text: string;
  readonly mine: boolean;
}

/** A list as everybody sees it. */
export interface ShownList {
  readonly heading: string;
  readonly windowTitle: string;
  /** What an open page keeps. */
  readonly filter: Html;
  /** What it takes over. */
  readonly list: Html;
}

interface ListContext extends Omit<InboxFrame, 'visitor'> {
  readonly filter: ListFilter;
  readonly page: InboxPage;
  /** How many wait, such as `100+`. */
  readonly waiting: string;
  readonly isFirst: boolean;
  readonly now: Date;
}

const MAX_TAG = 60;
const MAX_TEXT = 200;

export function showList(context: ListContext): ShownList {
  const { filter, waiting, product, env, isFirst } = context;
  const { records, cursor } = context.page;
  const heading = filter.status === 'waiting' ? 'Waiting for a decision' : HEADINGS[filter.status];
  return {
    heading,
    windowTitle: `(${waiting}) ${heading} · ${displayText(product)} (${displayText(env)})`,
    filter: html`${statusLinks(context)}${filterForm(context)}`,
    list: html`${liveState(context)}
<div data-live="list">
${records.length === 0 ? emptyNotice(context) : html`<ol class="requests">${records.map((record) => item(context, record))}</ol>`}
<nav class="buttons" aria-label="Pages">${!isFirst && html`<a href="${listUrl(context)}" class="button">First page</a>`}${cursor !== undefined && html`<a href="${listUrl(context, cursor)}" class="button">Next page</a>`}</nav>
</div>`,
  };
}

/** The page of a list, for one visitor. */
export function listPage(frame: InboxFrame, { heading, windowTitle, filter, list }: ShownList): string {
  return page(
    heading,
    html`${filter}
${list}${LIVE_SCRIPT}`,
    { bar: inboxBar(frame), isWide: true, windowTitle },
  );
}

/** What a script takes over into the page that is open. */
export function refreshedList({ windowTitle, list }: ShownList): string {
  return html`<!doctype html><title>${windowTitle}</title>${list}`.markup;
}

const HEADINGS = { waiting: 'Waiting', approved: 'Approved', rejected: 'Rejected', cancelled: 'Cancelled' } as const;

/** The list with this filter, from a cursor on. */
function listUrl({ inboxUrl, filter }: ListContext, cursor?: string): string {
  const { status, agent, tool, text, mine } = filter;
  const fields = { status, agent, tool, text, mine: mine ? '1' : '', cursor: cursor ?? '' };
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''));
  return `${inboxUrl}?${query}`;
}

/** The statuses, as links that keep the rest of the filter. */
function statusLinks(context: ListContext): Html {
  const links = APPROVAL_STATUSES.map((status) => {
    const isCurrent = status === context.filter.status;
    const url = listUrl({ ...context, filter: { ...context.filter, status } });
    return html`<a href="${url}"${isCurrent && html` aria-current="page"`}>${HEADINGS[status]}</a>\n`;
  });
  return html`<nav class="tabs" aria-label="Status">${links}</nav>`;
}

function filterForm({ inboxUrl, filter }: ListContext): Html {
  const { status, agent, tool, text, mine } = filter;
  return html`<details${isFiltered(filter) && html` open`}><summary>Filter</summary>
<form class="filter" method="get" action="${inboxUrl}" role="search">
<input type="hidden" name="status" value="${status}">
<label>Agent <input name="agent" value="${agent}"></label>
<label>Tool <input name="tool" value="${tool}"></label>
<label>Text <input type="search" name="text" value="${text}"></label>
<label class="check"><input type="checkbox" name="mine" value="1"${mine && html` checked`}> Mine to decide</label>
<button>Apply</button>
</form></details>`;
}

const isFiltered = ({ agent, tool, text, mine }: ListFilter): boolean =>
  [agent, tool, text].some((one) => one !== '') || mine;

function emptyNotice({ filter, page: { cursor }, isFirst, inboxUrl }: ListContext): Html {
  if (cursor !== undefined) return html`<p class="empty">Nothing found so far. More requests are on the next page.</p>`;
  if (!isFirst) return html`<p class="empty">No more requests.</p>`;
  if (isFiltered(filter)) {
    return html`<p class="empty">No request matches the filter. <a href="${inboxUrl}?status=${filter.status}">Clear the filter</a></p>`;
  }
  return filter.status === 'waiting'
    ? html`<p class="empty">Nothing is waiting for a decision.</p>`
    : html`<p class="empty">No request is ${filter.status}.</p>`;
}

function item({ inboxUrl, now }: ListContext, record: ApprovalRecord): Html {
  const { requestId, agentTag, tool, reason, status, timeout, timestamp, missing = [] } = record;
  const needed: Content = missing.length > 0 && html`<p class="muted">Missing: ${displayText(roleText(missing))}</p>`;
  return html`<li><h2><a href="${inboxUrl}/${requestId}">${shortenText(tool, MAX_TAG).text}</a></h2>
<p class="muted">${shortenText(agentTag, MAX_TAG).text} &middot; <time datetime="${timestamp}">${utcText(timestamp)}</time></p>
<p>${shortenText(reason, MAX_TEXT).text}</p>
<p><code>${renderJson(shorten(parametersText(record), MAX_TEXT).text)}</code></p>
${needed}<p class="state ${status}">${status === 'waiting' ? html`<time datetime="${timeout}" data-left>${timeLeft(record, now)}</time>` : statusText(record, utcText)}</p></li>
`;
}

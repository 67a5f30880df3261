import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import type { HtmlEscapedString } from 'hono/utils/html';
import type { InboxPage } from '../../../../core/approval/inbox.ts';
import { parametersText, statusText, timeLeft, utcText } from '../../../../core/approval/record-text.ts';
import { APPROVAL_STATUSES, type ApprovalRecord } from '../../../../core/approval/request.ts';
import { shorten } from '../../../../core/display/limit.ts';
import { roleText } from '../../../../core/display/role-text.ts';
import { displayText, shortenText } from '../../../../core/display/text.ts';
import type { ServerConfig } from '../../../define.ts';
import { page } from '../layout.tsx';
import { renderJson } from '../render-json.tsx';
import { withoutSlash } from '../token.ts';
import { type InboxFrame, inboxBar } from './frame.tsx';
import { LIVE_SCRIPT, liveState } from './live.tsx';

/** The fields of the filter, as a URL has them. */
export interface ListFilter {
  readonly status: ApprovalRecord['status'];
  readonly agent: string;
  readonly tool: string;
  readonly text: string;
  readonly mine: boolean;
}

/** A list as everybody sees it, as markup: many pages show the same. */
export interface ShownList {
  readonly heading: string;
  readonly windowTitle: string;
  /** What an open page keeps. */
  readonly filter: HtmlEscapedString;
  /** What it takes over. */
  readonly list: HtmlEscapedString;
}

interface ListContext extends Omit<InboxFrame, 'visitor'> {
  readonly environments: ServerConfig['environments'];
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
    filter: raw(
      <>
        {environmentLinks(context)}
        {statusLinks(context)}
        {filterForm(context)}
      </>,
    ),
    list: raw(
      <>
        {liveState(context)}
        <div data-live="list">
          {records.length === 0 ? (
            emptyNotice(context)
          ) : (
            <ol class="requests">{records.map((record) => item(context, record))}</ol>
          )}
          <nav class="buttons" aria-label="Pages">
            {!isFirst && (
              <a href={listUrl(context)} class="button">
                First page
              </a>
            )}
            {cursor !== undefined && (
              <a href={listUrl(context, cursor)} class="button">
                Next page
              </a>
            )}
          </nav>
        </div>
      </>,
    ),
  };
}

/** The page of a list, for one visitor. */
export function listPage(frame: InboxFrame, { heading, windowTitle, filter, list }: ShownList): string {
  return page(heading, [filter, list, LIVE_SCRIPT], { bar: inboxBar(frame), isWide: true, windowTitle });
}

/** What a script takes over into the page that is open. */
export function refreshedList({ windowTitle, list }: ShownList): string {
  const document = (
    <html lang="en">
      <head>
        <title>{windowTitle}</title>
      </head>
      <body>{list}</body>
    </html>
  );
  return `<!doctype html>${document}`;
}

const HEADINGS = { waiting: 'Waiting', approved: 'Approved', rejected: 'Rejected', cancelled: 'Cancelled' } as const;

/** The list with this filter, from a cursor on. */
function listUrl({ inboxUrl, filter }: Pick<ListContext, 'inboxUrl' | 'filter'>, cursor?: string): string {
  const { status, agent, tool, text, mine } = filter;
  const fields = { status, agent, tool, text, mine: mine ? '1' : '', cursor: cursor ?? '' };
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ''));
  return `${inboxUrl}?${query}`;
}

/** The inboxes of other environments, which have stores of their own, with the same filter. */
function environmentLinks(context: ListContext): Child {
  const { env, environments = {}, filter } = context;
  const bases = Object.entries(environments).filter(([name, base]) => name !== env && base !== undefined);
  if (bases.length === 0) return undefined;
  return (
    <nav class="tabs" aria-label="Environment">
      <a href={listUrl(context)} aria-current="page">
        {env}
      </a>
      {bases.map(([name, base = '']) => (
        <a href={listUrl({ inboxUrl: `${withoutSlash(base)}/inbox`, filter })}>{name}</a>
      ))}
    </nav>
  );
}

/** The statuses, as links that keep the rest of the filter. */
function statusLinks(context: ListContext): Child {
  return (
    <nav class="tabs" aria-label="Status">
      {APPROVAL_STATUSES.map((status) => (
        <a
          href={listUrl({ ...context, filter: { ...context.filter, status } })}
          aria-current={status === context.filter.status ? 'page' : undefined}
        >
          {HEADINGS[status]}
        </a>
      ))}
    </nav>
  );
}

function filterForm({ inboxUrl, filter }: ListContext): Child {
  const { status, agent, tool, text, mine } = filter;
  return (
    <details open={isFiltered(filter)}>
      <summary>Filter</summary>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers before 2023 do not know `search` */}
      <form class="filter" method="get" action={inboxUrl} role="search">
        <input type="hidden" name="status" value={status} />
        <label>
          Agent <input name="agent" value={agent} />
        </label>
        <label>
          Tool <input name="tool" value={tool} />
        </label>
        <label>
          Text <input type="search" name="text" value={text} />
        </label>
        <label class="check">
          <input type="checkbox" name="mine" value="1" checked={mine} /> Mine to decide
        </label>
        <button>Apply</button>
      </form>
    </details>
  );
}

const isFiltered = ({ agent, tool, text, mine }: ListFilter): boolean =>
  [agent, tool, text].some((one) => one !== '') || mine;

function emptyNotice({ filter, page: { cursor }, isFirst, inboxUrl }: ListContext): Child {
  if (cursor !== undefined) return <p class="empty">Nothing found so far. More requests are on the next page.</p>;
  if (!isFirst) return <p class="empty">No more requests.</p>;
  if (isFiltered(filter)) {
    return (
      <p class="empty">
        No request matches the filter. <a href={`${inboxUrl}?status=${filter.status}`}>Clear the filter</a>
      </p>
    );
  }
  return (
    <p class="empty">
      {filter.status === 'waiting' ? 'Nothing is waiting for a decision.' : `No request is ${filter.status}.`}
    </p>
  );
}

function item({ inboxUrl, now }: ListContext, record: ApprovalRecord): Child {
  const { requestId, agentTag, tool, reason, status, timeout, timestamp, missing = [] } = record;
  return (
    <li>
      <h2>
        <a href={`${inboxUrl}/${requestId}`}>{shortenText(tool, MAX_TAG).text}</a>
      </h2>
      <p class="muted">
        {shortenText(agentTag, MAX_TAG).text} &middot; <time datetime={timestamp}>{utcText(timestamp)}</time>
      </p>
      <p>{shortenText(reason, MAX_TEXT).text}</p>
      <p>
        <code>{renderJson(shorten(parametersText(record), MAX_TEXT).text)}</code>
      </p>
      {missing.length > 0 && <p class="muted">Missing: {displayText(roleText(missing))}</p>}
      <p class={`state ${status}`}>
        {status === 'waiting' ? (
          <time datetime={timeout} data-left="">
            {timeLeft(record, now)}
          </time>
        ) : (
          statusText(record, utcText)
        )}
      </p>
    </li>
  );
}

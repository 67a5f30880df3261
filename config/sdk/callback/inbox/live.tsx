import { createHash } from 'node:crypto';
import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import type { ApprovalRecord } from '../../../../core/approval/request.ts';
import { PAGE_HEADERS } from '../layout.tsx';
import type { InboxFrame } from './frame.tsx';

/*
 * What keeps an open page current: it counts down by the server's clock, loads the page again when an event says that
 * something has changed, says when the store does not answer, and takes over the parts marked with `data-live`. Everything works without it.
 *
 * Browsers open six connections to an origin over HTTP/1.1, and a stream is one: only a page that is visible has one, and
 * gives it back when a form is sent. After an event a page waits for a random time, so that not all pages load at once. A
 * list in which the person points at something or has the focus stays until asked. No event says that an approved call has run, so its page looks for a minute.
 */

/** How old a list may be that a page loads. A page waits for longer after an event: so it sees what has changed. */
export const LIST_AGE_MS = 100;
const REFRESH = 'x-refresh';

const SCRIPT = `(() => {
  const main = document.querySelector('main');
  const live = document.querySelector('[data-events]');
  if (!live || !main) return;
  const ahead = Number(live.dataset.now) - Date.now();
  const [said, outage, show] = ['span', 'span', 'button'].map((name) => document.createElement(name));
  live.append(said, outage);
  show.type = 'button';
  show.textContent = 'The list has changed: show';
  const say = (text) => { said.textContent = text; };
  let isClosed = false;
  const close = () => { isClosed = true; for (const form of document.querySelectorAll('[data-form]')) form.remove(); };
  const UNITS = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const left = (seconds) => {
    const first = UNITS.findIndex(([size]) => seconds >= size);
    let rest = seconds;
    return UNITS.slice(first, first + 2).flatMap(([size, name]) => {
      const count = Math.floor(rest / size);
      rest -= count * size;
      return count === 0 ? [] : [count + ' ' + name];
    }).join(' ') + ' left';
  };
  const tick = () => {
    for (const time of document.querySelectorAll('time[data-left]')) {
      const seconds = Math.floor((Date.parse(time.dateTime) - Date.now() - ahead) / 1000);
      time.textContent = seconds >= 1 ? left(seconds) : 'expired';
      if (seconds >= 1 || !live.dataset.request || isClosed) continue;
      close();
      say('The request has expired. Nothing was decided here.');
    }
  };
  setInterval(tick, 1000);

  const shapeOf = (part) => {
    const copy = part.cloneNode(true);
    for (const time of copy.querySelectorAll('time[data-left]')) time.textContent = '';
    return copy.innerHTML;
  };
  const focusOn = (part) => { part.tabIndex = -1; part.focus({ preventScroll: true }); };
  const take = (part, fresh) => {
    const active = document.activeElement;
    const href = active.getAttribute('href');
    const same = active.id ? '#' + CSS.escape(active.id) : href && '[href="' + CSS.escape(href) + '"]';
    const isInside = part.contains(active);
    const taken = document.importNode(fresh, true);
    part.replaceWith(taken);
    if (part === active) focusOn(taken);
    else if (isInside && same) taken.querySelector(same)?.focus({ preventScroll: true });
    return taken;
  };
  let pending;
  const isUsed = (list) => {
    const active = document.activeElement;
    return list.matches(':hover') || show.matches(':hover') || active === show || (active !== list && list.contains(active));
  };
  const update = (part, fresh) => {
    const hasChanged = shapeOf(part) !== shapeOf(fresh);
    const isList = part.dataset.live === 'list';
    if (isList && isUsed(part)) {
      pending = fresh;
      if (hasChanged && !show.isConnected) live.append(show);
      return;
    }
    if (hasChanged) take(part, fresh);
    if (isList) show.remove();
  };
  show.addEventListener('click', () => {
    show.remove();
    focusOn(take(document.querySelector('[data-live="list"]'), pending));
    tick();
  });

  const load = async () => {
    const response = await fetch(location.href, { headers: { '${REFRESH}': '1' }, redirect: 'error', signal: AbortSignal.timeout(20000) });
    if (!response.ok) return response.status;
    const next = new DOMParser().parseFromString(await response.text(), 'text/html');
    const state = next.querySelector('[data-events]');
    if (!state) return 0;
    document.title = next.title;
    for (const part of document.querySelectorAll('[data-live]')) {
      const fresh = next.querySelector('[data-live="' + part.dataset.live + '"]');
      if (fresh) update(part, fresh);
    }
    live.toggleAttribute('data-open', state.hasAttribute('data-open'));
    if (live.dataset.request && live.dataset.status === 'waiting' && state.dataset.status !== 'waiting') {
      live.dataset.status = state.dataset.status;
      close();
      say('The request is ' + state.dataset.status + '.');
    }
    tick();
    return response.status;
  };

  let events, timer, openUntil;
  let last = -Infinity;
  let failures = 0;
  let isBusy = false;
  let isSignedOut = false;
  const later = (delay) => {
    if (!document.hidden && !isSignedOut) timer ??= setTimeout(refresh, Math.max(delay, last + 1300 - performance.now()));
  };
  const disconnect = () => {
    events?.close();
    events = undefined;
    clearTimeout(timer);
    timer = undefined;
  };
  const notLive = () => { outage.textContent = ' This page does not update at the moment. It tries again.'; };
  const fail = () => {
    notLive();
    later(Math.min(60000, 2000 * 2 ** failures++ * (1 + Math.random() / 2)));
  };
  const recover = () => { failures = 0; outage.textContent = ''; };
  const watchRun = () => {
    if (!live.hasAttribute('data-open')) return;
    openUntil ??= performance.now() + 60000;
    if (performance.now() < openUntil) later(2000);
  };
  const refresh = async () => {
    timer = undefined;
    if (isSignedOut) return;
    if (isBusy) return later(1000);
    isBusy = true;
    last = performance.now();
    const status = await load().catch(() => 0);
    isBusy = false;
    if (status === 401 || status === 403) {
      isSignedOut = true;
      disconnect();
      close();
      show.remove();
      outage.textContent = '';
      return say('You are signed out.');
    }
    if (status !== 200) return fail();
    if (events?.readyState === 1) recover();
    if (!events && !timer && !document.hidden) connect();
    watchRun();
  };
  const changed = () => later(live.dataset.request ? Math.random() * 200 : ${LIST_AGE_MS + 50} + Math.random() * 500);
  const connect = () => {
    const source = new EventSource(live.dataset.events);
    let errors = 0;
    events = source;
    source.addEventListener('open', () => { errors = 0; recover(); });
    source.addEventListener('error', () => {
      if (source !== events) return;
      if (source.readyState === 2) { events = undefined; fail(); }
      else if (++errors > 1) notLive();
    });
    source.addEventListener('changed', changed);
    source.addEventListener('outage', notLive);
  };
  document.addEventListener('visibilitychange', () => { if (document.hidden) disconnect(); else later(0); });
  addEventListener('pagehide', disconnect);
  addEventListener('pageshow', (event) => { if (event.persisted) later(0); });
  document.addEventListener('submit', () => { disconnect(); timer = setTimeout(refresh, 10000); });
  if (!document.hidden) connect();
  watchRun();
  tick();
})();`;

/** As other pages, with this script and requests to this origin. */
export const LIVE_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy': `${PAGE_HEADERS['content-security-policy']}; script-src 'sha256-${createHash('sha256').update(SCRIPT).digest('base64')}'; connect-src 'self'`,
};

interface LivePage extends Pick<InboxFrame, 'inboxUrl'> {
  /** By the store's clock. */
  readonly now: Date;
  /** The request of the page. */
  readonly request?: Pick<ApprovalRecord, 'requestId' | 'status' | 'run'>;
}

export const LIVE_SCRIPT: Child = raw(`<script>${SCRIPT}</script>`);

/** A script loads a page again for what has changed in it. */
export const isRefresh = ({ headers }: Request): boolean => headers.get(REFRESH) !== null;

/** Makes a page live, with `LIVE_SCRIPT` after it. What it announces is read out. */
export function liveState({ inboxUrl, now, request }: LivePage): Child {
  return (
    <p
      role="status"
      aria-live="polite"
      data-events={`${inboxUrl}/events${request ? `?request=${request.requestId}` : ''}`}
      data-now={now.getTime()}
      data-request={request?.requestId}
      data-status={request?.status}
      data-open={request && mayStillRun(request) ? '' : undefined}
    />
  );
}

const mayStillRun = ({ status, run }: Pick<ApprovalRecord, 'status' | 'run'>): boolean =>
  status === 'approved' && (run === 'none' || run === 'claimed');

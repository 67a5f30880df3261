import { createHash } from 'node:crypto';
import type { ApprovalRecord } from '../../../../core/approval/request.ts';
import { type Html, html } from '../html.ts';
import { PAGE_HEADERS } from '../layout.ts';
import type { InboxFrame } from './frame.ts';

/*
 * What keeps an open page current: it counts down by the server's clock, loads the page again when an event says that
 * something has changed, and takes over the parts marked with `data-live`. Everything works without it.
 */

const SCRIPT = `(() => {
  const main = document.querySelector('main');
  const live = document.querySelector('[data-events]');
  if (!live || !main) return;
  const ahead = Number(live.dataset.now) - Date.now();
  const say = (text) => { live.textContent = text; };
  const close = () => { for (const form of document.querySelectorAll('[data-form]')) form.remove(); };
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
      if (seconds >= 1) { time.textContent = left(seconds); continue; }
      if (time.textContent === 'expired') continue;
      time.textContent = 'expired';
      if (!live.dataset.request) continue;
      close();
      say('The request has expired. Nothing was decided here.');
    }
  };
  setInterval(tick, 1000);
  let timer;
  const refresh = async () => {
    timer = undefined;
    const response = await fetch(location.href, { redirect: 'error' }).catch(() => undefined);
    if (!response) return;
    if (response.status === 401 || response.status === 403) { events.close(); say('You are signed out.'); close(); return; }
    if (!response.ok) return;
    const next = new DOMParser().parseFromString(await response.text(), 'text/html');
    document.title = next.title;
    for (const part of document.querySelectorAll('[data-live]')) {
      const fresh = next.querySelector('[data-live="' + part.dataset.live + '"]');
      if (fresh && fresh.innerHTML !== part.innerHTML) part.replaceWith(document.importNode(fresh, true));
    }
    const state = next.querySelector('[data-events]');
    if (state && live.dataset.request && live.dataset.status === 'waiting' && state.dataset.status !== 'waiting') {
      live.dataset.status = state.dataset.status;
      close();
      say('The request is ' + state.dataset.status + '.');
    }
    tick();
  };
  const events = new EventSource(live.dataset.events);
  const changed = (event) => {
    const { requestId } = JSON.parse(event.data);
    if (live.dataset.request && requestId && requestId !== live.dataset.request) return;
    timer ??= setTimeout(refresh, 200 + Math.random() * 600);
  };
  for (const type of ['created', 'voted', 'decided', 'expired', 'sync']) events.addEventListener(type, changed);
  tick();
})();`;

/** As other pages, with this script and requests to this origin. */
export const LIVE_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy': `${PAGE_HEADERS['content-security-policy']}; script-src 'sha256-${createHash('sha256').update(SCRIPT).digest('base64')}'; connect-src 'self'`,
};

interface LivePage extends InboxFrame {
  /** By the store's clock. */
  readonly now: Date;
  /** The request of the page. */
  readonly request?: Pick<ApprovalRecord, 'requestId' | 'status'>;
}

/** Makes a page live. What it announces is read out. */
export function liveScript({ inboxUrl, now, request }: LivePage): Html {
  const script: Html = { markup: SCRIPT };
  const about = request && html` data-request="${request.requestId}" data-status="${request.status}"`;
  return html`<p role="status" aria-live="polite" data-events="${inboxUrl}/events" data-now="${now.getTime()}"${about}></p>
<script>${script}</script>`;
}

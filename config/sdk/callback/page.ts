import { createHash } from 'node:crypto';
import { displayJson, displayText } from '../../../core/approval/display.ts';
import type { ApprovalRecord, ApprovalRequest } from '../../../core/approval/request.ts';

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
pre{white-space:pre-wrap;word-break:break-all;background:#f4f4f4;padding:1rem;border-radius:4px}
dt{font-weight:600}dd{margin:0 0 .5rem}textarea,input{width:100%;font:inherit;box-sizing:border-box}textarea{font-family:monospace}
button{font:inherit;padding:.4rem 1.2rem;margin:1rem .5rem 0 0}
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}pre{background:#262626}}`;

/** Pages run no scripts, load nothing, submit only to their own origin, and cannot be framed. */
export const PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  'x-frame-options': 'DENY',
};

/** The response to a GET, also for link previews: without parameters and decision form. */
export function summaryPage(request: ApprovalRequest): string {
  return page(
    'Approval',
    `${requestFacts(request, { parameters: false })}
<form method="post"><input type="hidden" name="action" value="show"><button>Show the request</button></form>`,
  );
}

/** The whole request with its decision form. `view` proves that the request was shown. */
export function decisionPage(request: ApprovalRequest, description: string | undefined, view: string): string {
  return page(
    'Approval',
    `${requestFacts(request, { parameters: true, ...(description !== undefined && { description }) })}
<form method="post">
<input type="hidden" name="view" value="${escapeHtml(view)}">
<p><label>Reason <input name="reason" maxlength="2000" autocomplete="off"></label></p>
<p><label>Parameters to change, as JSON; only when approving <textarea name="modifiedParams" rows="3" spellcheck="false"></textarea></label></p>
<button name="action" value="approve">Approve</button><button name="action" value="reject">Reject</button>
</form>`,
  );
}

/** The outcome of a request, without parameters or a form. */
export function closedPage(record: ApprovalRecord): string {
  const { status, cause, decidedAt } = record;
  const ended = status === 'waiting' || cause === 'timeout' ? 'has expired' : `was ${status}`;
  const at = decidedAt === undefined ? '' : ` at ${decidedAt}`;
  return page(
    'Approval',
    `<p>The request ${escapeHtml(`${ended}${at}`)}.</p>\n${requestFacts(record, { parameters: false })}`,
  );
}

export function messagePage(title: string, message: string): string {
  return page(title, `<p>${escapeHtml(displayText(message))}</p>`);
}

function requestFacts(
  { agentTag, tool, reason, timeout, parameters }: ApprovalRequest,
  include: { readonly parameters: boolean; readonly description?: string },
): string {
  const rows: [string, string][] = [
    ['Agent', agentTag],
    ['Tool', tool],
    ...(include.description === undefined ? [] : ([['What it does', include.description]] as [string, string][])),
    ...(include.parameters ? ([['Reason', reason]] as [string, string][]) : []),
    ['Expires at', timeout],
  ];
  const list = rows.map(([name, value]) => `<dt>${name}</dt><dd>${escapeHtml(displayText(value))}</dd>`).join('\n');
  const body = include.parameters ? `<pre>${escapeHtml(displayJson(parameters))}</pre>` : '';
  return `<dl>${list}</dl>${body}`;
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)}</h1>
${body}
</body></html>
`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

import { createHash } from 'node:crypto';
import type { SignalResult } from '../../../core/approval/decide.ts';
import { unattendedText } from '../../../core/approval/public-view.ts';
import type { ApprovalRecord, ApprovalRequest } from '../../../core/approval/request.ts';
import { DEFAULT_WIDTH } from '../../../core/display/fold.ts';
import { jsonLines, warningLines } from '../../../core/display/json.ts';
import { roleText } from '../../../core/display/role-text.ts';
import { displayText } from '../../../core/display/text.ts';

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
pre{white-space:pre-wrap;word-break:break-all;background:#f4f4f4;padding:1rem;border-radius:4px}
.warnings{border:2px solid}.question{font-weight:600}
dt{font-weight:600}dd{margin:0 0 .5rem}textarea,input{width:100%;font:inherit;box-sizing:border-box}textarea{font-family:monospace}
button{font:inherit;padding:.4rem 1.2rem;margin:1rem .5rem 0 0}
@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}pre{background:#262626}}`;

/** Pages run no scripts, load nothing, submit only to their own origin, and cannot be framed. */
export const PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  'x-frame-options': 'DENY',
};

/** Who is signed in, where people can sign in. */
export interface Account {
  /** The id of the person; undefined if nobody is signed in. */
  readonly person: string | undefined;
  /** The URL of the request. */
  readonly page: string;
}

/** A request, and where it comes from. */
export interface PageContext {
  readonly request: ApprovalRequest;
  readonly product: string;
  readonly env: string;
  /** Absent where nobody can sign in, or where the person is known without. */
  readonly account?: Account | undefined;
}

/** The response to a GET, also for link previews: without parameters and decision form. */
export function summaryPage(context: PageContext): string {
  return page(
    'Approval',
    `${accountNotice(context)}${requestFacts(context)}
<form method="post"><input type="hidden" name="action" value="show"><button>Show the request</button></form>`,
  );
}

/**
 * The whole request with its decision form. `view` proves that the request was shown. The form has no one-line field,
 * in which Enter would press the first button.
 */
export function decisionPage(
  context: PageContext & { readonly request: ApprovalRecord },
  { description, digest, view }: { readonly description?: string; readonly digest: string; readonly view: string },
): string {
  const { tool, agentTag, parameters, reason } = context.request;
  const more: [string, string][] = description === undefined ? [] : [['What it does', description]];
  const lines = (all: readonly string[]) => escapeHtml(all.join('\n'));
  const warnings = warningLines(parameters);
  const question = `Let ${displayText(agentTag)} call ${displayText(tool)} in ${placeText(context)}? Digest of what is shown: ${digest}`;
  return page(
    'Approval',
    `${accountNotice(context)}${requestFacts(context, [...more, ['Reason', reason], ['Digest', digest]])}
<pre>${lines(jsonLines(parameters, DEFAULT_WIDTH))}</pre>
${warnings.length === 0 ? '' : `<pre class="warnings">${lines(warnings)}</pre>\n`}<form method="post">
<input type="hidden" name="view" value="${escapeHtml(view)}">${personField(context)}
<p class="question">${escapeHtml(question)}</p>${ruleNotice(context)}${unattendedNotice(context.request)}
<p><label>Reason <textarea name="reason" rows="1" maxlength="2000"></textarea></label></p>
<p><label>Parameters to change, as JSON; only when approving <textarea name="modifiedParams" rows="3" spellcheck="false"></textarea></label></p>
<button name="action" value="approve">Approve</button><button name="action" value="reject">Reject</button>
</form>`,
  );
}

/** The outcome of a request, without parameters or a form. */
export function closedPage(context: PageContext & { readonly request: ApprovalRecord }): string {
  const { status, cause, decidedAt } = context.request;
  const ended = status === 'waiting' || cause === 'timeout' ? 'has expired' : `was ${status}`;
  const at = decidedAt === undefined ? '' : ` at ${decidedAt}`;
  return page('Approval', `<p>The request ${escapeHtml(`${ended}${at}`)}.</p>\n${requestFacts(context)}`);
}

/** The response to a decision. */
export function decidedPage(context: PageContext, result: SignalResult): string {
  const { status, decidedAt } = result;
  if (status === 'waiting') {
    const text = `Your vote was stored at ${decidedAt}. Missing: ${roleText(result.missing ?? [])}.`;
    return page('The request is waiting', `<p>${escapeHtml(displayText(text))}</p>\n${requestFacts(context)}`);
  }
  const decided = `<p>Decided at ${escapeHtml(decidedAt)}.</p>${unattendedNotice(result)}`;
  return page(`The request is ${status}`, `${decided}\n${requestFacts(context)}`);
}

/** Who must approve, and that this page does not know who the person is. */
function ruleNotice({
  request: { rule, missing = [] },
  account,
}: PageContext & { readonly request: ApprovalRecord }): string {
  if (!rule) return '';
  const needed = `Approvals that are missing: ${roleText(missing)}.`;
  const isCounted = rule.unverified || account?.person !== undefined;
  const text = isCounted
    ? needed
    : `${needed} The rule counts only people who were verified: decide with a token of a person, or where you are logged in.`;
  return `\n<p>${escapeHtml(displayText(text))}</p>`;
}

function unattendedNotice({ unattendedSince }: Pick<SignalResult, 'unattendedSince'>): string {
  return unattendedSince === undefined ? '' : `\n<p>${escapeHtml(unattendedText(unattendedSince))}</p>`;
}

/** Asks for a sign-in, after something that was not done. */
export function signInPage(message: string, account: Account): string {
  const back = `<p><a href="${escapeHtml(account.page)}">Back to the request</a></p>`;
  return page('Approval', `<p>${escapeHtml(displayText(message))}</p>\n${accountNotice({ account })}${back}`);
}

function accountNotice({ account }: Pick<PageContext, 'account'>): string {
  if (!account) return '';
  const { person, page } = account;
  if (person === undefined)
    return `<p>Nobody is signed in. <a href="${escapeHtml(`${page}&sign-in=1`)}">Sign in</a></p>\n`;
  return `<form method="post" action="${escapeHtml(page)}"><input type="hidden" name="action" value="sign-out"><p>Signed in as ${escapeHtml(displayText(person))}. <button>Sign out</button></p></form>\n`;
}

/** The form decides as this person only. */
function personField({ account }: Pick<PageContext, 'account'>): string {
  return account?.person === undefined
    ? ''
    : `\n<input type="hidden" name="person" value="${escapeHtml(account.person)}">`;
}

export function messagePage(title: string, message: string): string {
  return page(title, `<p>${escapeHtml(displayText(message))}</p>`);
}

function requestFacts(context: PageContext, more: readonly (readonly [string, string])[] = []): string {
  const { requestId, agentTag, tool, timeout } = context.request;
  const rows = [
    ['Product and environment', placeText(context)],
    ['Request', requestId],
    ['Agent', agentTag],
    ['Tool', tool],
    ...more,
    ['Expires at', timeout],
  ] as const;
  const list = rows.map(([name, value]) => `<dt>${name}</dt><dd>${escapeHtml(displayText(value))}</dd>`).join('\n');
  return `<dl>${list}</dl>`;
}

function placeText({ product, env }: PageContext): string {
  return `${displayText(product)}, ${displayText(env)}`;
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

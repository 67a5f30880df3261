import { createHash } from 'node:crypto';
import { type Content, type Html, html } from './html.ts';

const STYLE = `:root{color-scheme:light dark;--back:#f6f7f9;--card:#fff;--text:#1b1f24;--muted:#57606a;--line:#d3d9e0;--field:#8c959f;--accent:#0b57d0;--on-accent:#fff;--good:#116329;--bad:#b3261e;--warn:#fff4ce}
@media(prefers-color-scheme:dark){:root{--back:#111418;--card:#1a1f25;--text:#e6e9ed;--muted:#a3adb8;--line:#353d47;--field:#77828e;--accent:#8ab4f8;--on-accent:#0d1b33;--good:#7ee2a8;--bad:#ff9a92;--warn:#3d3312}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1.5rem 1rem 4rem;color:var(--text);background:var(--back);overflow-wrap:anywhere}
body.wide{max-width:64rem}
h1{font-size:1.6rem;line-height:1.25;margin:1.5rem 0 1rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
a{color:var(--accent)}
pre,code,.code{font-family:ui-monospace,monospace;font-size:.9em}
pre{white-space:pre-wrap;word-break:break-all;background:var(--card);border:1px solid var(--line);padding:1rem;border-radius:8px;margin:1rem 0}
.warnings{border:2px solid var(--bad);background:var(--warn)}
.question{font-weight:600}.muted{color:var(--muted)}.bad{color:var(--bad)}.good{color:var(--good)}
.bar{display:flex;flex-wrap:wrap;gap:.25rem 1rem;align-items:center;justify-content:space-between;border-bottom:1px solid var(--line);padding-bottom:.75rem}
.bar p{margin:0}.bar form{margin:0}
dl{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem;margin:1rem 0}
dt{font-size:.875rem;color:var(--muted)}dd{margin:0 0 .6rem}dd:last-child{margin:0}
label{display:block;font-weight:600}
input,textarea,select{font:inherit;color:inherit;background:var(--card);border:1px solid var(--field);border-radius:6px;padding:.45rem .6rem;min-height:2.5rem;width:100%;margin-top:.2rem}
input[type=checkbox],input[type=radio]{width:1.25rem;min-height:1.25rem;height:1.25rem;margin:0 .4rem 0 0;vertical-align:middle}
textarea{font-family:ui-monospace,monospace}
button,.button{font:inherit;font-weight:600;display:inline-block;min-height:2.5rem;padding:.4rem 1.2rem;border-radius:6px;border:1px solid var(--field);background:var(--card);color:var(--text);cursor:pointer;text-decoration:none}
button[value=approve],.first{background:var(--accent);border-color:var(--accent);color:var(--on-accent)}
button[value=reject]{border-color:var(--bad);color:var(--bad)}
.buttons{display:flex;flex-wrap:wrap;gap:.5rem;margin-top:1rem}
fieldset{border:1px solid var(--line);border-radius:8px;padding:.25rem 1rem 1rem;margin:1rem 0;min-width:0}legend{font-weight:600;padding:0 .4rem}
details{border:1px solid var(--line);border-radius:8px;padding:.5rem 1rem;margin:1rem 0}summary{font-weight:600;cursor:pointer;padding:.25rem 0}
.field{margin:1rem 0}.field button{margin-top:.4rem}.hint,.field .bad{font-size:.875rem;margin:.1rem 0}.hint{color:var(--muted)}
[aria-invalid]{border:2px solid var(--bad)}
.problems{border:2px solid var(--bad);border-radius:8px;padding:0 1rem;margin:1rem 0}.problems h2{margin-top:1rem}
.diff dt{font-family:ui-monospace,monospace;color:var(--text);font-weight:600}.diff pre{margin:.25rem 0 .5rem}
.default{position:absolute;width:1px;height:1px;min-height:0;padding:0;border:0;overflow:hidden;clip-path:inset(50%)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}`;

/** Pages run no scripts, load nothing, submit only to their own origin, and cannot be framed. */
export const PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  'x-frame-options': 'DENY',
};

interface Layout {
  /** What is above the heading. */
  readonly bar?: Content;
  /** For what has columns. */
  readonly isWide?: boolean;
}

/** A whole page. */
export function page(title: string, body: Content, { bar, isWide = false }: Layout = {}): string {
  const style: Html = { markup: STYLE };
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${style}</style></head>
<body${isWide && html` class="wide"`}>
${
  bar &&
  html`<header class="bar">${bar}</header>
`
}<main><h1>${title}</h1>
${body}
</main></body></html>
`.markup;
}

import { createHash } from 'node:crypto';
import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';

const STYLE = `:root{color-scheme:light dark;--back:#f4f6f8;--card:#fff;--text:#1a2029;--muted:#56606c;--line:#dde3e9;--field:#818b96;--accent:#0b57d0;--accent-soft:#eaf1fe;--on-accent:#fff;--good:#116329;--bad:#b3261e;--warn:#fff6dc;--shadow:0 1px 2px #1a20290d,0 4px 16px #1a20290a}
@media(prefers-color-scheme:dark){:root{--back:#0f1317;--card:#181d23;--text:#e6eaee;--muted:#a2adb9;--line:#2e3640;--field:#76818d;--accent:#8ab4f8;--accent-soft:#1b2a42;--on-accent:#0b1a31;--good:#7ee2a8;--bad:#ff9a92;--warn:#352d14;--shadow:none}}
*{box-sizing:border-box}
body{font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;max-width:48rem;margin:0 auto;padding:1.25rem 1rem 4rem;color:var(--text);background:var(--back);accent-color:var(--accent);overflow-wrap:anywhere;-webkit-text-size-adjust:100%}
body.wide{max-width:68rem}
h1{font-size:1.625rem;line-height:1.25;font-weight:650;letter-spacing:-.015em;margin:1.75rem 0 1rem}
h2{font-size:1.125rem;line-height:1.35;font-weight:650;margin:2rem 0 .5rem}
h3{font-size:1rem;font-weight:600;margin:1.25rem 0 .5rem}
p{margin:1rem 0}
a{color:var(--accent);text-underline-offset:.15em}a:hover{text-decoration-thickness:2px}
pre,code,.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre,code,.code{font-size:.875em}
pre{line-height:1.6;white-space:pre-wrap;word-break:break-all;background:var(--card);border:1px solid var(--line);padding:1rem 1.25rem;border-radius:10px;margin:1rem 0}
blockquote{margin:1rem 0;padding:.75rem 1.25rem;white-space:pre-wrap;background:var(--card);border:1px solid var(--line);border-left:4px solid var(--field);border-radius:10px}
.warnings{border-color:var(--bad);border-left-width:5px;background:var(--warn);word-break:normal}
.question{font-size:1.0625rem;font-weight:600;background:var(--accent-soft);border-left:4px solid var(--accent);border-radius:10px;padding:.8rem 1.1rem;margin:1.5rem 0}
.question span{display:block;font-size:.875rem;font-weight:400;color:var(--muted)}
dd,blockquote,.hint,.requests p{unicode-bidi:plaintext}time{unicode-bidi:isolate}
.muted{color:var(--muted)}.bad{color:var(--bad)}.good{color:var(--good)}
.bar{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;justify-content:space-between;border-bottom:1px solid var(--line);padding-bottom:.75rem;font-size:.9375rem}
.bar p,.bar form{margin:0}.bar form p{display:flex;flex-wrap:wrap;gap:.4rem .8rem;align-items:center}.bar button{font-size:.875rem;min-height:2rem;padding:.15rem .8rem}
dl{display:grid;grid-template-columns:minmax(8rem,max-content) minmax(0,1fr);background:var(--card);border:1px solid var(--line);border-radius:10px;box-shadow:var(--shadow);padding:.4rem 1.25rem;margin:1rem 0}
dt,dd{margin:0;padding:.45rem 0}dt{color:var(--muted);font-size:.9375rem;line-height:1.65;padding-right:1.5rem}
dd+dt,dd+dt+dd{border-top:1px solid var(--line)}
label{display:block;font-weight:600}
input,textarea,select{font:inherit;font-weight:400;line-height:1.4;color:inherit;background:var(--card);border:1px solid var(--field);border-radius:8px;padding:.55rem .75rem;min-height:2.75rem;width:100%;margin-top:.35rem}
textarea{display:block;font-size:.9375rem;resize:vertical}@supports(field-sizing:content){textarea{field-sizing:content;max-height:26rem;resize:none}}textarea[spellcheck=false]{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
input[type=checkbox],input[type=radio]{width:1.25rem;min-height:1.25rem;height:1.25rem;margin:0 .5rem 0 0;vertical-align:middle}
button,.button{font:inherit;font-weight:600;line-height:1.4;display:inline-block;min-height:2.75rem;padding:.5rem 1.35rem;border-radius:8px;border:1px solid var(--field);background:var(--card);color:var(--text);text-align:center;text-decoration:none;cursor:pointer}
button:hover,.button:hover{border-color:var(--text)}
button[value=approve],.first{background:var(--accent);border-color:var(--accent);color:var(--on-accent)}
button[value=reject]{border-color:var(--bad);color:var(--bad)}
.buttons{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.5rem}.buttons>*{min-width:9rem}
main ul,main ol{padding-left:1.25rem}main li{margin:.35rem 0}
nav.tabs{display:flex;flex-wrap:wrap;gap:.25rem;border-bottom:1px solid var(--line);margin:0 0 1rem}.tabs a{padding:.6rem .9rem;color:var(--muted);text-decoration:none;border-bottom:3px solid transparent}.tabs a:hover{color:var(--text)}.tabs a[aria-current]{color:var(--text);font-weight:600;border-color:var(--accent)}
.filter{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.75rem;align-items:end;margin:1rem 0 1.5rem}.filter label{font-size:.9375rem}.filter .check{display:flex;align-items:center;min-height:2.75rem;font-weight:400}
.requests{list-style:none;padding:0;display:grid;gap:.75rem}main .requests li{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;box-shadow:var(--shadow);padding:.9rem 1.25rem;display:grid;grid-template-columns:minmax(0,1fr) auto;gap:.15rem 1rem}
.requests li>*{margin:0;grid-column:1}.requests li .state{grid-column:2;grid-row:1}
.state{font-weight:600}.state::first-letter{text-transform:uppercase}.state.waiting{color:var(--accent)}.state.approved{color:var(--good)}.state.rejected{color:var(--bad)}
.empty{text-align:center;color:var(--muted);border:1px dashed var(--line);border-radius:10px;padding:3rem 1rem}
fieldset{border:1px solid var(--line);border-radius:8px;padding:.25rem 1rem 1rem;margin:1rem 0;min-width:0}legend{font-weight:600;padding:0 .4rem}
details{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.6rem 1.25rem;margin:1rem 0}summary{font-weight:600;cursor:pointer;padding:.25rem 0}
.field{margin:1rem 0}.field button{margin-top:.4rem}.hint,.field .bad{font-size:.875rem;margin:.1rem 0}.hint{color:var(--muted)}
[aria-invalid]{border:2px solid var(--bad)}
.problems,fieldset{scroll-margin-top:1rem}.field>*{scroll-margin-top:8rem}
.problems{background:var(--card);border:1px solid var(--bad);border-left-width:5px;border-radius:10px;padding:0 1.25rem;margin:1rem 0}.problems h2{margin-top:1rem}.problems:focus-visible{outline-color:var(--bad)}
.history{list-style:none;padding:0}.history li{display:flex;flex-wrap:wrap;gap:0 1rem}.history time{font-variant-numeric:tabular-nums}
.diff dt{font-family:ui-monospace,monospace;color:var(--text);font-weight:600}.diff dd{display:flex;flex-wrap:wrap;gap:.25rem 1rem}.diff dd>div{flex:1 1 calc(50% - .5rem);min-width:fit-content}.diff pre,.diff p{margin:.25rem 0 .5rem;padding:.5rem .85rem;border-left-width:3px}.diff pre{background:var(--back)}.diff p{border-left:3px solid var(--line)}.before pre{border-left-color:var(--bad)}.after pre{border-left-color:var(--good)}
.default{position:absolute;width:1px;height:1px;min-height:0;padding:0;border:0;overflow:hidden;clip-path:inset(50%)}
@media(max-width:34rem){main .requests li{display:block}.filter{grid-template-columns:1fr}dl{display:block;padding:.25rem 1rem}dt{padding:.6rem 0 0;font-size:.875rem}dd{padding:0 0 .6rem}dd+dt+dd{border-top:0}pre{font-size:.8125rem;padding:.85rem 1rem}.buttons>*{flex:1 1 100%}}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}`;

/** A check mark, in the document itself: nothing is requested for it. */
const ICON = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#0b57d0"/><path d="m9 17 5 5 9-11" fill="none" stroke="#fff" stroke-width="3.5" stroke-linecap="round" stroke-linejoin="round"/></svg>')}`;

/** Pages run no scripts, load nothing, submit only to their own origin, and cannot be framed. */
export const PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  'x-frame-options': 'DENY',
};

interface Layout {
  /** What is above the heading. */
  readonly bar?: Child;
  /** For what has columns. */
  readonly isWide?: boolean;
  /** Of the window; default: the title. */
  readonly windowTitle?: string;
}

/** A whole page. */
export function page(title: string, body: Child, { bar, isWide = false, windowTitle = title }: Layout = {}): string {
  const document = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="robots" content="noindex" />
        <meta name="viewport" content="width=device-width" />
        <title>{windowTitle}</title>
        <link rel="icon" href={ICON} />
        <style>{raw(STYLE)}</style>
      </head>
      <body class={isWide ? 'wide' : undefined}>
        {bar && <header class="bar">{bar}</header>}
        <main>
          <h1>{title}</h1>
          {body}
        </main>
      </body>
    </html>
  );
  return `<!doctype html>\n${document}\n`;
}

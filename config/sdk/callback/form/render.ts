import { displayText } from '../../../../core/display/text.ts';
import { type Content, type Html, html } from '../html.ts';
import type { BranchControl, ChoiceControl, Control, Selection, TextControl } from './control.ts';

/** A problem of what was entered. Without a field, it is one of the whole form. */
export interface FormProblem {
  readonly field?: string | undefined;
  /** The parameter, or a part of it. */
  readonly path: string;
  readonly text: string;
}

/** The id of the problems. A form is sent to this place, so that the page that answers begins there: `autofocus` yields to it. */
export const PROBLEMS = 'problems';

/** What a person or a model has written, with its line breaks: whatever it says is no text of the page. */
export const renderQuotation = (text: string): Html =>
  html`<blockquote>${displayText(text, { lines: true })}</blockquote>`;

/** The problems, with links to their fields. */
export function renderSummary(problems: readonly FormProblem[]): Content {
  if (problems.length === 0) return undefined;
  const items = problems.map(({ field, path, text }) => {
    const shown = displayText(path === '' ? text : `${path}: ${text}`);
    return html`<li>${field === undefined ? shown : html`<a href="#${field}">${shown}</a>`}</li>\n`;
  });
  return html`<div class="problems" id="${PROBLEMS}" role="alert" tabindex="-1"><h2>Nothing was decided. Correct this first:</h2>
<ul>${items}</ul></div>
`;
}

export function renderControls(controls: readonly Control[], problems: readonly FormProblem[]): Html {
  return html`${controls.map((control) => renderControl(control, problems))}`;
}

function renderControl(control: Control, problems: readonly FormProblem[]): Html {
  const own = problems.filter(({ field }) => field === control.name).map(({ text }) => displayText(text));
  switch (control.kind) {
    case 'text':
      return renderText(control, own);
    case 'choice':
      return renderField(control, own, renderSelect(control.name, control.selection, state(control, own)));
    case 'branch':
      return renderBranch(control, own, problems);
  }
}

/** A label, what is said about the field, its problems, and the control. */
function renderField(control: ChoiceControl | TextControl, problems: readonly string[], input: Content): Html {
  const { name, label } = control;
  return html`<div class="field"><label for="${name}">${label}</label>${notes(control, problems)}${input}${removeButton(control)}</div>
`;
}

function notes({ name, hint }: Control, problems: readonly string[]): Html {
  return html`${hint !== '' && html`<p class="hint" id="${name}-hint">${hint}</p>`}${
    problems.length > 0 && html`<p class="bad" id="${name}-problem">${problems.join(' ')}</p>`
  }`;
}

function describedBy({ name, hint }: Control, problems: readonly string[]): Content {
  const ids = [...(hint === '' ? [] : [`${name}-hint`]), ...(problems.length > 0 ? [`${name}-problem`] : [])];
  return ids.length > 0 && html` aria-describedby="${ids.join(' ')}"`;
}

/** Not for a group, which cannot be invalid. */
function state(control: Control, problems: readonly string[]): Html {
  return html`${describedBy(control, problems)}${problems.length > 0 && html` aria-invalid="true"`}`;
}

const MODES = { decimal: 'decimal', email: 'email', url: 'url' } as const;
const COLUMNS = 60;
const MAX_ROWS = 16;

function renderText(control: TextControl, problems: readonly string[]): Html {
  const { name, label, text, input, presence } = control;
  const attributes = html`id="${name}" name="${name}"${state(control, problems)}`;
  const direction = input === 'text' && html` dir="auto"`;
  const mode = input in MODES && html` inputmode="${MODES[input as keyof typeof MODES]}"`;
  const lines = text.split('\n');
  const rows = lines.reduce((sum, line) => sum + Math.ceil((line.length || 1) / COLUMNS), 0);
  const field =
    input === 'date'
      ? html`<input type="date" ${attributes} value="${text}">`
      : // The parser drops the first line break.
        html`<textarea ${attributes} rows="${Math.min(rows, MAX_ROWS)}" spellcheck="false" autocomplete="off"${mode}${direction}>
${text}</textarea>`;
  const select = presence && renderSelect(`${name}.s`, presence, html` aria-label="${`${label}: a text, or not`}"`);
  return renderField(control, problems, html`${select}${field}`);
}

function renderSelect(name: string, { options, selected }: Selection, attributes: Content): Html {
  const items = options.map(
    ({ value, label }) => html`<option value="${value}"${value === selected && html` selected`}>${label}</option>`,
  );
  return html`<select id="${name}" name="${name}"${attributes}>${items}</select>`;
}

function renderBranch(control: BranchControl, own: readonly string[], problems: readonly FormProblem[]): Html {
  const { name, label, marker, children, buttons, variants } = control;
  const choice =
    variants &&
    html`<div class="field"><label for="${name}.c">Kind</label>${renderSelect(`${name}.c`, variants, undefined)}${actionButton('draw', 'Show the fields of this kind', name)}</div>
`;
  return html`<fieldset id="${name}" tabindex="-1"${describedBy(control, own)}><legend>${label}</legend><input type="hidden" name="${name}" value="${marker}">${notes(control, own)}
${choice}${renderControls(children, problems)}<div class="buttons">${buttons.map(({ action, label }) => actionButton(action, label, name))}${removeButton(control)}</div></fieldset>
`;
}

function removeButton({ name, remove, label }: Control): Content {
  return remove !== undefined && actionButton(remove, `Remove ${label}`, name.slice(0, name.lastIndexOf('.')));
}

/** The page that answers is scrolled to `place`. */
const actionButton = (action: string, label: string, place: string): Html =>
  html`<button name="action" value="${action}" formaction="#${place}">${label}</button>`;

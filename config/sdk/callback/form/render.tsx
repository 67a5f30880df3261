import type { Child } from 'hono/jsx';
import { displayText } from '../../../../core/display/text.ts';
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
export const renderQuotation = (text: string): Child => <blockquote>{displayText(text, { lines: true })}</blockquote>;

/** The problems, with links to their fields. */
export function renderSummary(problems: readonly FormProblem[]): Child {
  if (problems.length === 0) return undefined;
  const items = problems.map(({ field, path, text }) => {
    const shown = displayText(path === '' ? text : `${path}: ${text}`);
    return <li>{field === undefined ? shown : <a href={`#${field}`}>{shown}</a>}</li>;
  });
  return (
    <div class="problems" id={PROBLEMS} role="alert" tabindex={-1}>
      <h2>Nothing was decided. Correct this first:</h2>
      <ul>{items}</ul>
    </div>
  );
}

export const renderControls = (controls: readonly Control[], problems: readonly FormProblem[]): Child =>
  controls.map((control) => renderControl(control, problems));

function renderControl(control: Control, problems: readonly FormProblem[]): Child {
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
function renderField(control: ChoiceControl | TextControl, problems: readonly string[], input: Child): Child {
  const { name, label } = control;
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {notes(control, problems)}
      {input}
      {removeButton(control)}
    </div>
  );
}

const notes = ({ name, hint }: Control, problems: readonly string[]): Child => [
  hint !== '' && (
    <p class="hint" id={`${name}-hint`}>
      {hint}
    </p>
  ),
  problems.length > 0 && (
    <p class="bad" id={`${name}-problem`}>
      {problems.join(' ')}
    </p>
  ),
];

type Attributes = Readonly<Record<string, string | undefined>>;

function describedBy({ name, hint }: Control, problems: readonly string[]): string | undefined {
  const ids = [...(hint === '' ? [] : [`${name}-hint`]), ...(problems.length > 0 ? [`${name}-problem`] : [])];
  return ids.join(' ') || undefined;
}

/** Not for a group, which cannot be invalid. */
const state = (control: Control, problems: readonly string[]): Attributes => ({
  'aria-describedby': describedBy(control, problems),
  'aria-invalid': problems.length > 0 ? 'true' : undefined,
});

const MODES = { decimal: 'decimal', email: 'email', url: 'url' } as const;
const COLUMNS = 60;
const MAX_ROWS = 16;

function renderText(control: TextControl, problems: readonly string[]): Child {
  const { name, label, text, input, presence } = control;
  const attributes = { id: name, name, ...state(control, problems) };
  const lines = text.split('\n');
  const rows = lines.reduce((sum, line) => sum + Math.ceil((line.length || 1) / COLUMNS), 0);
  const field =
    input === 'date' ? (
      <input type="date" {...attributes} value={text} />
    ) : (
      <textarea
        {...attributes}
        rows={Math.min(rows, MAX_ROWS)}
        spellcheck={false}
        autocomplete="off"
        inputmode={input in MODES ? MODES[input as keyof typeof MODES] : undefined}
        dir={input === 'text' ? 'auto' : undefined}
      >
        {/* The parser drops the first line break. */}
        {'\n'}
        {text}
      </textarea>
    );
  const select = presence && renderSelect(`${name}.s`, presence, { 'aria-label': `${label}: a text, or not` });
  return renderField(control, problems, [select, field]);
}

function renderSelect(name: string, { options, selected }: Selection, attributes: Attributes): Child {
  return (
    <select id={name} name={name} {...attributes}>
      {options.map(({ value, label }) => (
        <option value={value} selected={value === selected}>
          {label}
        </option>
      ))}
    </select>
  );
}

function renderBranch(control: BranchControl, own: readonly string[], problems: readonly FormProblem[]): Child {
  const { name, label, marker, children, buttons, variants } = control;
  return (
    <fieldset id={name} tabindex={-1} aria-describedby={describedBy(control, own)}>
      <legend>{label}</legend>
      <input type="hidden" name={name} value={marker} />
      {notes(control, own)}
      {variants && (
        <div class="field">
          <label for={`${name}.c`}>Kind</label>
          {renderSelect(`${name}.c`, variants, {})}
          {actionButton('draw', 'Show the fields of this kind', name)}
        </div>
      )}
      {renderControls(children, problems)}
      <div class="buttons">
        {buttons.map(({ action, label }) => actionButton(action, label, name))}
        {removeButton(control)}
      </div>
    </fieldset>
  );
}

function removeButton({ name, remove, label }: Control): Child {
  return remove !== undefined && actionButton(remove, `Remove ${label}`, name.slice(0, name.lastIndexOf('.')));
}

/** The page that answers is scrolled to `place`. */
const actionButton = (action: string, label: string, place: string): Child => (
  <button name="action" value={action} formaction={`#${place}`}>
    {label}
  </button>
);

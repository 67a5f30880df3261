import type { Child } from 'hono/jsx';
import { describeError, isSvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import type { ParameterProblem, StoredSchema } from '../../../../core/tool/json-schema.ts';
import type { ToolParameters } from '../../../../core/tool/parameters.ts';
import { pathText } from '../../../../core/validate-shape.ts';
import { parseModifiedParams } from '../decision-body.ts';
import { isHttpError } from '../http-errors.ts';
import { MAX_BODY_BYTES } from '../limits.ts';
import { applyAction, buildControls, MAX_PARTS, withoutSwitches } from './build-controls.ts';
import { type Control, isSame } from './control.ts';
import { withPlainBreaks } from './field-text.ts';
import { type FormProblem, renderControls } from './render.tsx';

/**
 * A form for the changes to the parameters of a call. `json`: without a schema, or with too much for fields. `kept`: what was
 * posted belongs to another form, so it is not read; it is posted again as it is.
 */
export type ParametersForm =
  | {
      readonly kind: 'fields';
      readonly controls: readonly Control[];
      /** Why these are not the controls that were asked for. */
      readonly problem?: string;
    }
  | { readonly kind: 'json'; readonly text: string }
  | { readonly kind: 'kept'; readonly posted: URLSearchParams; readonly problem: string };

/** For the parameters that the form does not name, such as the reason, and what a person adds. */
const RESERVED_BYTES = 16 * 1024;
const JSON_FIELD = 'modifiedParams';
const IN_JSON = { field: JSON_FIELD, path: '' };

export const isParameterField = (name: string): boolean => name.startsWith('p.');

const TOO_MUCH = `With that the form would be too large: it has at most ${MAX_PARTS.toLocaleString('en')} fields and options. It is shown without the last addition or change of a kind, and with all that was typed. To change more, decide with the HTTP API.`;
export const OTHER_FORM =
  'The form has changed since it was shown, so what was typed cannot be read. Open the request again and repeat the changes.';

/** The form as it is first shown, or with what was posted. */
export function parametersForm(
  schema: StoredSchema | undefined,
  parameters: ToolParameters,
  posted?: URLSearchParams,
): ParametersForm {
  const controls = schema && !isTooLarge(parameters) ? buildControls(schema, parameters) : undefined;
  const isJson = !controls || postedBytes(controls) > MAX_BODY_BYTES - RESERVED_BYTES;
  if (!posted) return isJson ? { kind: 'json', text: '' } : { kind: 'fields', controls };
  if (posted.get('form') !== (isJson ? 'json' : 'fields')) return { kind: 'kept', posted, problem: OTHER_FORM };
  if (isJson || !schema) return { kind: 'json', text: withPlainBreaks(posted.get(JSON_FIELD) ?? '') };
  return postedFields(schema, parameters, posted);
}

/** The controls after the action that was posted; if they are too many, as they were before it. */
function postedFields(schema: StoredSchema, parameters: ToolParameters, posted: URLSearchParams): ParametersForm {
  const asked = buildControls(schema, parameters, applyAction(posted, posted.get('action') ?? ''));
  if (asked) return { kind: 'fields', controls: asked };
  const controls = buildControls(schema, parameters, withoutSwitches(posted));
  return controls ? { kind: 'fields', controls, problem: TOO_MUCH } : { kind: 'kept', posted, problem: OTHER_FORM };
}

/** Whether a form is not worth building. */
const isTooLarge = (parameters: ToolParameters): boolean => JSON.stringify(parameters).length > MAX_BODY_BYTES;

function postedBytes(controls: readonly Control[]): number {
  const sent = new URLSearchParams(controls.flatMap(fieldsOf));
  return sent.toString().length;
}

/** What a browser sends for a control. */
function fieldsOf(control: Control): [name: string, text: string][] {
  const { name } = control;
  switch (control.kind) {
    case 'text':
      return [
        [name, control.text.replaceAll('\n', '\r\n')],
        ...(control.presence ? [[`${name}.s`, control.presence.selected] as [string, string]] : []),
      ];
    case 'choice':
      return [[name, control.selection.selected]];
    case 'branch':
      return [[name, control.marker], ...control.children.flatMap(fieldsOf)];
  }
}

interface Changes {
  readonly changes: ToolParameters;
  readonly problems: readonly FormProblem[];
}

/** The parameters that were changed, and why others cannot be read. */
export function readChanges(form: ParametersForm, parameters: ToolParameters): Changes {
  if (form.kind === 'json') return readJsonChanges(form.text, parameters);
  if (form.kind === 'kept' || form.problem !== undefined) return { changes: {}, problems: problemsOfForm(form) };
  const values = form.controls.map(({ path, value }) => [String(path[0]), value] as const);
  return { changes: changesOf(values, parameters), problems: form.controls.flatMap(problemsOf) };
}

function readJsonChanges(text: string, parameters: ToolParameters): Changes {
  if (text.trim() === '') return { changes: {}, problems: [] };
  try {
    return { changes: changesOf(Object.entries(parseModifiedParams(text)), parameters), problems: [] };
  } catch (error) {
    if (isHttpError(error)) return { changes: {}, problems: [{ ...IN_JSON, text: error.message }] };
    if (isSvcError(error)) return { changes: {}, problems: [{ ...IN_JSON, text: describeError(error) }] };
    throw error;
  }
}

function changesOf(
  values: readonly (readonly [string, Json | undefined])[],
  parameters: ToolParameters,
): ToolParameters {
  const isChanged = (name: string, value: Json | undefined) =>
    value !== undefined && !(Object.hasOwn(parameters, name) && isSame(parameters[name], value));
  return Object.fromEntries(values.filter(([name, value]) => isChanged(name, value))) as ToolParameters;
}

/** Why the form is not the one that was asked for: nothing is decided with it. */
export function problemsOfForm(form: ParametersForm): FormProblem[] {
  return form.kind === 'json' || form.problem === undefined ? [] : [{ path: '', text: form.problem }];
}

function problemsOf(control: Control): FormProblem[] {
  const { problem, name, path } = control;
  const own = problem === undefined ? [] : [{ field: name, path: pathText(path), text: problem }];
  return control.kind === 'branch' ? [...own, ...control.children.flatMap(problemsOf)] : own;
}

/**
 * Problems of the parameters, each at its field or at the closest one around it. `unread`: of fields that could not be read.
 * What the validator says of those, and of what they belong to, is about their absence.
 */
export function problemsAtFields(
  form: ParametersForm,
  problems: readonly ParameterProblem[],
  unread: readonly FormProblem[] = [],
): FormProblem[] {
  const controls = form.kind === 'fields' ? form.controls.flatMap(withChildren) : [];
  const isAboutUnread = ({ parameter }: ParameterProblem) =>
    unread.some(({ path }) => isWithin(parameter, path) || isWithin(path, parameter));
  const known = problems.filter((problem) => !isAboutUnread(problem));
  return known.map(({ parameter, why }) => {
    const around = controls.filter(({ path }) => isWithin(parameter, pathText(path)));
    const field = form.kind === 'json' ? JSON_FIELD : around.at(-1)?.name;
    const text = why.replace(/^must be ([<>]=?) /, (_, sign: string) => `must be ${COMPARISONS[sign]} `);
    return { field, path: parameter, text };
  });
}

/** First those of the whole form, then the others as a person comes by their fields. */
export function inFieldOrder(form: ParametersForm, problems: readonly FormProblem[]): FormProblem[] {
  const names = form.kind === 'fields' ? form.controls.flatMap(withChildren).map(({ name }) => name) : [];
  const positionOf = ({ field = '' }: FormProblem) => names.indexOf(field);
  return [...problems].sort((one, other) => positionOf(one) - positionOf(other));
}

/** For the signs in messages of the validator. */
const COMPARISONS: Readonly<Record<string, string>> = {
  '<=': 'at most',
  '>=': 'at least',
  '<': 'less than',
  '>': 'more than',
};

function withChildren(control: Control): Control[] {
  return control.kind === 'branch' ? [control, ...control.children.flatMap(withChildren)] : [control];
}

const isWithin = (parameter: string, path: string): boolean =>
  parameter.startsWith(path) && ['', '.', '['].includes(parameter.charAt(path.length));

/** The fields of the form, and the hidden one that says of which kind they are. `isOpen`: a person is changing them. */
export function renderParametersForm(form: ParametersForm, problems: readonly FormProblem[], isOpen: boolean): Child {
  if (form.kind === 'kept') {
    const kept = [...form.posted].filter(([name]) => name === 'form' || name === JSON_FIELD || isParameterField(name));
    return kept.map(([name, text]) => <input type="hidden" name={name} value={text} />);
  }
  const kind = <input type="hidden" name="form" value={form.kind} />;
  if (form.kind === 'fields') {
    if (form.controls.length === 0) return kind;
    return (
      <>
        {kind}
        <details open={isOpen}>
          <summary>Change the parameters</summary>
          {renderControls(form.controls, problems)}
        </details>
      </>
    );
  }
  return (
    <>
      {kind}
      <p>
        <label>
          Parameters to change, as JSON; only when approving{' '}
          <textarea
            id={JSON_FIELD}
            name={JSON_FIELD}
            rows={3}
            spellcheck={false}
            aria-invalid={problems.length > 0 ? 'true' : undefined}
          >
            {'\n'}
            {form.text}
          </textarea>
        </label>
      </p>
    </>
  );
}

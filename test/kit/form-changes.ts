import * as assert from 'node:assert/strict';
import type { BranchControl, ChoiceControl, Control, TextControl } from '../../config/sdk/callback/form/control.ts';
import { parametersForm } from '../../config/sdk/callback/form/parameters-form.tsx';
import { inlineJson } from '../../core/display/json.ts';
import { displayText } from '../../core/display/text.ts';
import type { Json } from '../../core/json.ts';
import type { StoredSchema } from '../../core/tool/json-schema.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import { type Path, pathText } from '../../core/validate-shape.ts';
import { attribute } from './html-form.ts';
import { FormUnderTest } from './parameters-form.ts';

/** One change in a form. Without a value, what is at the path is removed. */
interface Edit {
  readonly path: Path;
  readonly value: Json | undefined;
  /** What is entered, or the action of the button that is pressed. */
  readonly does: { readonly field: string; readonly text: string } | { readonly action: string };
}

/**
 * Fails unless a form that nobody touches changes nothing, and every change of a single field or button exactly that. Returns how
 * many changes were tried.
 */
export function assertRoundTrip(schema: object, parameters: object): number {
  const form = new FormUnderTest(schema, parameters);
  const page = form.open();
  assert.deepEqual(form.changes(page), {});
  assert.deepEqual(form.changes(form.open(page.press('Approve'))), {});
  const shown = parametersForm(schema as StoredSchema, parameters as ToolParameters);
  if (shown.kind !== 'fields') return 0;
  const edits = shown.controls.flatMap((control) => editsOf(control, constantsIn(schema)));
  for (const { path, value, does } of edits) {
    const edited = form.open();
    if ('field' in does) edited.fill(does.field, does.text);
    const [name = ''] = path;
    const after = withValue(parameters as Json, path, value) as { readonly [name: string]: Json };
    const changes = form.changes('action' in does ? form.open(pressed(page.press('Approve'), does.action)) : edited);
    assert.deepEqual(changes, Object.fromEntries([[String(name), after[name]]]), pathText(path));
    if ('action' in does) {
      assert.ok(
        page.elements.some((one) => attribute(one, 'value') === does.action),
        `no button ${does.action}`,
      );
    }
  }
  return edits.length;
}

function pressed(sent: URLSearchParams, action: string): URLSearchParams {
  sent.set('action', action);
  return sent;
}

function editsOf(control: Control, constants: readonly Json[]): Edit[] {
  const { path, remove } = control;
  const removals = remove === undefined ? [] : [{ path, value: undefined, does: { action: remove } }];
  switch (control.kind) {
    case 'text':
      return [...removals, ...textEdits(control)];
    case 'choice':
      return [...removals, ...choiceEdits(control, constants)];
    case 'branch':
      return [...removals, ...markEdits(control), ...control.children.flatMap((one) => editsOf(one, constants))];
  }
}

const TYPED: Readonly<Record<TextControl['input'], readonly [text: string, value: Json][]>> = {
  text: [['007 ', '007 ']],
  date: [['2026-11-29', '2026-11-29']],
  email: [['changed@acme.example', 'changed@acme.example']],
  url: [['https://acme.example/changed', 'https://acme.example/changed']],
  decimal: [
    ['7.25', 7.25],
    ['-1e3', -1000],
  ],
  code: [
    ['{"changed": [1, "1", null]}', { changed: [1, '1', null] }],
    ['"1"', '1'],
    ['1', 1],
  ],
};

function textEdits({ name, path, value, input, hint, presence }: TextControl): Edit[] {
  const isMoment = hint.endsWith('as 2026-11-28T09:30:00Z.');
  const isDate = hint.endsWith('as 2026-11-28.');
  const typed = isMoment ? [['2026-11-29T00:00:00+01:00'] as const] : isDate ? TYPED.date : TYPED[input];
  const texts = typed.map(([text, becomes = text]): Edit => ({ path, value: becomes, does: { field: name, text } }));
  if (hint.endsWith(', or null.')) texts.push({ path, value: null, does: { field: name, text: 'null' } });
  const gone = (presence?.options ?? [])
    .filter((one) => one.value !== 'set' && one.value !== presence?.selected)
    .map((one): Edit => {
      const becomes = one.value === 'null' ? null : undefined;
      return { path, value: becomes, does: { field: `${name}.s`, text: one.value } };
    });
  return [...texts.filter((one) => one.value !== value), ...gone];
}

function choiceEdits({ name, path, selection }: ChoiceControl, constants: readonly Json[]): Edit[] {
  return selection.options
    .filter(({ value, label }) => value !== selection.selected && label !== 'Choose')
    .map(({ value, label }) => {
      const does = { field: name, text: value };
      if (value === '') return { path, value: undefined, does };
      const isLabelled = (one: Json) => label === inlineJson(one) || label === displayText(String(one));
      const becomes = constants.find(isLabelled);
      assert.ok(becomes !== undefined, `an option "${label}" that the schema does not have`);
      return { path, value: becomes, does };
    });
}

function markEdits({ path, buttons }: BranchControl): Edit[] {
  return buttons
    .filter(({ action }) => /=(out|null)$/.test(action))
    .map(({ action }) => ({ path, value: action.endsWith('null') ? null : undefined, does: { action } }));
}

/** The values that the options of choices may have. */
function constantsIn(schema: unknown): Json[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { const: one, enum: several } = schema as { readonly const?: Json; readonly enum?: readonly Json[] };
  const own = [...(one === undefined ? [] : [one]), ...(Array.isArray(several) ? several : [])];
  return [...own, true, false, null, ...Object.values(schema).flatMap(constantsIn)];
}

function withValue(whole: Json | undefined, [key, ...rest]: Path, value: Json | undefined): Json | undefined {
  if (key === undefined) return value;
  if (Array.isArray(whole)) {
    return whole.flatMap((one, index) => (index === key ? without(withValue(one, rest, value)) : [one]));
  }
  const members = new Map(Object.entries(whole ?? {}));
  const inner = withValue(members.get(String(key)), rest, value);
  if (inner === undefined) members.delete(String(key));
  else members.set(String(key), inner);
  return Object.fromEntries(members);
}

const without = (value: Json | undefined): Json[] => (value === undefined ? [] : [value]);

import { displayText } from '../../../../core/display/text.ts';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { StoredSchema } from '../../../../core/tool/json-schema.ts';
import { type Control, common, isSame, NULL, OUT, SET, type Slot, type Source } from './control.ts';
import { choiceControl, jsonControl, numberControl, textControl } from './field-controls.ts';
import { isPlainText } from './field-text.ts';
import { type Field, fieldOf, type Property, parametersOf, type Variant } from './field-type.ts';

/** Of controls, and options of choices, together. A form with more is no help to anybody. */
export const MAX_PARTS = 1_000;
/** Of what the schema says: it is repeated for each item of a list. What is typed is not counted, so it never makes a form too large. */
const MAX_CHARACTERS = 1_000_000;

/** The controls of the parameters, or undefined if that is too much for a form. */
export function buildControls(
  root: StoredSchema,
  parameters: { readonly [name: string]: Json },
  fields?: URLSearchParams,
): readonly Control[] | undefined {
  const source: Source = { root, fields, known: new Map(), left: MAX_PARTS };
  const slot = { name: 'p', path: [], label: '', schema: root, canBeLeftOut: false, isNew: false };
  const { children } = membersOf({ ...slot, original: parameters }, parametersOf(root), {}, source);
  return source.left < 0 || charactersOf(children) > MAX_CHARACTERS ? undefined : children;
}

function charactersOf(controls: readonly Control[]): number {
  return controls.reduce((sum, control) => sum + charactersOfOne(control), 0);
}

function charactersOfOne(control: Control): number {
  const { name, label, hint } = control;
  // The label is also in the names of buttons.
  const own = name.length + 3 * label.length + hint.length;
  switch (control.kind) {
    case 'text':
      return own;
    case 'choice':
      return own + labelsOf(control.selection.options);
    case 'branch':
      return (
        own +
        control.marker.length +
        labelsOf(control.buttons) +
        labelsOf(control.variants?.options ?? []) +
        charactersOf(control.children)
      );
  }
}

const labelsOf = (all: readonly { readonly label: string; readonly action?: string }[]): number =>
  all.reduce((sum, { label, action = '' }) => sum + label.length + action.length, 0);

/** The fields after a button of an object or a list was pressed. */
export function applyAction(fields: URLSearchParams, action: string): URLSearchParams {
  const [, name = '', marker = ''] = /^mark:(p(?:\.\w+)+)=([\w,]*)$/.exec(action) ?? [];
  const [, list = '', id = ''] = /^remove:(p(?:\.\w+)+)\.(\d+)$/.exec(action) ?? [];
  const changed = new URLSearchParams(fields);
  if (name !== '') changed.set(name, marker);
  if (list !== '') {
    const ids = (fields.get(list) ?? '').split(',').filter((one) => one !== id);
    changed.set(list, ids.join(','));
  }
  return changed;
}

/** The fields without the kinds that were chosen and not yet shown. */
export function withoutSwitches(fields: URLSearchParams): URLSearchParams {
  const isSwitch = (name: string, text: string) => name.endsWith('.c') && fields.get(name.slice(0, -2)) !== text;
  return new URLSearchParams([...fields].filter(([name, text]) => !isSwitch(name, text)));
}

function buildControl(slot: Slot, source: Source): Control {
  const field = knownField(slot.schema, source);
  const { type } = field;
  source.left -= 1 + optionCount(field);
  if (source.left < 0 || !fits(field, slot.original)) return jsonControl(slot, field, source);
  switch (type.kind) {
    case 'text':
      return textControl(slot, field, type.format, source);
    case 'number':
      return numberControl(slot, field, type.isInteger, source);
    case 'choice':
      return choiceControl(slot, field, type.options, source);
    case 'list':
      return listControl(slot, field, type.items, source);
    case 'object': {
      const { members, ...own } = branch(slot, field, source, SET);
      return members === undefined
        ? { ...own, children: [] }
        : { ...own, ...membersOf(slot, type.properties, type.others, source) };
    }
    case 'union':
      return unionControl(slot, field, type, source);
    case 'json':
      return jsonControl(slot, field, source);
  }
}

/** The items of a list share their schema. */
function knownField(schema: unknown, { root, known }: Source): Field {
  const field = known.get(schema) ?? fieldOf(root, schema);
  known.set(schema, field);
  return field;
}

/** Not of whether there is a text: those are never more than three. */
function optionCount({ type }: Field): number {
  if (type.kind === 'choice') return type.options.length;
  return type.kind === 'union' ? type.variants.length : 0;
}

/** Whether the control of a field can show a value. */
function fits({ type, isNullable }: Field, value: Json | undefined): boolean {
  if (value === undefined || (value === null && isNullable)) return true;
  switch (type.kind) {
    case 'text':
      return typeof value === 'string' && isPlainText(value);
    case 'number':
      return typeof value === 'number';
    case 'choice':
      return type.options.some((option) => isSame(option.value, value));
    case 'list':
      return Array.isArray(value);
    case 'object':
      return isPlainObject(value);
    case 'union':
      return variantOf(type.variants, type.tag, value) >= 0;
    case 'json':
      return true;
  }
}

/** What objects and lists have in common. `members`: its marker, if it is there. */
function branch(slot: Slot, field: Field, { fields }: Source, start: string) {
  const { isNullable } = field;
  const { name, original, canBeLeftOut, isAdded } = slot;
  const before = original === null ? NULL : original === undefined && !isAdded ? OUT : start;
  const posted = fields?.get(name) ?? before;
  const marker = /^\w*(,\w+)*$/.test(posted) ? posted : before;
  const isThere = marker !== OUT && marker !== NULL;
  const buttons = [
    ...(isThere ? [] : [{ action: `mark:${name}=${start}`, label: `Add ${slot.label}` }]),
    ...(marker !== OUT && canBeLeftOut ? [{ action: `mark:${name}=${OUT}`, label: `Leave out ${slot.label}` }] : []),
    ...(marker !== NULL && isNullable ? [{ action: `mark:${name}=${NULL}`, label: `Set ${slot.label} to null` }] : []),
  ];
  const value = marker === NULL ? null : undefined;
  const hint = marker === NULL ? 'It is null.' : isThere ? undefined : 'It is left out.';
  return {
    kind: 'branch',
    ...common(slot, field, hint),
    marker,
    buttons,
    value,
    members: isThere ? marker : undefined,
  } as const;
}

function listControl(slot: Slot, field: Field, schema: unknown, source: Source): Control {
  const originals = Array.isArray(slot.original) ? (slot.original as readonly Json[]) : [];
  const { members, ...own } = branch(slot, field, source, originals.map((_, index) => index).join(','));
  if (members === undefined) return { ...own, children: [] };
  const ids = [...new Set(members.split(',').filter((id) => /^\d{1,6}$/.test(id)))];
  const isNew = slot.isNew || !Array.isArray(slot.original);
  const children = ids.map((id, position) => {
    const original = originals[Number(id)];
    return buildControl(
      {
        name: `${slot.name}.${id}`,
        path: [...slot.path, position],
        label: `${slot.label} ${position + 1}`,
        schema,
        original,
        canBeLeftOut: false,
        isNew: isNew || original === undefined,
        isAdded: original === undefined,
        remove: `remove:${slot.name}.${id}`,
      },
      source,
    );
  });
  const next = Math.max(originals.length, ...ids.map((id) => Number(id) + 1));
  const add = { action: `mark:${slot.name}=${[...ids, next].join(',')}`, label: `Add to ${slot.label}` };
  const isIncomplete = children.some(({ value, problem }) => value === undefined && problem === undefined);
  const problem = isIncomplete ? { problem: 'An item has no value: fill it in, or remove it.' } : {};
  const value = children.map((child) => child.value ?? null);
  return { ...own, children, buttons: [add, ...own.buttons], value, ...problem };
}

function unionControl(
  slot: Slot,
  field: Field,
  { variants, tag, others }: { readonly variants: readonly Variant[]; readonly tag: string; readonly others: unknown },
  source: Source,
): Control {
  const before = variantOf(variants, tag, slot.original);
  const { members, ...own } = branch(slot, field, source, String(Math.max(before, 0)));
  if (members === undefined) return { ...own, children: [] };
  const options = variants.map((variant, index) => ({ value: String(index), label: variant.tag.label }));
  const chosen = source.fields?.get(`${slot.name}.c`) ?? members;
  const selected = options.find(({ value }) => value === chosen)?.value ?? '0';
  const variant = variants[Number(selected)];
  if (!variant) return { ...own, children: [] };
  const isOriginal = before === Number(selected);
  const inner = { ...slot, name: `${slot.name}.v${selected}`, isNew: slot.isNew || !isOriginal };
  const original = isOriginal ? withoutMember(slot.original, tag) : undefined;
  const { children, value } = membersOf({ ...inner, original }, variant.properties, others, source);
  const isSwitched = selected !== members;
  return {
    ...own,
    marker: selected,
    variants: { options, selected },
    children,
    value: Object.fromEntries([[tag, variant.tag.value], ...Object.entries(value)]),
    ...(isSwitched && { problem: `The fields of ${variant.tag.label} are shown now: fill them in.` }),
  };
}

function variantOf(variants: readonly Variant[], tag: string, value: Json | undefined): number {
  if (!isPlainObject(value) || !Object.hasOwn(value, tag)) return -1;
  return variants.findIndex((variant) => isSame(variant.tag.value, value[tag] as Json));
}

function withoutMember(value: Json | undefined, name: string): Json {
  return Object.fromEntries(Object.entries(value ?? {}).filter(([key]) => key !== name));
}

/** The properties of an object, and what else the request has there. */
function membersOf(
  slot: Slot,
  properties: readonly Property[],
  others: unknown,
  source: Source,
): { readonly children: readonly Control[]; readonly value: { readonly [name: string]: Json } } {
  const isRoot = slot.path.length === 0;
  const original = isPlainObject(slot.original) ? (slot.original as { readonly [name: string]: Json }) : undefined;
  const known = new Set(properties.map(({ name }) => name));
  const more = Object.keys(original ?? {}).filter((name) => !known.has(name));
  const all = [
    ...properties.map((property, index) => ({ ...property, key: `${index}` })),
    ...more.map((name, index) => ({ name, schema: others, isRequired: false, key: `x${index}` })),
  ];
  const members = all.map(({ name, schema, isRequired, key }) => {
    const own = original && Object.hasOwn(original, name) ? original[name] : undefined;
    const control = buildControl(
      {
        name: `${slot.name}.${key}`,
        path: [...slot.path, name],
        label: displayText(name),
        schema,
        original: own,
        // The changes of a reviewer are merged by name: they cannot remove a parameter.
        canBeLeftOut: !isRequired && !(isRoot && own !== undefined),
        isNew: slot.isNew || original === undefined,
      },
      source,
    );
    return [name, control] as const;
  });
  const given = members.flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value] as const]));
  return { children: members.map(([, control]) => control), value: Object.fromEntries(given) };
}

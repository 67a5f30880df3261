import {
  type Common,
  type Control,
  common,
  isSame,
  NULL,
  OUT,
  SET,
  type Selection,
  type Slot,
  type Source,
  type TextControl,
} from './control.ts';
import {
  formatHint,
  isDate,
  jsonText,
  type Reading,
  readJson,
  readNumber,
  readText,
  withBreaksOf,
  withPlainBreaks,
} from './field-text.ts';
import type { Field, Option } from './field-type.ts';

function result(reading: Reading): Pick<Common, 'value' | 'problem'> {
  return 'problem' in reading ? { value: undefined, problem: reading.problem } : reading;
}

/** The text of a field, and what it says. A text as the page had it says nothing new. */
function typedIn({ name, original }: Slot, shown: string, { fields }: Source, read: (text: string) => Reading) {
  const text = withPlainBreaks(fields?.get(name) ?? shown);
  return { text, ...result(text === shown ? { value: original } : read(text)) };
}

export function jsonControl(slot: Slot, field: Field, source: Source): Control {
  const typed = typedIn(slot, jsonText(slot.original), source, readJson);
  return { kind: 'text', ...common(slot, field, 'JSON.'), input: 'code', ...typed };
}

export function numberControl(slot: Slot, field: Field, isInteger: boolean, source: Source): Control {
  const { isNullable } = field;
  const typed = typedIn(slot, jsonText(slot.original), source, (text) => readNumber(text, isNullable));
  const hint = `${isInteger ? 'A whole number' : 'A number'}${isNullable ? ', or null' : ''}.`;
  return { kind: 'text', ...common(slot, field, hint), input: 'decimal', ...typed };
}

const INPUTS: Readonly<Record<string, TextControl['input']>> = { email: 'email', uri: 'url' };

export function textControl(slot: Slot, field: Field, format: unknown, source: Source): Control {
  const { isNullable } = field;
  const { original, canBeLeftOut, isNew } = slot;
  const shown = withPlainBreaks(typeof original === 'string' ? original : '');
  const text = withPlainBreaks(source.fields?.get(slot.name) ?? shown);
  const { presence, isContradicted } = presenceOf(slot, isNullable, text !== shown, text === '', source);
  const isDateInput = format === 'date' && (text === '' || isDate(text));
  const input = isDateInput ? 'date' : (Object.hasOwn(INPUTS, String(format)) && INPUTS[String(format)]) || 'text';
  const control = { kind: 'text', ...common(slot, field, formatHint(format)), input, text } as const;
  const all = { ...control, ...(canBeLeftOut || isNullable ? { presence } : {}) };
  if (isContradicted) {
    return {
      ...all,
      value: undefined,
      problem: 'There is a text here: choose "Text", or undo the change to the text.',
    };
  }
  if (presence.selected !== SET) return { ...all, value: presence.selected === NULL ? null : undefined };
  const isUntouched =
    text === shown && (typeof original === 'string' || (original === undefined && !canBeLeftOut && !isNew));
  return { ...all, ...result(isUntouched ? { value: original } : readText(withBreaksOf(original, text), format)) };
}

/** Whether a text counts. Who types one where there was none does not need to say so as well. */
function presenceOf(
  { name, original, canBeLeftOut }: Slot,
  isNullable: boolean,
  isTouched: boolean,
  isEmpty: boolean,
  { fields }: Source,
): { readonly presence: Selection; readonly isContradicted: boolean } {
  const options = [
    { value: SET, label: 'Text' },
    ...(isNullable || original === null ? [{ value: NULL, label: 'null' }] : []),
    ...(canBeLeftOut ? [{ value: OUT, label: 'Left out' }] : []),
  ];
  const before = original === null ? NULL : original === undefined && canBeLeftOut ? OUT : SET;
  const posted = fields?.get(`${name}.s`);
  const chosen = options.find(({ value }) => value === posted)?.value ?? before;
  const isTyped = chosen !== SET && isTouched && !isEmpty;
  const selected = isTyped && chosen === before ? SET : chosen;
  return { presence: { options, selected }, isContradicted: isTyped && chosen !== before };
}

export function choiceControl(slot: Slot, field: Field, given: readonly Option[], { fields }: Source): Control {
  const { name, original, canBeLeftOut, isNew } = slot;
  const { isNullable } = field;
  const hasNull = given.some(({ value }) => value === null);
  const values = isNullable && !hasNull ? [...given, { label: NULL, value: null }] : given;
  const isUnset = original === undefined && !(isNew && values.length === 1 && !canBeLeftOut);
  const options = values.map(({ label }, index) => ({ value: String(index), label }));
  if (canBeLeftOut || isUnset) options.unshift({ value: '', label: canBeLeftOut ? 'Left out' : 'Choose' });
  const shown =
    original === undefined
      ? options[0]
      : options.find(({ value }) => isSame(values[Number(value)]?.value, original) && value !== '');
  const posted = fields?.get(name);
  const selected = options.find(({ value }) => value === posted)?.value ?? shown?.value ?? '';
  const value = selected === '' ? undefined : values[Number(selected)]?.value;
  return { kind: 'choice', ...common(slot, field), selection: { options, selected }, value };
}

import { parseNativeType } from './native-type.ts';
import { nameOf, tokenize } from './tokens.ts';

export interface TypeField {
  readonly name: string;
  readonly type: string;
}

/** The fields in the text of CREATE TYPE. */
export function typeFields(definition: string): readonly TypeField[] {
  const tokens = tokenize(definition);
  const fields: { name: string; type: string }[] = [];
  let depth = 0;
  for (const token of tokens.slice(tokens.findIndex(({ text }) => text === '(') + 1)) {
    const { text } = token;
    if (text === ')') break;
    if (text === '<') depth += 1;
    if (text === '>') depth -= 1;
    const field = fields.at(-1);
    if (text === ',' && depth === 0) fields.push({ name: '', type: '' });
    else if (!field) fields.push({ name: nameOf(token), type: '' });
    else if (field.name === '') field.name = nameOf(token);
    else field.type += text === ',' ? ', ' : text;
  }
  return fields.map(({ name, type }) => ({ name, type: parseNativeType(type)?.type ?? type }));
}

/** Whether the second has the fields of the first, perhaps under new names, and others after them. */
export function isTypeExtended(before: readonly TypeField[], after: readonly TypeField[]): boolean {
  const renamed = before.filter(({ name }, at) => after[at]?.name !== name);
  // A name that was another field's before would be a swap.
  const isUnclear = renamed.some((field) => after.some(({ name }) => name === field.name));
  return !isUnclear && before.every(({ type }, at) => after[at]?.type === type);
}

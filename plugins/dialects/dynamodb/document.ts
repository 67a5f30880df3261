import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { isStorable, plainDecimal } from './decimal.ts';

/** A value as a text says it, numbers with the digits that they have; undefined where bytes or a set are in it. */
export const documentText = (value: AttributeValue): string | undefined => value.S ?? jsonOf(value);

function jsonOf(value: AttributeValue): string | undefined {
  if (value.S !== undefined) return JSON.stringify(value.S);
  if (value.N !== undefined) return value.N;
  if (value.BOOL !== undefined) return String(value.BOOL);
  if (value.NULL) return 'null';
  if (value.L) {
    const items = value.L.map(jsonOf);
    return items.includes(undefined) ? undefined : `[${items.join(',')}]`;
  }
  if (!value.M) return undefined;
  const members: string[] = [];
  for (const [name, member] of Object.entries(value.M)) {
    const text = jsonOf(member);
    if (text === undefined) return undefined;
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/**
 * What a text says of a value, the other way. Undefined where it is a text to itself: a string in quotes as well, since
 * who converts a second time would take away more.
 */
export function documentFrom(text: string): AttributeValue | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  // Who parses a number loses digits: it is read as a text, and a letter tells the one from the other.
  const marked = text.replace(/"((?:[^"\\]|\\.)*")|-?\d[\d.eE+-]*/g, (token, rest?: string) =>
    rest === undefined ? `"n${token}"` : `"s${rest}`,
  );
  const said = attributeFrom(JSON.parse(marked));
  if (said === undefined || said.S !== undefined || said.NULL) return undefined;
  // 1.0 would come back as 1.
  return said.N === undefined || said.N === text ? said : undefined;
}

function attributeFrom(value: unknown): AttributeValue | undefined {
  if (value === null) return { NULL: true };
  if (typeof value === 'boolean') return { BOOL: value };
  if (typeof value === 'string') {
    if (value.startsWith('s')) return { S: value.slice(1) };
    const digits = plainDecimal(value.slice(1));
    return digits !== undefined && isStorable(digits) ? { N: digits } : undefined;
  }
  if (Array.isArray(value)) {
    const items = value.map(attributeFrom);
    return items.every((item) => item !== undefined) ? { L: items } : undefined;
  }
  const members: [string, AttributeValue][] = [];
  for (const [name, member] of Object.entries(value as object)) {
    const attribute = attributeFrom(member);
    if (attribute === undefined) return undefined;
    members.push([name.slice(1), attribute]);
  }
  return { M: Object.fromEntries(members) };
}

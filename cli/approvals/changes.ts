import { SvcError } from '../../core/errors.ts';
import { changedNumber, isPlainObject, type Json } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';

/**
 * Parameters to change, out of `--set name=value` flags, each value read as the tool's definition says: text as it
 * stands, everything else as JSON. Throws `usage`.
 */
export function changesOf(flags: readonly string[], schema: Json | undefined): { [name: string]: Json } | undefined {
  if (flags.length === 0) return undefined;
  const properties = propertiesOf(schema);
  const changes: { [name: string]: Json } = Object.create(null);
  for (const flag of flags) {
    const [, name, text] = /^([^=]+)=([\s\S]*)$/.exec(flag) ?? [];
    if (name === undefined || text === undefined) throw refused(`--set takes <parameter>=<value>, not "${flag}".`);
    if (properties && !Object.hasOwn(properties, name)) {
      const names = Object.keys(properties);
      const near = nearest(name, names);
      throw refused(`The tool has no parameter "${name}".`, [
        near ? `Did you mean "${near}"?` : `It has: ${names.join(', ') || 'none'}.`,
      ]);
    }
    if (name in changes) throw refused(`--set gives "${name}" twice.`);
    changes[name] = valueIn(name, text, properties?.[name]);
  }
  return changes;
}

function valueIn(name: string, text: string, property: Json | undefined): Json {
  const type = isPlainObject(property) ? property.type : undefined;
  if (type === 'string') return text;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    if (type === undefined) return text;
    throw refused(
      `The parameter "${name}" is ${type === 'array' || type === 'object' ? 'JSON' : `a ${type}`}, not "${text}".`,
    );
  }
  const number = changedNumber(text);
  if (number === undefined) return value;
  throw refused(`The parameter "${name}" cannot be ${number}: the tool would run with ${Number(number)}.`, [
    'Give a number of at most 15 digits.',
  ]);
}

function propertiesOf(schema: Json | undefined): { readonly [name: string]: Json } | undefined {
  const properties = isPlainObject(schema) ? schema.properties : undefined;
  return isPlainObject(properties) ? (properties as { readonly [name: string]: Json }) : undefined;
}

function refused(message: string, next: readonly string[] = []): SvcError {
  return new SvcError('usage', message, { state: 'Nothing was decided.', next });
}

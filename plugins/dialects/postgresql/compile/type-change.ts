/** A type with one limit, such as a length or a precision, under the name that all its spellings have in common. */
interface LimitedType {
  readonly name: string;
  readonly limit: number;
}

const SPELLINGS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/^(?:varchar|character varying)(?:\((\d+)\))?$/i, 'varchar'],
  [/^(?:varbit|bit varying)(?:\((\d+)\))?$/i, 'varbit'],
  [/^timestamp(?:\((\d+)\))?(?: without time zone)?$/i, 'timestamp'],
  [/^(?:timestamptz(?:\((\d+)\))?|timestamp(?:\((\d+)\))? with time zone)$/i, 'timestamptz'],
  [/^time(?:\((\d+)\))?(?: without time zone)?$/i, 'time'],
  [/^(?:timetz(?:\((\d+)\))?|time(?:\((\d+)\))? with time zone)$/i, 'timetz'],
];
const NUMERIC = /^(?:numeric|decimal)(?:\((\d+)(?:, ?(-?\d+))?\))?$/i;

/**
 * Whether a change of type leaves the stored values as they are, so that the server neither reads nor writes the rows: a higher
 * limit, or none. Source: the "Notes" of ALTER TABLE, and the transform functions of pg_cast.
 */
export function keepsStoredValues(from: string, to: string): boolean {
  const [before, after] = [limitedType(from), limitedType(to)];
  if (before?.name === 'varchar' && /^text$/i.test(to)) return true;
  if (before && after) return before.name === after.name && before.limit <= after.limit;
  const [number, wider] = [NUMERIC.exec(from), NUMERIC.exec(to)];
  if (!number || !wider) return false;
  if (wider[1] === undefined) return true;
  return number[1] !== undefined && (number[2] ?? '0') === (wider[2] ?? '0') && Number(number[1]) <= Number(wider[1]);
}

function limitedType(text: string): LimitedType | undefined {
  for (const [pattern, name] of SPELLINGS) {
    const found = pattern.exec(text);
    if (found) return { name, limit: Number(found[1] ?? found[2] ?? Infinity) };
  }
  return undefined;
}

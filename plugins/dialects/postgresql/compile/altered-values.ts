import type { Collection, Field, FieldType } from '../../../../core/schema/model.ts';
import { TEXT_TYPES } from '../../shared/text-types.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { VALUES_ALTERED_ERROR } from '../connection/errors.ts';
import { conversionExpression, hasNative } from './conversion.ts';
import { qualified } from './names.ts';
import { doBlock } from './plpgsql-guards.ts';
import { DEFAULT_STRING_LENGTH, storedType } from './types.ts';

interface Altered {
  /** True for a value that the server converts to another one: converted back, it would not be the same. */
  readonly condition: string;
  /** What the values are. */
  readonly what: string;
  /** The value that survives the change. */
  readonly exact: string;
}

/** A block that raises an error if rows have values that the change would alter; undefined if none can be. */
export function alteredValuesGuard(
  { quoteIdentifier, quoteLiteral }: Grammar,
  { name: table }: Collection,
  from: Field,
  to: Field,
): string | undefined {
  const column = quoteIdentifier(from.name);
  const isArray = from.type === 'array' && to.type === 'array';
  const known = isArray ? alteredItems(column, from, to) : alteredValues(column, from, to);
  const isNative = hasNative(from, to) && (to.native !== undefined || from.type === to.type || !known);
  const altered = isNative ? alteredByNativeType(column, from, to) : known;
  if (!altered) return undefined;
  const { condition, what, exact } = altered;
  const target = qualified(table);
  const advice =
    exact === ''
      ? 'Change them in an earlier migration.'
      : `If that is what you want, change them in an earlier migration: UPDATE ${qualified(table, '')} SET ${column} = ${exact} WHERE ${condition}`;
  // No other session can write a row between the check and the change, which takes the same lock.
  return doBlock(
    `DECLARE altered bigint; BEGIN LOCK TABLE ${target} IN ACCESS EXCLUSIVE MODE; SELECT count(*) INTO altered FROM ${target} WHERE ${condition}; IF altered > 0 THEN RAISE EXCEPTION USING ERRCODE = ${quoteLiteral(VALUES_ALTERED_ERROR)}, MESSAGE = format('Values of %I are %s. %I has %s such %s.', ${quoteLiteral(from.name)}::text, ${quoteLiteral(what)}::text, ${quoteLiteral(table)}::text, altered, CASE altered WHEN 1 THEN 'row' ELSE 'rows' END), HINT = ${quoteLiteral(advice)}; END IF; END`,
  );
}

/** 1.5 and 1.50 are the same number, but not the same text. Some types that are read as a text or JSON have no operator. */
const HAS_EQUALITY: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint', 'decimal', 'float', 'double']);

/** Only the server knows what its types hold: a value survives if it is the same after the way there and back. */
function alteredByNativeType(column: string, from: Field, to: Field): Altered | undefined {
  // Their texts may differ in white space.
  if (from.type === 'json' && to.type === 'json') return undefined;
  const [before, after] = [storedType(from, ''), storedType(to, '')];
  const converted = conversionExpression(column, from, to) ?? `${column}::${after}`;
  const back = `(${converted})::${after}::text::${before}`;
  const condition = HAS_EQUALITY.has(from.type)
    ? `${back} IS DISTINCT FROM ${column}`
    : `${back}::text IS DISTINCT FROM ${column}::text`;
  return {
    condition,
    what: `not the same as ${after}`,
    exact: '',
  };
}

function alteredItems(column: string, from: Field, to: Field): Altered | undefined {
  const item = ({ items = 'string' }: Field): Field => ({ name: 'svc_item', type: items });
  const altered = alteredValues('svc_item', item(from), item(to));
  if (!altered) return undefined;
  const condition = `EXISTS (SELECT FROM unnest(${column}) AS svc_item WHERE ${altered.condition})`;
  return { condition, what: `lists with elements that are ${altered.what}`, exact: '' };
}

function alteredValues(column: string, from: Field, to: Field): Altered | undefined {
  // The type on the server may be another one that svc reads as text.
  const text = `${column}::text`;
  const unless = (pattern: string) => `${text} !~ '${pattern}'`;
  if (TEXT_TYPES.has(from.type)) {
    switch (to.type) {
      case 'smallint':
      case 'integer':
      case 'bigint':
        return {
          condition: unless('^(0|-?[1-9][0-9]*)$'),
          what: 'not whole numbers, or have leading zeros, spaces or a plus sign',
          exact: `${text}::numeric::text`,
        };
      case 'boolean':
        return {
          condition: `${text} NOT IN ('true', 'false')`,
          what: 'neither true nor false',
          exact: `${text}::boolean::text`,
        };
      case 'uuid':
        return {
          condition: unless('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'),
          what: 'not UUIDs in lower case',
          exact: `${text}::uuid::text`,
        };
      case 'string': {
        const limit = to.length ?? DEFAULT_STRING_LENGTH;
        if (from.type === 'string' && (from.length ?? DEFAULT_STRING_LENGTH) <= limit) return undefined;
        if (from.type === 'enum' && from.enumValues?.every((value) => [...value].length <= limit)) return undefined;
        return {
          condition: `char_length(${text}) > ${limit}`,
          what: `longer than ${limit} characters`,
          exact: `left(${text}, ${limit})`,
        };
      }
      default:
        return undefined;
    }
  }
  const isDateTime = ({ type }: Field) => type === 'datetime' || type === 'timestamp';
  // A column that svc did not create may have microseconds.
  if (isDateTime(from) && isDateTime(to) && from.type !== to.type) {
    const exact = `date_trunc('milliseconds', ${column})`;
    return { condition: `${column} <> ${exact}`, what: 'more precise than milliseconds', exact };
  }
  return undefined;
}

import type { Json } from '../../../../core/json.ts';
import type { Field, FieldType } from '../../../../core/schema/model.ts';
import { bsonTypes } from '../compile/types.ts';

const NUMBERS: readonly string[] = ['int', 'long', 'double', 'decimal'];
const SCALARS: readonly string[] = [...NUMBERS, 'bool', 'string', 'date', 'binData'];

/**
 * An aggregation expression that converts a field to another type. It leaves a value unchanged if the conversion would
 * be lossy; the new rule then rejects it. Undefined if no value can be converted. `from` is absent for a new field.
 */
export function conversionExpression(field: string, to: Field, from?: Field): Json | undefined {
  const value = `$${field}`;
  if (to.type === 'array') return toArray(value, to.items ?? 'string', from);
  return from?.type === 'array' ? fromArray(value, to.type, from.items) : convertValue(value, to.type, from?.type);
}

function convertValue(value: string, type: FieldType, from?: FieldType): Json | undefined {
  const branches = conversionsTo(value, type, from);
  return branches.length > 0 ? firstMatching(branches, value) : undefined;
}

type Branch = readonly [when: Json, result: Json];

function firstMatching(branches: readonly Branch[], otherwise: Json): Json {
  return branches.reduceRight<Json>((rest, [when, result]) => ({ $cond: [when, result, rest] }), otherwise);
}

function conversionsTo(value: string, type: FieldType, old?: FieldType): Branch[] {
  const from = (types: readonly string[], result: Json): Branch => [{ $in: [{ $type: value }, types] }, result];
  const [target = ''] = bsonTypes[type];
  switch (type) {
    case 'string':
    case 'text':
    case 'enum':
      return [
        from(['double'], unlessLossy(value, { input: exact(value), to: 'string' }, equals(double('$$new'), '$$old'))),
        from([...NUMBERS, 'bool', 'objectId'], { $toString: value }),
        from(['date'], isoText(value, old)),
      ];
    case 'integer':
    case 'smallint':
    case 'bigint': {
      const to = type === 'bigint' ? 'long' : 'int';
      // 5.7 would become 5, and "05" would come back as "5".
      return [
        from(NUMBERS, unlessLossy(value, { input: value, to }, equals('$$new', '$$old'))),
        from(['string'], unlessLossy(value, { input: value, to }, SAME_TEXT)),
        from(['bool'], { $cond: [value, 1, 0] }),
      ];
    }
    case 'float':
    case 'double':
      return [
        from(
          [...NUMBERS, 'string'],
          unlessLossy(
            value,
            { input: value, to: target },
            {
              $or: [equals(decimal(exact('$$new')), decimal('$$old')), SAME_TEXT],
            },
          ),
        ),
      ];
    case 'decimal':
      return [
        from(['double'], unlessLossy(value, { input: exact(value), to: target }, equals(double('$$new'), '$$old'))),
        from(
          [...NUMBERS, 'string'],
          unlessLossy(value, { input: value, to: target }, equals('$$new', decimal('$$old'))),
        ),
      ];
    case 'boolean':
      return [
        [{ $in: [value, ['true', 1]] }, true],
        [{ $in: [value, ['false', 0]] }, false],
      ];
    case 'date':
      return [from(['string'], parseDate(value, DAY))];
    case 'datetime':
    case 'timestamp':
      return [from(['string'], parseDate(value, DATE_TIME))];
    case 'json':
      return [from(['date'], isoText(value, old))];
    default:
      return [];
  }
}

/** The converted value if `isSame` is true of `$$new` and `$$old`, otherwise the old value. */
function unlessLossy(value: string, convert: { readonly [key: string]: Json }, isSame: Json): Json {
  return {
    $let: {
      vars: { new: { $convert: { ...convert, onError: null, onNull: null } }, old: value },
      in: { $cond: [{ $and: [{ $ne: ['$$new', null] }, isSame] }, '$$new', '$$old'] },
    },
  };
}

const equals = (a: Json, b: Json): Json => ({ $eq: [a, b] });
const SAME_TEXT = equals({ $toString: '$$new' }, '$$old');

const decimal = (input: Json): Json => ({ $convert: { input, to: 'decimal', onError: null, onNull: null } });
const double = (input: Json): Json => ({ $convert: { input, to: 'double', onError: null, onNull: null } });

/** A whole double as a long: a double prints with 15 digits on mongod and with 6 on DocumentDB. */
const exact = (input: string): Json => ({
  $let: {
    vars: { whole: { $convert: { input, to: 'long', onError: null, onNull: null } } },
    in: { $cond: [{ $eq: ['$$whole', input] }, '$$whole', input] },
  },
});

/** The text of a date: without a time for a `date`, without a zone for a `datetime`. */
function isoText(date: Json, type: FieldType = 'timestamp'): Json {
  const time = type === 'date' ? '' : `T%H:%M:%S.%L${type === 'datetime' ? '' : 'Z'}`;
  return { $dateToString: { date, format: `%Y-%m-%d${time}` } };
}

const DAY = '^[0-9]{4}-[0-9]{2}-[0-9]{2}$';
/** A BSON date has milliseconds: a string with more digits would lose them. */
const DATE_TIME =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,3})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$';

/**
 * Works around two bugs of DocumentDB: it parses .005 as half a second, so the milliseconds are added separately; and it
 * reads past the end of a truncated string, so the string is rebuilt with $concat.
 */
function parseDate(value: string, regex: string): Json {
  const fraction = { $ifNull: [{ $regexFind: { input: value, regex: '[.][0-9]+' } }, { match: '.' }] };
  const rest = { $concat: [{ $replaceOne: { input: value, find: '$$fraction.match', replacement: '' } }, ''] };
  const date = { $convert: { input: rest, to: 'date', onError: null, onNull: null } };
  const digits = { $substrCP: [{ $concat: ['$$fraction.match', '000'] }, 1, 3] };
  const milliseconds = { $subtract: [{ $toInt: { $concat: ['1', digits] } }, 1000] };
  const parsed = { $ifNull: [{ $add: [date, milliseconds] }, value] };
  return { $cond: [{ $regexMatch: { input: value, regex } }, { $let: { vars: { fraction }, in: parsed } }, value] };
}

function toArray(value: string, items: FieldType, from?: Field): Json {
  const item = convertValue('$$item', items, from?.type === 'array' ? from.items : from?.type);
  const list: Json = item === undefined ? value : { $map: { input: value, as: 'item', in: item } };
  const single: Json = item === undefined ? [value] : { $map: { input: [value], as: 'item', in: item } };
  return firstMatching(
    [
      [{ $isArray: [value] }, list],
      [{ $in: [{ $type: value }, SCALARS] }, single],
    ],
    value,
  );
}

/** The value of an array with one item other than null. */
function fromArray(value: string, type: FieldType, items?: FieldType): Json {
  const only = {
    $let: {
      vars: { item: { $arrayElemAt: [value, 0] } },
      in: { $ifNull: [convertValue('$$item', type, items) ?? '$$item', value] },
    },
  };
  const isOnly: Json = { $eq: [{ $size: value }, 1] };
  return { $cond: [{ $isArray: [value] }, { $cond: [isOnly, only, value] }, convertValue(value, type) ?? value] };
}

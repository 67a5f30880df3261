import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { bsonTypes } from './types.ts';

const NUMBERS: readonly string[] = ['int', 'long', 'double', 'decimal'];
const SCALARS: readonly string[] = [...NUMBERS, 'bool', 'string', 'date', 'binData'];

/**
 * An aggregation expression that gives the value of a field as another type, and the value itself where that would lose
 * something: the new rule then does not let it through. Undefined where nothing can be converted. A field that is new
 * has no old type.
 */
export function conversion(field: string, to: Field, from?: Field): Json | undefined {
  const value = `$${field}`;
  if (to.type === 'array') return arrayOf(value, to.items ?? 'string', from);
  return from?.type === 'array' ? onlyItem(value, to.type, from.items) : converted(value, to.type, from?.type);
}

function converted(value: string, type: FieldType, from?: FieldType): Json | undefined {
  const branches = branchesTo(value, type, from);
  return branches.length > 0 ? chosen(branches, value) : undefined;
}

type Branch = readonly [when: Json, result: Json];

function chosen(branches: readonly Branch[], otherwise: Json): Json {
  return branches.reduceRight<Json>((rest, [when, result]) => ({ $cond: [when, result, rest] }), otherwise);
}

function branchesTo(value: string, type: FieldType, old?: FieldType): Branch[] {
  const from = (types: readonly string[], result: Json): Branch => [{ $in: [{ $type: value }, types] }, result];
  const [target = ''] = bsonTypes[type];
  switch (type) {
    case 'string':
    case 'text':
    case 'enum':
      return [
        from(['double'], kept(value, { input: exact(value), to: 'string' }, same(double('$$new'), '$$old'))),
        from([...NUMBERS, 'bool', 'objectId'], { $toString: value }),
        from(['date'], isoText(value, old)),
      ];
    case 'integer':
    case 'smallint':
    case 'bigint': {
      const to = type === 'bigint' ? 'long' : 'int';
      // 5.7 would become 5, and "05" would come back as "5".
      return [
        from(NUMBERS, kept(value, { input: value, to }, same('$$new', '$$old'))),
        from(['string'], kept(value, { input: value, to }, SAME_TEXT)),
        from(['bool'], { $cond: [value, 1, 0] }),
      ];
    }
    case 'float':
    case 'double':
      return [
        from(
          [...NUMBERS, 'string'],
          kept(
            value,
            { input: value, to: target },
            {
              $or: [same(decimal(exact('$$new')), decimal('$$old')), SAME_TEXT],
            },
          ),
        ),
      ];
    case 'decimal':
      return [
        from(['double'], kept(value, { input: exact(value), to: target }, same(double('$$new'), '$$old'))),
        from([...NUMBERS, 'string'], kept(value, { input: value, to: target }, same('$$new', decimal('$$old')))),
      ];
    case 'boolean':
      return [
        [{ $in: [value, ['true', 1]] }, true],
        [{ $in: [value, ['false', 0]] }, false],
      ];
    case 'date':
      return [from(['string'], parsedDate(value, DAY))];
    case 'datetime':
    case 'timestamp':
      return [from(['string'], parsedDate(value, MOMENT))];
    case 'json':
      return [from(['date'], isoText(value, old))];
    default:
      return [];
  }
}

/** The converted value where `isSame` of `$$new` and `$$old` holds, else the old one. */
function kept(value: string, convert: { readonly [key: string]: Json }, isSame: Json): Json {
  return {
    $let: {
      vars: { new: { $convert: { ...convert, onError: null, onNull: null } }, old: value },
      in: { $cond: [{ $and: [{ $ne: ['$$new', null] }, isSame] }, '$$new', '$$old'] },
    },
  };
}

const same = (back: Json, old: Json): Json => ({ $eq: [back, old] });
const SAME_TEXT = same({ $toString: '$$new' }, '$$old');

const decimal = (input: Json): Json => ({ $convert: { input, to: 'decimal', onError: null, onNull: null } });
const double = (input: Json): Json => ({ $convert: { input, to: 'double', onError: null, onNull: null } });

/** A whole double as a long: of a double itself, servers write 15 digits (mongod) or 6 (DocumentDB). */
const exact = (input: string): Json => ({
  $let: {
    vars: { whole: { $convert: { input, to: 'long', onError: null, onNull: null } } },
    in: { $cond: [{ $eq: ['$$whole', input] }, '$$whole', input] },
  },
});

/** A day has no time, and a wall-clock time no zone. */
function isoText(date: Json, type: FieldType = 'timestamp'): Json {
  const time = type === 'date' ? '' : `T%H:%M:%S.%L${type === 'datetime' ? '' : 'Z'}`;
  return { $dateToString: { date, format: `%Y-%m-%d${time}` } };
}

const DAY = '^[0-9]{4}-[0-9]{2}-[0-9]{2}$';
/** A date has milliseconds: a text with more digits would lose them. */
const MOMENT =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,3})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$';

/**
 * DocumentDB reads .005 as half a second, so the milliseconds are added to the rest; and beyond the end of a text that was
 * cut, so both are put together anew.
 */
function parsedDate(value: string, regex: string): Json {
  const fraction = { $ifNull: [{ $regexFind: { input: value, regex: '[.][0-9]+' } }, { match: '.' }] };
  const rest = { $concat: [{ $replaceOne: { input: value, find: '$$fraction.match', replacement: '' } }, ''] };
  const date = { $convert: { input: rest, to: 'date', onError: null, onNull: null } };
  const digits = { $substrCP: [{ $concat: ['$$fraction.match', '000'] }, 1, 3] };
  const milliseconds = { $subtract: [{ $toInt: { $concat: ['1', digits] } }, 1000] };
  const parsed = { $ifNull: [{ $add: [date, milliseconds] }, value] };
  return { $cond: [{ $regexMatch: { input: value, regex } }, { $let: { vars: { fraction }, in: parsed } }, value] };
}

function arrayOf(value: string, items: FieldType, from?: Field): Json {
  const each = converted('$$item', items, from?.type === 'array' ? from.items : from?.type);
  const list: Json = each === undefined ? value : { $map: { input: value, as: 'item', in: each } };
  const only: Json = each === undefined ? [value] : { $map: { input: [value], as: 'item', in: each } };
  return chosen(
    [
      [{ $isArray: [value] }, list],
      [{ $in: [{ $type: value }, SCALARS] }, only],
    ],
    value,
  );
}

/** The way back from an array of one value. A null in it is no value. */
function onlyItem(value: string, type: FieldType, items?: FieldType): Json {
  const only = {
    $let: {
      vars: { item: { $arrayElemAt: [value, 0] } },
      in: { $ifNull: [converted('$$item', type, items) ?? '$$item', value] },
    },
  };
  const isOnly: Json = { $eq: [{ $size: value }, 1] };
  return { $cond: [{ $isArray: [value] }, { $cond: [isOnly, only, value] }, converted(value, type) ?? value] };
}

import { isDeepStrictEqual } from 'node:util';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { Collection, Constraint, Field, FieldType } from '../../../../core/schema/model.ts';
import { nameRules } from '../compile/names.ts';
import { bsonTypes, ID, isIdOfAnyType, typesOfRule } from '../compile/types.ts';
import {
  checkClause,
  clausesOf,
  fieldRule,
  mustExist,
  schemaClause,
  userValidator,
  type Validator,
  validatorOf,
} from '../compile/validator.ts';
import { fromExtendedJson, type MongoServer, toExtendedJson } from '../connection/server.ts';

interface ReadField {
  readonly field: Field;
  /** The field does not represent the whole rule. */
  readonly inexact: boolean;
}

/** Field types to try for a rule, the most likely first. */
const CANDIDATE_TYPES: readonly FieldType[] = [
  'integer',
  'smallint',
  'bigint',
  'double',
  'decimal',
  'string',
  'uuid',
  'time',
  'boolean',
  'timestamp',
  'json',
  'binary',
];

/** The nearest field type of each BSON type; `json` of the others. */
const NEAREST_TYPE: Readonly<Record<string, FieldType | undefined>> = {
  int: 'integer',
  long: 'bigint',
  double: 'double',
  decimal: 'decimal',
  string: 'string',
  bool: 'boolean',
  date: 'timestamp',
  binData: 'binary',
};
const NUMBERS: ReadonlySet<string> = new Set(['int', 'long', 'double', 'decimal']);

/** The field of a rule in a validator. A required field may be null if its rule allows null, which a field of svc may not. */
export function readFieldRule(
  server: Pick<MongoServer, 'bson'>,
  name: string,
  rule: Json,
  isRequired: boolean,
): ReadField {
  const types = typesOfRule(rule);
  const required = isRequired && types !== undefined && !types.includes('null');
  const base = { name, ...(required && { required: true as const }) };
  const { enum: values, maxLength, items } = isPlainObject(rule) ? (rule as Record<string, Json>) : {};
  const labels = Array.isArray(values) ? values.filter((value) => typeof value === 'string') : [];
  const candidates: Field[] = [
    ...CANDIDATE_TYPES.map((type) => ({ ...base, type })),
    ...(labels.length > 0 ? [{ ...base, type: 'enum' as const, enumValues: labels as string[] }] : []),
    ...(Number.isSafeInteger(numberOf(maxLength))
      ? [{ ...base, type: 'string' as const, length: numberOf(maxLength) }]
      : []),
    ...(items === undefined
      ? []
      : [{ ...base, type: 'array' as const, items: readFieldRule(server, name, items, false).field.type }]),
  ];
  const exact = candidates.find((candidate) =>
    isDeepStrictEqual(canonicalExtendedJson(server, fieldRule(candidate)), rule),
  );
  if (exact) return { field: exact, inexact: false };
  const type = nearestType((types ?? []).filter((one) => one !== 'null'));
  const isEnum = type === 'string' && labels.length > 0 && new Set(labels).size === labels.length;
  const nearest = isEnum ? { type: 'enum' as const, enumValues: labels as string[] } : { type };
  return { field: { ...base, ...nearest }, inexact: true };
}

function nearestType(types: readonly string[]): FieldType {
  const [only, ...others] = types;
  if (only !== undefined && others.length === 0) return NEAREST_TYPE[only] ?? 'json';
  if (types.length === 0 || !types.every((type) => NUMBERS.has(type))) return 'json';
  return types.every((type) => bsonTypes.bigint.includes(type)) ? 'bigint' : 'double';
}

/** Extended JSON in canonical form, as the server's validators are read. */
export function canonicalExtendedJson(server: Pick<MongoServer, 'bson'>, value: Json): Json {
  return toExtendedJson(server, fromExtendedJson(server, value));
}

function numberOf(value: Json | undefined): number {
  return isPlainObject(value) ? Number(Object.values(value)[0]) : Number(value ?? Number.NaN);
}

/** The fields and checks of a validator. */
interface ReadValidator {
  readonly fields: ReadonlyMap<string, Field>;
  readonly checks: ReadonlyMap<string, Constraint>;
  /** Fields that do not represent their whole rule. */
  readonly inexact: readonly string[];
  /** Properties that allow values of every type. They are not fields, whose rules would allow fewer. */
  readonly untyped: readonly string[];
  /** The whole validator, if fields and checks do not represent all of it. */
  readonly rest: Validator | undefined;
}

/**
 * Reads fields and checks from a validator: those of the registry where the validator has the same rule, otherwise the nearest
 * field. `validator` is canonical extended JSON.
 */
export function readValidator(
  server: Pick<MongoServer, 'bson'>,
  fromRegistry: Collection | undefined,
  validator: Validator,
): ReadValidator {
  const clauses = clausesOf(validator);
  const isSame = (canonical: Json, json: Json | undefined) =>
    isDeepStrictEqual(canonical, json && canonicalExtendedJson(server, json));
  const checks = [...(fromRegistry?.constraints.values() ?? [])].filter(
    (constraint) => constraint.type !== 'check' || clauses.some((clause) => isSame(clause, checkClause(constraint))),
  );
  const ofUser = fromRegistry && userValidator(fromRegistry);
  // The validator of an adopted collection stays as it was until a change, and then describes the fields itself.
  const isAsAdopted = isSame(validator, ofUser);
  const schema = schemaClause(validator, (clause) => isAsAdopted || !isSame(clause, ofUser));
  const fields = new Map<string, Field>();
  const inexact: string[] = [];
  const untyped: string[] = [];
  const { properties = {}, required = [] } = (schema?.$jsonSchema ?? {}) as {
    properties?: Validator;
    required?: string[];
  };
  for (const [name, rule] of Object.entries(properties)) {
    const registered = fromRegistry?.fields.get(name);
    const isRequired = name === ID || required.includes(name);
    const isAsRequired = name === ID || (registered && mustExist(registered)) === required.includes(name);
    if (registered && isAsRequired && isSame(rule, fieldRule(registered))) {
      fields.set(name, registered);
      continue;
    }
    if (name !== ID && (typesOfRule(rule) === undefined || nameRules.problem?.(name, 'field') !== undefined)) {
      untyped.push(name);
      continue;
    }
    const read = readFieldRule(server, name, rule, isRequired);
    const isRegistered =
      registered?.type === read.field.type && (name === ID || registered.required === read.field.required);
    fields.set(name, isAsAdopted && registered && isRegistered ? registered : read.field);
    if (read.inexact) inexact.push(name);
  }
  const keyed = withId(fields, fromRegistry);
  const represented = validatorOf({
    ...(fromRegistry ?? { name: '', indexes: new Map() }),
    fields: keyed,
    constraints: new Map(checks.map((check) => [check.name, check])),
    options: isAsAdopted ? {} : (fromRegistry?.options ?? {}),
  });
  return {
    fields: keyed,
    checks: new Map(checks.map((check) => [check.name, check])),
    inexact,
    untyped,
    rest: isSame(validator, represented) ? undefined : validator,
  };
}

/** The fields with `_id` as the key, first. A collection of svc may have a key of its own instead. */
function withId(read: ReadonlyMap<string, Field>, fromRegistry: Collection | undefined): ReadonlyMap<string, Field> {
  if (fromRegistry && (read.has(ID) || !isIdOfAnyType(fromRegistry.fields.get(ID)))) return read;
  const id: Field = { name: ID, type: 'json', ...read.get(ID), primaryKey: true, required: true };
  return new Map([[ID, id], ...[...read].filter(([name]) => name !== ID)]);
}

const SAMPLE_SIZE = 100;

/** The fields of a collection, and why some do not represent all values found. */
export interface SampledFields {
  readonly fields: ReadonlyMap<string, Field>;
  readonly omissions: readonly { readonly field: string; readonly why: string }[];
}

/** Derives the fields of a collection without a validator from some of its documents; only `_id` is required. */
export async function sampleFields({ db }: Pick<MongoServer, 'db'>, collection: string): Promise<SampledFields> {
  const pairs = await db
    .collection(collection)
    .aggregate<{ readonly _id: { readonly name: string; readonly type: string } }>([
      { $limit: SAMPLE_SIZE },
      { $project: { pairs: { $objectToArray: '$$ROOT' } } },
      { $unwind: '$pairs' },
      { $group: { _id: { name: '$pairs.k', type: { $type: '$pairs.v' } } } },
    ])
    .toArray();
  const types = new Map<string, string[]>();
  for (const { _id } of pairs) {
    types.set(_id.name, [...(types.get(_id.name) ?? []), ...(_id.type === 'null' ? [] : [_id.type])]);
  }
  const omissions: { field: string; why: string }[] = [];
  const fields = new Map<string, Field>([[ID, sampledId(types.get(ID) ?? [])]]);
  types.delete(ID);
  for (const [name, found] of [...types].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const problem = nameRules.problem?.(name, 'field');
    if (problem !== undefined) {
      omissions.push({ field: name, why: `is left out: ${problem.replace(/\.$/, '')}` });
      continue;
    }
    const type = nearestType(found);
    fields.set(name, { name, type });
    const list = found.sort().join(' and ');
    if (!found.every((one) => bsonTypes[type].includes(one)))
      omissions.push({
        field: name,
        why: `has values of the type ${list}, which svc cannot create; it is read as ${type}`,
      });
    else if (type === 'json' && found.length > 1)
      omissions.push({ field: name, why: `has values of several types, ${list}; it is read as json` });
  }
  return { fields, omissions };
}

/** `_id` is the key, of whatever type it is: `json` for several types, ObjectIds and documents. */
function sampledId(found: readonly string[]): Field {
  const type = nearestType(found);
  const isExact = found.length > 0 && found.every((one) => bsonTypes[type].includes(one));
  return { name: ID, type: isExact ? type : 'json', primaryKey: true, required: true };
}

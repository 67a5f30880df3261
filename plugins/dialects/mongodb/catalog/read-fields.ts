import { isDeepStrictEqual } from 'node:util';
import { isPlainObject, type Json } from '../../../../core/json.ts';
import type { Collection, Constraint, Field, FieldType } from '../../../../core/schema/model.ts';
import { nameRules } from '../compile/names.ts';
import { checkClause, fieldRule, userValidator, type Validator, validatorOf } from '../compile/validator.ts';
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

/** The nearest field type of each BSON type. */
const NEAREST_TYPE: Readonly<Record<string, FieldType | undefined>> = {
  int: 'integer',
  long: 'bigint',
  double: 'double',
  decimal: 'decimal',
  number: 'double',
  string: 'string',
  bool: 'boolean',
  date: 'timestamp',
  object: 'json',
  array: 'json',
  binData: 'binary',
};
const NUMBERS: ReadonlySet<string> = new Set(['int', 'long', 'double', 'number']);

/** The field of a rule in a validator. */
export function readFieldRule(
  server: Pick<MongoServer, 'bson'>,
  name: string,
  rule: Json,
  required: boolean,
): ReadField {
  const base = { name, ...(required && { required: true as const }) };
  const { bsonType, enum: values, maxLength, items } = isPlainObject(rule) ? (rule as Record<string, Json>) : {};
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
  const types = (Array.isArray(bsonType) ? bsonType : [bsonType]).filter((type) => type !== 'null');
  return { field: { ...base, type: nearestType(types.map(String)) }, inexact: true };
}

function nearestType(types: readonly string[]): FieldType {
  const [only, ...others] = types;
  if (only !== undefined && others.length === 0) return NEAREST_TYPE[only] ?? (only === 'objectId' ? 'string' : 'json');
  return types.length > 0 && types.every((type) => NUMBERS.has(type)) ? 'double' : 'json';
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
  const clauses = Array.isArray(validator.$and) ? (validator.$and as readonly Validator[]) : [validator];
  const isSame = (canonical: Json, json: Json | undefined) =>
    isDeepStrictEqual(canonical, json && canonicalExtendedJson(server, json));
  const checks = [...(fromRegistry?.constraints.values() ?? [])].filter(
    (constraint) => constraint.type !== 'check' || clauses.some((clause) => isSame(clause, checkClause(constraint))),
  );
  const ofUser = fromRegistry && userValidator(fromRegistry);
  const schema = clauses.find((clause) => isPlainObject(clause.$jsonSchema) && !isSame(clause, ofUser));
  const fields = new Map<string, Field>();
  const inexact: string[] = [];
  const { properties = {}, required = [] } = (schema?.$jsonSchema ?? {}) as {
    properties?: Validator;
    required?: string[];
  };
  for (const [name, rule] of Object.entries(properties)) {
    const registered = fromRegistry?.fields.get(name);
    const isRequired = required.includes(name);
    if (registered && (registered.required ?? false) === isRequired && isSame(rule, fieldRule(registered))) {
      fields.set(name, registered);
      continue;
    }
    const read = readFieldRule(server, name, rule, isRequired);
    fields.set(name, read.field);
    if (read.inexact) inexact.push(name);
  }
  const represented = validatorOf({
    ...(fromRegistry ?? { name: '', indexes: new Map() }),
    fields,
    constraints: new Map(checks.map((check) => [check.name, check])),
    options: fromRegistry?.options ?? {},
  });
  return {
    fields,
    checks: new Map(checks.map((check) => [check.name, check])),
    inexact,
    rest: isSame(validator, represented) ? undefined : validator,
  };
}

const SAMPLE_SIZE = 100;

/** Derives the fields of a collection without a validator from some of its documents; none is required. */
export async function sampleFields(
  { db }: Pick<MongoServer, 'db'>,
  collection: string,
): Promise<{ fields: Map<string, Field>; inexact: string[] }> {
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
    if (_id.name === '_id') continue;
    types.set(_id.name, [...(types.get(_id.name) ?? []), ...(_id.type === 'null' ? [] : [_id.type])]);
  }
  const fields = new Map<string, Field>();
  const inexact: string[] = [];
  for (const [name, found] of [...types].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (nameRules.problem?.(name, 'field') === undefined) fields.set(name, { name, type: nearestType(found) });
    if (found.length > 1 || found.some((type) => NEAREST_TYPE[type] === undefined)) inexact.push(name);
  }
  return { fields, inexact };
}

import { SvcError } from '../../../core/errors.ts';
import { isPlainObject, type Json } from '../../../core/json.ts';
import type { CheckConstraint, Collection, Field } from '../../../core/schema/model.ts';
import { eitherRule, type Rule, ruleOf } from './rule.ts';

/** As extended JSON: what becomes of it is the driver's business. */
export type Validator = { readonly [key: string]: Json };

/** The validator of a collection, always whole from its model: its fields, its checks, and what the user wrote beside. */
export function validatorOf(collection: Collection): Validator | undefined {
  const fields = [...collection.fields.values()];
  const rules = fields.map((field): [string, Rule] => [field.name, ruleOf(field)]);
  return joined(collection, schemaOf(rules, requiredNames(fields)), checksOf(collection));
}

/** What lets documents of before and after pass, while they are changed one batch after another. */
export function widened(before: Collection, after: Collection): Validator | undefined {
  const names = [...new Set([...before.fields.keys(), ...after.fields.keys()])];
  const rules = names.flatMap((name): [string, Rule][] => {
    const [from, to] = [before.fields.get(name), after.fields.get(name)];
    if (from && to) return [[name, eitherRule(from, to)]];
    const only = from ?? to;
    return only ? [[name, eitherRule(only, only)]] : [];
  });
  const lasting = requiredNames([...after.fields.values()]).filter((name) => before.fields.get(name)?.required);
  const checks = checksOf(before).filter(({ name }) => after.constraints.has(name));
  return joined(after, schemaOf(rules, lasting), checks);
}

export function checksOf({ constraints }: Collection): CheckConstraint[] {
  return [...constraints.values()].filter((constraint) => constraint.type === 'check');
}

/** A check is an aggregation expression, as JSON. Throws `constraint_invalid`. */
export function checkClause({ name, expression }: CheckConstraint): Validator {
  const parsed = parsedObject(expression);
  if (parsed) return { $expr: parsed };
  throw new SvcError('constraint_invalid', `The expression of the check "${name}" is none of MongoDB.`, {
    why: 'On MongoDB it is an aggregation expression, as JSON.',
    next: ['For example: { "$gte": ["$total", 0] }'],
  });
}

/** What the user wrote, in the form a server takes: a bare schema is wrapped. */
export function writtenValidator({ options }: Collection): Validator | undefined {
  const written = options.mongoOptions?.validator;
  if (!written || Object.keys(written).length === 0) return undefined;
  return Object.keys(written).some((key) => ['bsonType', 'required', 'properties'].includes(key))
    ? { $jsonSchema: written }
    : written;
}

export function parsedObject(text: string): Validator | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return isPlainObject(parsed) ? (parsed as Validator) : undefined;
  } catch {
    return undefined;
  }
}

/** A schema that only says "an object" says nothing. */
export function schemaOf(
  rules: readonly (readonly [string, Rule])[],
  required: readonly string[],
): Validator | undefined {
  if (rules.length === 0) return undefined;
  return {
    $jsonSchema: {
      bsonType: 'object',
      ...(required.length > 0 && { required }),
      properties: Object.fromEntries(rules),
    },
  };
}

function requiredNames(fields: readonly Field[]): string[] {
  return fields.filter(({ required }) => required).map(({ name }) => name);
}

function joined(
  collection: Collection,
  schema: Validator | undefined,
  checks: readonly CheckConstraint[],
): Validator | undefined {
  const clauses = [schema, ...checks.map(checkClause), writtenValidator(collection)].filter(
    (clause) => clause !== undefined,
  );
  return clauses.length > 1 ? { $and: clauses } : clauses[0];
}

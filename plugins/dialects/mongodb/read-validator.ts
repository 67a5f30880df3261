import { isDeepStrictEqual } from 'node:util';
import { isPlainObject, type Json } from '../../../core/json.ts';
import type { Collection, Constraint, Field } from '../../../core/schema/model.ts';
import type { Server } from './open.ts';
import { canonical, readRule } from './read-rule.ts';
import { ruleOf } from './rule.ts';
import { checkClause, type Validator, validatorOf, writtenValidator } from './validator.ts';

/** What a validator says of a collection, and what it says that no field does. */
export interface ReadValidator {
  readonly fields: ReadonlyMap<string, Field>;
  readonly checks: ReadonlyMap<string, Constraint>;
  readonly inexact: readonly string[];
  /** The clauses that are none of ours. */
  readonly rest: Validator | undefined;
}

/**
 * The fields and checks that a validator shows to be there: those of the registry where it says the same as they do,
 * else as it reads. Both are in canonical extended JSON.
 */
export function readValidator(
  server: Pick<Server, 'bson'>,
  known: Collection | undefined,
  validator: Validator,
): ReadValidator {
  const clauses = Array.isArray(validator.$and) ? (validator.$and as readonly Validator[]) : [validator];
  const same = (one: Json, other: Json | undefined) => isDeepStrictEqual(one, other && canonical(server, other));
  const checks = [...(known?.constraints.values() ?? [])].filter(
    (constraint) => constraint.type !== 'check' || clauses.some((clause) => same(clause, checkClause(constraint))),
  );
  const written = known && writtenValidator(known);
  const schema = clauses.find((clause) => isPlainObject(clause.$jsonSchema) && !same(clause, written));
  const fields = new Map<string, Field>();
  const inexact: string[] = [];
  const { properties = {}, required = [] } = (schema?.$jsonSchema ?? {}) as {
    properties?: Validator;
    required?: string[];
  };
  for (const [name, rule] of Object.entries(properties)) {
    const ours = known?.fields.get(name);
    const isRequired = required.includes(name);
    if (ours && (ours.required ?? false) === isRequired && same(rule, ruleOf(ours))) {
      fields.set(name, ours);
      continue;
    }
    const read = readRule(server, name, rule, isRequired);
    fields.set(name, read.field);
    if (read.inexact) inexact.push(name);
  }
  const explained = validatorOf({
    ...(known ?? { name: '', indexes: new Map() }),
    fields,
    constraints: new Map(checks.map((check) => [check.name, check])),
    options: known?.options ?? {},
  });
  return {
    fields,
    checks: new Map(checks.map((check) => [check.name, check])),
    inexact,
    rest: same(validator, explained) ? undefined : validator,
  };
}

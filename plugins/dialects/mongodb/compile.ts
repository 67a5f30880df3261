import { isDeepStrictEqual } from 'node:util';
import type { Statement } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import { apply } from '../../../core/schema/apply.ts';
import { defineCollection } from '../../../core/schema/define.ts';
import { refuseUnsupported } from '../../../core/schema/features.ts';
import { collectionOf, exists, fieldOf } from '../../../core/schema/lookup.ts';
import type { Collection, Field, SchemaModel } from '../../../core/schema/model.ts';
import type { CreateCollection, Operation } from '../../../core/schema/operation.ts';
import { chain, duplicates, valid } from './chain.ts';
import { checkCollection, fits } from './check-collection.ts';
import { conversion } from './convert.ts';
import { fillingOf } from './filling.ts';
import { specsOf, without } from './indexes.ts';
import { compileRaw } from './raw.ts';
import { refuseKept } from './refuse-kept.ts';
import { NAME, refuses } from './refuses.ts';
import { optional, ruleOf } from './rule.ts';
import { type Check, type Conversion, entryOf, type Step, statement } from './step.ts';
import { checkClause, checksOf, validatorOf, widened } from './validator.ts';

/** The statements of an operation on the model before it. All but raw ones may run again. */
export function compile(operation: Operation, before: SchemaModel): readonly Statement[] {
  if (operation.type === 'raw') return operation.dialect === NAME ? [compileRaw(operation)] : [];
  refuseUnsupported('MongoDB', refuses, operation, before);
  if (operation.type === 'createCollection') return createCollection(operation, before);
  const from = collectionOf(before, operation.collection);
  if (operation.type === 'dropCollection') return [statement({ do: 'drop', collection: from.name }, true)];
  const after = apply(before, operation);
  if (operation.type === 'renameCollection') {
    const { to } = operation;
    fits(to, 'table');
    return [statement({ do: 'rename', collection: from.name, to, entry: entryOf(collectionOf(after, to)) })];
  }
  const to = collectionOf(after, from.name);
  checkCollection(to);
  switch (operation.type) {
    case 'addField':
      return addField(from, to, fieldOf(to, operation.field.name));
    case 'dropField':
      return dropField(from, to, operation.field);
    case 'renameField':
      return renameField(from, to, operation.from, operation.to);
    case 'modifyField':
      return modifyField(from, to, operation.field);
    case 'createIndex':
    case 'dropIndex':
      return [statement(indexStep(from, to))];
    case 'addConstraint':
    case 'dropConstraint':
      return changeConstraint(from, to);
  }
}

function createCollection(operation: CreateCollection, before: SchemaModel): Statement[] {
  const collection = defineCollection(operation);
  const { name, options } = collection;
  fits(name, 'table');
  if (before.has(name) && !operation.options?.sqlOptions?.ifNotExists) throw exists('collection', name);
  checkCollection(collection);
  const { validator: _, ...others } = options.mongoOptions ?? {};
  const validator = validatorOf(collection);
  return [
    statement({
      do: 'create',
      collection: name,
      options: others as { readonly [key: string]: Json },
      ...(validator && { validator }),
      indexes: specsOf(collection),
      entry: entryOf(collection),
    }),
  ];
}

function addField(before: Collection, after: Collection, field: Field): Statement[] {
  const { name, required, unique } = field;
  const value = fillingOf(field);
  const change = conversionTo(field);
  const misfit: Check = { field: name, change, why: `have a value in "${name}" that is no ${field.type}` };
  const checks: Check[] = [misfit, ...wholeDays(field)];
  if (required && !value) {
    checks.push({ lacking: name, why: `have no value for "${name}", which is required and has no default` });
  }
  if (unique && value && !('uuid' in value)) {
    checks.push({ lacking: name, atMost: 1, why: `would get the same default in "${name}", which is unique` });
  }
  if (value && 'expression' in value) {
    const why = `would get something from the default that cannot be in "${name}"`;
    checks.push({ gives: value.expression, field: name, rule: change.rule, required: required === true, why });
  }
  const collection = after.name;
  const fill: Step[] = value ? [{ do: 'fill', collection, field: name, value }] : [];
  const convert: Step[] = change.expression === undefined ? [] : [{ do: 'convert', collection, field: name, change }];
  return chain(before, after, {
    checks,
    first: fill.length > 0 ? [{ do: 'validate', collection, ...valid(after, widened(before, after)) }, ...fill] : [],
    converted: { field: name, change },
    // Converted late: hardly any document has had the field before it was declared.
    late: { checks: settled(undefined, field), moves: [...convert, ...fill] },
  });
}

function dropField(before: Collection, after: Collection, field: string): Statement[] {
  refuseKept(before, field, 'dropped');
  const gone = without(specsOf(before), specsOf(after));
  const { name: collection } = after;
  return [
    statement({ do: 'validate', collection, ...valid(after, validatorOf(after)), rewritten: { field } }),
    ...(gone.length > 0 ? [statement({ do: 'dropIndexes', collection, indexes: gone })] : []),
    statement({ do: 'unset', collection, field }, true),
    statement({ do: 'validate', collection, ...valid(after, validatorOf(after)), entry: entryOf(after) }),
  ];
}

function renameField(before: Collection, after: Collection, from: string, to: string): Statement[] {
  fits(to, 'field');
  refuseKept(before, from, 'renamed');
  const field = fieldOf(after, to);
  const checks: Check[] = [
    { both: [from, to], why: `have a value in "${to}" already, beside that in "${from}"` },
    ...settled(undefined, optional(field)),
  ];
  const collection = after.name;
  const move: Step = { do: 'move', collection, from, to };
  return chain(before, after, {
    checks,
    first: [{ do: 'validate', collection, ...valid(after, widened(before, after)) }, move],
    rewritten: { field: from },
    late: {
      checks: [
        { breaks: { [from]: { $exists: false } }, why: `still have a value in "${from}", which is "${to}" now` },
      ],
      moves: [move],
    },
  });
}

function modifyField(before: Collection, after: Collection, name: string): Statement[] {
  const [from, to] = [fieldOf(before, name), fieldOf(after, name)];
  if (name === '_id' && !isDeepStrictEqual(ruleOf(from), ruleOf(to))) refuseKept(before, name, 'modified');
  const checks: Check[] = [];
  const first: Step[] = [];
  if (to.required && !from.required) {
    checks.push({ lacking: name, why: `have no value for "${name}", which becomes required` });
  }
  const change = conversionTo(to, from);
  const collection = after.name;
  const convert: Step[] = change.expression === undefined ? [] : [{ do: 'convert', collection, field: name, change }];
  const isOther = !isDeepStrictEqual(conversionTo(from).rule, change.rule);
  if (isOther) {
    checks.push({ field: name, change, why: `have a value in "${name}" that cannot become ${described(to)} unharmed` });
    if (convert.length > 0) {
      first.push({ do: 'validate', collection, ...valid(after, widened(before, after)) }, ...convert);
    }
  }
  if (from.type !== to.type) checks.push(...wholeDays(to));
  const late = settled(from, to);
  return chain(before, after, {
    checks,
    first,
    ...(isOther && { converted: { field: name, change } }),
    ...(first.length > 0 && { rewritten: { field: name, rule: change.rule } }),
    ...(late.length > 0 && { late: { checks: late, moves: convert } }),
  });
}

/** What no document may have once the validator holds, that it could have before. */
function settled(from: Field | undefined, to: Field): Check[] {
  const { name } = to;
  const { rule } = conversionTo(to);
  const checks: Check[] = [];
  if (!from || !isDeepStrictEqual(conversionTo(from).rule, rule)) {
    checks.push({ field: name, change: { rule }, why: `have a value in "${name}" that is no ${described(to)}` });
  }
  if (to.required && !from?.required) {
    checks.push({ lacking: name, why: `have no value for "${name}", which is required` });
  }
  return checks;
}

/** Both are dates to the server; a day with a time would be found by no day. */
function wholeDays({ name, type }: Field): Check[] {
  if (type !== 'date') return [];
  const milliseconds = { $convert: { input: `$${name}`, to: 'long', onError: 0, onNull: 0 } };
  const isWhole = { $eq: [{ $mod: [milliseconds, 86_400_000] }, 0] };
  const breaks = { $expr: { $cond: [{ $eq: [{ $type: `$${name}` }, 'date'] }, isWhole, true] } };
  return [{ breaks, why: `have a time of day in "${name}", which a date would lose` }];
}

function changeConstraint(before: Collection, after: Collection): Statement[] {
  const added = checksOf(after).filter(({ name }) => !before.constraints.has(name));
  const checks = added.map((check): Check => ({ breaks: checkClause(check), why: `break the check "${check.name}"` }));
  const late = checks.length > 0 && { late: { checks, moves: [] } };
  return chain(before, after, { checks, ...late });
}

/** Indexes alone: the validator stays as it is. */
function indexStep(before: Collection, after: Collection): Step {
  const fresh = without(specsOf(after), specsOf(before));
  const gone = without(specsOf(before), specsOf(after));
  const common = { collection: after.name, entry: entryOf(after) };
  return gone.length > 0
    ? { do: 'dropIndexes', ...common, indexes: gone }
    : { do: 'createIndexes', ...common, indexes: fresh, checks: duplicates(after, fresh) };
}

/** The rule alone decides whether a value stays; null is the business of `required`. */
function conversionTo(field: Field, from?: Field): Conversion {
  const expression = conversion(field.name, field, from);
  return { rule: ruleOf(optional(field)), ...(expression !== undefined && { expression }) };
}

function described({ type, length, precision, scale, items, enumValues }: Field): string {
  if (length !== undefined) return `${type} of ${length}`;
  if (precision !== undefined) return `${type}(${precision}, ${scale ?? 0})`;
  if (enumValues) return `one of ${enumValues.join(', ')}`;
  return items ? `array of ${items}` : type;
}

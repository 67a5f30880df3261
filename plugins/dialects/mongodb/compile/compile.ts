import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import type { Json } from '../../../../core/json.ts';
import { apply } from '../../../../core/schema/apply.ts';
import { defineCollection } from '../../../../core/schema/define.ts';
import { alreadyExistsError, collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, Field, SchemaModel } from '../../../../core/schema/model.ts';
import type { CreateCollection, Operation } from '../../../../core/schema/operation.ts';
import { assertSupported } from '../../../../core/schema/unsupported-features.ts';
import { registryEntry } from '../catalog/registry.ts';
import { conversionExpression } from '../data/conversion-expression.ts';
import { defaultValueOf } from '../data/default-values.ts';
import { alterCollection, duplicateChecks, validatorOptions } from './alter-collection.ts';
import { assertFieldAllowed, assertFieldNotRead, assertValidCollection } from './assert-collection.ts';
import { indexesNotIn, indexSpecs } from './indexes.ts';
import { assertName, NAME } from './names.ts';
import { compileRaw } from './raw-command.ts';
import { type Conversion, type MongoStatement, type MongoStep, type Precondition, stepStatement } from './step.ts';
import { ID } from './types.ts';
import { unsupported } from './unsupported-features.ts';
import {
  checkClause,
  checkConstraints,
  fieldRule,
  hasOtherTypes,
  isOnlyDescribed,
  nullableField,
  transitionValidator,
  validatorOf,
} from './validator.ts';

/** The statements of an operation. All except raw ones may run again. */
export function compile(operation: Operation, before: SchemaModel): readonly MongoStatement[] {
  if (operation.type === 'raw') return operation.dialect === NAME ? [compileRaw(operation)] : [];
  assertSupported('MongoDB', unsupported, operation, before);
  if (operation.type === 'createCollection') return createCollection(operation, before);
  const from = collectionOf(before, operation.collection);
  if (operation.type === 'dropCollection') return [stepStatement({ kind: 'drop', collection: from.name }, true)];
  const after = apply(before, operation);
  if (operation.type === 'renameCollection') {
    const { to } = operation;
    assertName(to, 'table');
    return [
      stepStatement({ kind: 'rename', collection: from.name, to, entry: registryEntry(collectionOf(after, to)) }),
    ];
  }
  const to = collectionOf(after, from.name);
  assertValidCollection(to);
  if (to.options.mongoOptions?.timeseries) assertOfSeries(operation, from.name);
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
      return [stepStatement(indexStep(from, to))];
    case 'addConstraint':
    case 'dropConstraint':
      return changeConstraint(from, to);
  }
}

/** Measurements of a time series cannot be rewritten, and have no validator. */
function assertOfSeries(operation: Operation, table: string): void {
  const { type } = operation;
  const isDescribed = type === 'addField' && operation.field.default === undefined && !operation.field.autoGenerate;
  if (isDescribed || type === 'createIndex' || type === 'dropIndex') return;
  throw new SvcError('not_supported', `MongoDB cannot change the fields of the time series "${table}" in that way.`, {
    why: 'The measurements of a time series cannot be rewritten, and have no validator.',
    state: 'Nothing was changed.',
    next: ['Add fields without a default and indexes, or create another time series and copy the measurements.'],
  });
}

function createCollection(operation: CreateCollection, before: SchemaModel): MongoStatement[] {
  const collection = defineCollection(operation);
  const { name, options } = collection;
  assertName(name, 'table');
  if (before.has(name) && !operation.options?.sqlOptions?.ifNotExists) throw alreadyExistsError('collection', name);
  assertValidCollection(collection);
  const { validator: _, validatorDescribesFields: __, ...others } = options.mongoOptions ?? {};
  if (others.capped && others.size === undefined) {
    throw new SvcError('schema_invalid', `The table "${name}" is capped but has no size.`, {
      why: 'MongoDB requires the size of a capped collection, in bytes.',
      next: ['Add "size" to its mongoOptions.'],
      details: { path: ['mongoOptions', 'capped'] },
    });
  }
  const validator = isOnlyDescribed(collection) ? undefined : validatorOf(collection);
  const { validationLevel: ___, validationAction: ____, ...plain } = others;
  return [
    stepStatement({
      kind: 'create',
      collection: name,
      options: (validator ? others : plain) as { readonly [key: string]: Json },
      ...(validator && { validator }),
      indexes: indexSpecs(collection),
      entry: registryEntry(collection),
    }),
  ];
}

function addField(before: Collection, after: Collection, field: Field): MongoStatement[] {
  const { name, required, unique } = field;
  assertFieldAllowed(after, name);
  const value = defaultValueOf(field);
  const change = conversionOf(field);
  const convertible: Precondition = {
    field: name,
    change,
    why: `have a value in "${name}" that is not a valid ${field.type}`,
  };
  const checks: Precondition[] = [convertible, ...wholeDayChecks(field)];
  if (required && !value) {
    checks.push({ missingField: name, why: `have no value for "${name}", which is required and has no default` });
  }
  if (unique && value && !('uuid' in value)) {
    checks.push({ missingField: name, atMost: 1, why: `would get the same default in "${name}", which is unique` });
  }
  if (value && 'expression' in value) {
    const why = `would get an invalid value from the default of "${name}"`;
    checks.push({ computed: value.expression, field: name, rule: change.rule, required: required === true, why });
  }
  const collection = after.name;
  const fill: MongoStep[] = value ? [{ kind: 'fill', collection, field: name, value }] : [];
  const convert: MongoStep[] =
    change.expression === undefined ? [] : [{ kind: 'convert', collection, field: name, change }];
  return alterCollection(before, after, {
    checks,
    first:
      fill.length > 0
        ? [{ kind: 'validate', collection, ...validatorOptions(after, transitionValidator(before, after)) }, ...fill]
        : [],
    converted: { field: name, change },
    // Converted last: few documents have the field before it is declared.
    catchUp: { checks: catchUpChecks(undefined, field), moves: [...convert, ...fill] },
  });
}

function dropField(before: Collection, after: Collection, field: string): MongoStatement[] {
  assertFieldNotRead(before, field, 'dropped');
  const removed = indexesNotIn(indexSpecs(before), indexSpecs(after));
  const { name: collection } = after;
  return [
    stepStatement({
      kind: 'validate',
      collection,
      ...validatorOptions(after, validatorOf(after)),
      rewritten: { field },
    }),
    ...(removed.length > 0 ? [stepStatement({ kind: 'dropIndexes', collection, indexes: removed })] : []),
    stepStatement({ kind: 'unset', collection, field }, true),
    stepStatement({
      kind: 'validate',
      collection,
      ...validatorOptions(after, validatorOf(after)),
      entry: registryEntry(after),
    }),
  ];
}

function renameField(before: Collection, after: Collection, from: string, to: string): MongoStatement[] {
  assertName(to, 'field');
  assertFieldNotRead(before, from, 'renamed');
  assertFieldAllowed(after, to);
  const field = fieldOf(after, to);
  const checks: Precondition[] = [
    { both: [from, to], why: `have a value in both "${from}" and "${to}"` },
    ...catchUpChecks(undefined, nullableField(field)),
  ];
  const collection = after.name;
  const move: MongoStep = { kind: 'move', collection, from, to };
  return alterCollection(before, after, {
    checks,
    first: [{ kind: 'validate', collection, ...validatorOptions(after, transitionValidator(before, after)) }, move],
    rewritten: { field: from },
    catchUp: {
      checks: [
        { mustMatch: { [from]: { $exists: false } }, why: `still have a value in "${from}", which is now "${to}"` },
      ],
      moves: [move],
    },
  });
}

function modifyField(before: Collection, after: Collection, name: string): MongoStatement[] {
  const [from, to] = [fieldOf(before, name), fieldOf(after, name)];
  const hasNewRule = !isDeepStrictEqual(fieldRule(from), fieldRule(to));
  if (hasNewRule && (name === ID || hasOtherTypes(after, to))) assertFieldNotRead(before, name, 'modified');
  const checks: Precondition[] = [];
  const first: MongoStep[] = [];
  if (to.required && !from.required) {
    checks.push({ missingField: name, why: `have no value for "${name}", which becomes required` });
  }
  const change = conversionOf(to, from);
  const collection = after.name;
  const convert: MongoStep[] =
    change.expression === undefined ? [] : [{ kind: 'convert', collection, field: name, change }];
  const ruleChanges = !isDeepStrictEqual(conversionOf(from).rule, change.rule);
  if (ruleChanges) {
    checks.push({
      field: name,
      change,
      why: `have a value in "${name}" that cannot be converted to ${typeText(to)} without loss`,
    });
    if (convert.length > 0) {
      first.push(
        { kind: 'validate', collection, ...validatorOptions(after, transitionValidator(before, after)) },
        ...convert,
      );
    }
  }
  if (from.type !== to.type) checks.push(...wholeDayChecks(to));
  const catchUp = catchUpChecks(from, to);
  return alterCollection(before, after, {
    checks,
    first,
    ...(ruleChanges && { converted: { field: name, change } }),
    ...(first.length > 0 && { rewritten: { field: name, rule: change.rule } }),
    ...(catchUp.length > 0 && { catchUp: { checks: catchUp, moves: convert } }),
  });
}

/** Preconditions that documents may have violated before the validator was set. */
function catchUpChecks(from: Field | undefined, to: Field): Precondition[] {
  const { name } = to;
  const { rule } = conversionOf(to);
  const checks: Precondition[] = [];
  if (!from || !isDeepStrictEqual(conversionOf(from).rule, rule)) {
    checks.push({
      field: name,
      change: { rule },
      why: `have a value in "${name}" that is not a valid ${typeText(to)}`,
    });
  }
  if (to.required && !from?.required) {
    checks.push({ missingField: name, why: `have no value for "${name}", which is required` });
  }
  return checks;
}

/** BSON has one type for dates with and without a time; a `date` with a time would equal no other `date`. */
function wholeDayChecks({ name, type }: Field): Precondition[] {
  if (type !== 'date') return [];
  const milliseconds = { $convert: { input: `$${name}`, to: 'long', onError: 0, onNull: 0 } };
  const isWhole = { $eq: [{ $mod: [milliseconds, 86_400_000] }, 0] };
  const mustMatch = { $expr: { $cond: [{ $eq: [{ $type: `$${name}` }, 'date'] }, isWhole, true] } };
  return [{ mustMatch, why: `have a time of day in "${name}", which a date would lose` }];
}

function changeConstraint(before: Collection, after: Collection): MongoStatement[] {
  const added = checkConstraints(after).filter(({ name }) => !before.constraints.has(name));
  const checks = added.map(
    (check): Precondition => ({ mustMatch: checkClause(check), why: `violate the check "${check.name}"` }),
  );
  const catchUp = checks.length > 0 && { catchUp: { checks, moves: [] } };
  return alterCollection(before, after, { checks, ...catchUp });
}

/** A change of indexes only; the validator stays as it is. */
function indexStep(before: Collection, after: Collection): MongoStep {
  const added = indexesNotIn(indexSpecs(after), indexSpecs(before));
  const removed = indexesNotIn(indexSpecs(before), indexSpecs(after));
  const common = { collection: after.name, entry: registryEntry(after) };
  return removed.length > 0
    ? { kind: 'dropIndexes', ...common, indexes: removed }
    : { kind: 'createIndexes', ...common, indexes: added, checks: duplicateChecks(after, added) };
}

/** The rule allows null, which `required` rejects separately. */
function conversionOf(field: Field, from?: Field): Conversion {
  const expression = conversionExpression(field.name, field, from);
  return { rule: fieldRule(nullableField(field)), ...(expression !== undefined && { expression }) };
}

function typeText({ type, length, precision, scale, items, enumValues }: Field): string {
  if (length !== undefined) return `${type}(${length})`;
  if (precision !== undefined) return `${type}(${precision}, ${scale ?? 0})`;
  if (enumValues) return `${type} (${enumValues.join(', ')})`;
  return items ? `array of ${items}` : type;
}

import type { Statement } from '../../../../core/dialect.ts';
import type { Collection, FieldType } from '../../../../core/schema/model.ts';
import { registryEntry } from '../catalog/registry.ts';
import { type IndexSpec, indexesNotIn, indexSpecs } from './indexes.ts';
import {
  type ConvertedField,
  type LateMoves,
  type MongoStep,
  type Precondition,
  type RewrittenField,
  stepStatement,
} from './step.ts';
import { validatorOf } from './validator.ts';

/** How documents change between two models. */
export interface DocumentChanges {
  /** Checked before the first step. */
  readonly checks: readonly Precondition[];
  /** Steps that change documents; the first one widens the validator. */
  readonly first?: readonly MongoStep[];
  readonly converted?: ConvertedField;
  readonly rewritten?: RewrittenField;
  readonly late?: LateMoves;
}

/**
 * The steps between two models: drop changed indexes, change the documents, create the new indexes, set the new
 * validator, and repeat the change for documents that were written late. The first step checks all preconditions.
 */
export function alterCollection(
  before: Collection,
  after: Collection,
  { checks, first = [], converted, rewritten, late }: DocumentChanges,
): Statement[] {
  const { name: collection } = after;
  const removed = indexesNotIn(indexSpecs(before), indexSpecs(after));
  const added = indexesNotIn(indexSpecs(after), indexSpecs(before));
  const [widen, ...moves] = first;
  const steps: MongoStep[] = [
    ...(widen ? [widen] : []),
    ...(removed.length > 0 ? [{ do: 'dropIndexes' as const, collection, indexes: removed }] : []),
    ...moves,
    ...(added.length > 0 ? [{ do: 'createIndexes' as const, collection, indexes: added }] : []),
    {
      do: 'validate',
      collection,
      ...validatorOptions(after, validatorOf(after)),
      entry: registryEntry(after),
      ...(late && isValidatorEnforced(after) && { late }),
    },
  ];
  const onOldFields = added.filter(({ key }) => key.every(([name]) => before.fields.has(name)));
  const onConverted = indexSpecs(after).filter(({ key }) => key.some(([name]) => name === converted?.field));
  const held = converted && { ...converted, held: true as const };
  const allChecks = [
    ...checks,
    ...duplicateChecks(after, indexesNotIn(onOldFields, onConverted)),
    ...duplicateChecks(after, indexesNotIn(onConverted, indexSpecs(before)), converted),
    ...duplicateChecks(after, indexesNotIn(onConverted, added), held),
  ];
  const assertions = { ...(allChecks.length > 0 && { checks: allChecks }), ...(rewritten && { rewritten }) };
  return steps.map((step, index) => stepStatement(index === 0 ? { ...step, ...assertions } : step));
}

/** Whether the server rejects documents that violate the validator. */
function isValidatorEnforced({ options: { mongoOptions } }: Collection): boolean {
  return mongoOptions?.validationLevel !== 'off' && mongoOptions?.validationAction !== 'warn';
}

export function duplicateChecks(
  { fields }: Collection,
  specs: readonly IndexSpec[],
  of?: ConvertedField,
): Precondition[] {
  return specs
    .filter(({ unique }) => unique)
    .map((spec) => {
      const lists = spec.key.flatMap(([name]) => (ARRAY_TYPES.has(fields.get(name)?.type) ? [name] : []));
      return {
        duplicates: spec,
        ...(lists.length > 0 && { lists }),
        ...(of && { of }),
        why: `have the same ${spec.key.map(([name]) => `"${name}"`).join(', ')} as another one`,
      };
    });
}

/** Types whose values may be arrays, of which a unique index contains each element. */
const ARRAY_TYPES: ReadonlySet<FieldType | undefined> = new Set(['array', 'json']);

/** The validator and its options in a step. */
export function validatorOptions({ options }: Collection, validator: ReturnType<typeof validatorOf>) {
  const { validationLevel, validationAction } = options.mongoOptions ?? {};
  return {
    ...(validator && { validator }),
    ...(validationLevel !== undefined && { validationLevel }),
    ...(validationAction !== undefined && { validationAction }),
  };
}

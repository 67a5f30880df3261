import type { Collection, FieldType } from '../../../../core/schema/model.ts';
import { registryEntry } from '../catalog/registry.ts';
import { type IndexSpec, indexesNotIn, indexSpecs } from './indexes.ts';
import {
  type CatchUp,
  type ConvertedField,
  type MongoStatement,
  type MongoStep,
  type Precondition,
  type RewrittenField,
  stepStatement,
} from './step.ts';
import { isOnlyDescribed, validatorOf } from './validator.ts';

/** How documents change between two models. */
interface DocumentChanges {
  /** Checked before the first step. */
  readonly checks: readonly Precondition[];
  /** Steps that change documents; the first one widens the validator. */
  readonly first?: readonly MongoStep[];
  readonly converted?: ConvertedField;
  readonly rewritten?: RewrittenField;
  readonly catchUp?: CatchUp;
}

/**
 * The steps between two models: drop changed indexes, change the documents, create the new indexes, set the new
 * validator, and repeat the change for documents written before the validator was set. The first step checks all preconditions.
 */
export function alterCollection(
  before: Collection,
  after: Collection,
  { checks, first = [], converted, rewritten, catchUp }: DocumentChanges,
): MongoStatement[] {
  const { name: collection } = after;
  if (after.options.mongoOptions?.timeseries)
    return [stepStatement({ kind: 'validate', collection, entry: registryEntry(after), registryOnly: true })];
  const removed = indexesNotIn(indexSpecs(before), indexSpecs(after));
  const added = indexesNotIn(indexSpecs(after), indexSpecs(before));
  const [widen, ...moves] = first;
  const steps: MongoStep[] = [
    ...(widen ? [widen] : []),
    ...(removed.length > 0 ? [{ kind: 'dropIndexes' as const, collection, indexes: removed }] : []),
    ...moves,
    ...(added.length > 0 ? [{ kind: 'createIndexes' as const, collection, indexes: added }] : []),
    {
      kind: 'validate',
      collection,
      ...validatorOptions(after, validatorOf(after)),
      entry: registryEntry(after),
      ...(catchUp && isValidatorEnforced(after) && { catchUp }),
    },
  ];
  const onOldFields = added.filter(({ key }) => key.every(([name]) => before.fields.has(name)));
  const onConverted = indexSpecs(after).filter(({ key }) => key.some(([name]) => name === converted?.field));
  const indexed = converted && { ...converted, indexExists: true as const };
  const allChecks = [
    ...checks,
    ...duplicateChecks(after, indexesNotIn(onOldFields, onConverted)),
    ...duplicateChecks(after, indexesNotIn(onConverted, indexSpecs(before)), converted),
    ...duplicateChecks(after, indexesNotIn(onConverted, added), indexed),
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
  converted?: ConvertedField,
): Precondition[] {
  return (
    specs
      // The server itself finds the duplicates of an index with options of its own.
      .filter(({ unique, written }) => unique && written === undefined)
      .map((spec) => {
        const arrayFields = spec.key.flatMap(([name]) => (ARRAY_TYPES.has(fields.get(name)?.type) ? [name] : []));
        return {
          duplicates: spec,
          ...(arrayFields.length > 0 && { arrayFields }),
          ...(converted && { converted }),
          why: `have the same ${spec.key.map(([name]) => `"${name}"`).join(', ')} as another document`,
        };
      })
  );
}

/** Types whose values may be arrays. A unique index contains each element of an array. */
const ARRAY_TYPES: ReadonlySet<FieldType | undefined> = new Set(['array', 'json']);

/** The validator and its options in a step. */
export function validatorOptions(collection: Collection, validator: ReturnType<typeof validatorOf>) {
  const { validationLevel, validationAction } = collection.options.mongoOptions ?? {};
  if (isOnlyDescribed(collection)) return {};
  return {
    ...(validator && { validator }),
    ...(validationLevel !== undefined && { validationLevel }),
    ...(validationAction !== undefined && { validationAction }),
  };
}

import type { Statement } from '../../../core/dialect.ts';
import type { Collection } from '../../../core/schema/model.ts';
import type { FieldType } from '../../../core/schema/types.ts';
import { type Spec, specsOf, without } from './indexes.ts';
import { type Check, type Converted, entryOf, type Late, type Rewritten, type Step, statement } from './step.ts';
import { validatorOf } from './validator.ts';

/** What is done to documents between two models, and what for. */
export interface Moves {
  readonly checks: readonly Check[];
  /** The first of them widens the validator. */
  readonly first?: readonly Step[];
  readonly converted?: Converted;
  readonly rewritten?: Rewritten;
  readonly late?: Late;
}

/**
 * Between two models: what `first` does to the documents, with the indexes that change out of its way, then the
 * indexes and the validator of the model after, and a look at what came late. Whatever is the first step looks whether
 * all of it can be done.
 */
export function chain(
  before: Collection,
  after: Collection,
  { checks, first = [], converted, rewritten, late }: Moves,
): Statement[] {
  const { name: collection } = after;
  const gone = without(specsOf(before), specsOf(after));
  const fresh = without(specsOf(after), specsOf(before));
  const [begin, ...moves] = first;
  const steps: Step[] = [
    ...(begin ? [begin] : []),
    ...(gone.length > 0 ? [{ do: 'dropIndexes' as const, collection, indexes: gone }] : []),
    ...moves,
    ...(fresh.length > 0 ? [{ do: 'createIndexes' as const, collection, indexes: fresh }] : []),
    {
      do: 'validate',
      collection,
      ...valid(after, validatorOf(after)),
      entry: entryOf(after),
      ...(late && holds(after) && { late }),
    },
  ];
  const known = fresh.filter(({ key }) => key.every(([name]) => before.fields.has(name)));
  const moved = specsOf(after).filter(({ key }) => key.some(([name]) => name === converted?.field));
  const held = converted && { ...converted, held: true as const };
  const all = [
    ...checks,
    ...duplicates(after, without(known, moved)),
    ...duplicates(after, without(moved, specsOf(before)), converted),
    ...duplicates(after, without(moved, fresh), held),
  ];
  const asked = { ...(all.length > 0 && { checks: all }), ...(rewritten && { rewritten }) };
  return steps.map((step, index) => statement(index === 0 ? { ...step, ...asked } : step));
}

/** Whether the validator keeps out what it does not let through. */
function holds({ options: { mongoOptions } }: Collection): boolean {
  return mongoOptions?.validationLevel !== 'off' && mongoOptions?.validationAction !== 'warn';
}

export function duplicates({ fields }: Collection, specs: readonly Spec[], of?: Converted): Check[] {
  return specs
    .filter(({ unique }) => unique)
    .map((spec) => {
      const lists = spec.key.flatMap(([name]) => (LISTS.has(fields.get(name)?.type) ? [name] : []));
      return {
        duplicates: spec,
        ...(lists.length > 0 && { lists }),
        ...(of && { of }),
        why: `have the same ${spec.key.map(([name]) => `"${name}"`).join(', ')} as another one`,
      };
    });
}

/** Of an array, each element is a value that an index keeps unique among documents. */
const LISTS: ReadonlySet<FieldType | undefined> = new Set(['array', 'json']);

/** What a step that sets a validator says of it. */
export function valid({ options }: Collection, validator: ReturnType<typeof validatorOf>) {
  const { validationLevel, validationAction } = options.mongoOptions ?? {};
  return {
    ...(validator && { validator }),
    ...(validationLevel !== undefined && { validationLevel }),
    ...(validationAction !== undefined && { validationAction }),
  };
}

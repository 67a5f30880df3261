import fc from 'fast-check';
import type { SchemaModel } from '../../core/schema/model.ts';
import {
  type AppliedMoves,
  applyMoves,
  CHOICES,
  type SchemaChoices,
  type SchemaMove,
} from '../suites/random-schema.ts';

export function arbitraryMoves(maxLength: number, choices: SchemaChoices = CHOICES): fc.Arbitrary<SchemaMove[]> {
  const move = fc.record({
    kind: fc.constantFrom(...choices.kinds),
    numbers: fc.array(fc.nat(997), { minLength: 8, maxLength: 8 }),
  });
  return fc.array(move, { maxLength, size: 'max' });
}

/** A model, and another one made from it by moves, with the renames among them. */
export function arbitraryChange(choices: SchemaChoices = CHOICES): fc.Arbitrary<AppliedMoves> {
  return fc
    .tuple(arbitraryMoves(40, choices), arbitraryMoves(12, choices))
    .map(([first, second]) => applyMoves(second, applyMoves(first, new Map(), choices).model, choices));
}

/** A model with at least a table, most with several and with foreign keys. */
export function arbitraryModel(choices: SchemaChoices = CHOICES): fc.Arbitrary<SchemaModel> {
  return arbitraryMoves(40, choices).map((list) => applyMoves(list, new Map(), choices).model);
}

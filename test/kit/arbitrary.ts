import fc from 'fast-check';
import type { SchemaModel } from '../../core/schema/model.ts';
import { CHOICES, type Move, type Played, play, type SchemaChoices } from './moves.ts';

export function moves(maxLength: number, choices: SchemaChoices = CHOICES): fc.Arbitrary<Move[]> {
  const move = fc.record({
    kind: fc.constantFrom(...choices.kinds),
    numbers: fc.array(fc.nat(997), { minLength: 8, maxLength: 8 }),
  });
  return fc.array(move, { maxLength, size: 'max' });
}

/** A model, and another one made from it by moves, with the renames among them. */
export function related(choices: SchemaChoices = CHOICES): fc.Arbitrary<Played> {
  return fc
    .tuple(moves(40, choices), moves(12, choices))
    .map(([first, second]) => play(second, play(first, new Map(), choices).model, choices));
}

/** A model with at least a table, most with several and with foreign keys. */
export function models(choices: SchemaChoices = CHOICES): fc.Arbitrary<SchemaModel> {
  return moves(40, choices).map((list) => play(list, new Map(), choices).model);
}

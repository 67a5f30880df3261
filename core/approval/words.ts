import { storable } from '../agent/own-json.ts';
import { wordsOf } from '../errors.ts';

/** Characters of a reason, and of a decider's name. */
export const LONGEST_WORDS = 10_000;

/** What somebody said of why, or threw, as every store keeps it. */
export function keptWords(said: unknown, longest = LONGEST_WORDS): string {
  return storable(wordsOf(said).slice(0, longest));
}

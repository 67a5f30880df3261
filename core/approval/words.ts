import { storable } from '../agent/own-json.ts';

/** Characters of a reason, and of a decider's name. */
export const LONGEST_WORDS = 10_000;

/** What somebody said of why, or threw, as every store keeps it. */
export function keptWords(said: unknown, longest = LONGEST_WORDS): string {
  return storable(wordsOf(said).slice(0, longest));
}

/** The message of what was thrown, which may be anything, and have anything for a message. Never throws. */
export function wordsOf(said: unknown): string {
  try {
    const message = typeof said === 'object' && said !== null && 'message' in said ? said.message : said;
    if (typeof message === 'string') return message;
    if (message !== said && message !== undefined) return JSON.stringify(message);
    return said instanceof Error ? said.name : String(said);
  } catch {
    return 'What was thrown says nothing of why.';
  }
}

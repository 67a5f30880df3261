import type { Problem } from '../validate-shape.ts';

/** A year. */
const MAX_VALID_MS = 31_557_600_000;

/** What is wrong with the end of a delegation or a standing rule. `now`: milliseconds since 1970, by the store's clock. */
export function untilProblems(until: unknown, now: number): Problem[] {
  const problem = (text: string): Problem[] => [{ path: ['until'], text }];
  if (!(until instanceof Date) || Number.isNaN(until.getTime())) return problem('is not a date');
  if (until.getTime() <= now) return problem('is not in the future');
  return until.getTime() > now + MAX_VALID_MS ? problem('is not within a year') : [];
}

/**
 * A numeric literal as the number of single precision next to it, which is what a column of it keeps: with 1.1 itself it
 * compares as 1.10000002 and is never equal. What is no such number stays as it is written.
 */
export function single(literal: string): string {
  const nearest = String(Math.fround(Number(literal)));
  if (!/^-?\d/.test(nearest)) return literal;
  return nearest.includes('e') ? nearest : `${nearest}e0`;
}

import { v7 } from 'uuid';

/** Sorts by time, and cannot be guessed from another one. */
export const newRequestId = (): string => `apr_${v7()}`;
export const newExecutionId = (): string => `exe_${v7()}`;

/** The smallest id that could have been made at that moment: a bound for pages. */
export function firstIdAt(moment: Date, kind: 'apr' | 'exe' = 'apr'): string {
  const time = Math.max(0, moment.getTime()).toString(16).padStart(12, '0');
  return `${kind}_${time.slice(0, 8)}-${time.slice(8)}`;
}

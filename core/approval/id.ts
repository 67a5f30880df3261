import { v7 } from 'uuid';

/** Sorts by time, and cannot be guessed from another one. */
export const newRequestId = (): string => `apr_${v7()}`;
export const newExecutionId = (): string => `exe_${v7()}`;

const REQUEST_ID = /^apr_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Any other text is the id of no request, and not every store takes it for a key. */
export const isRequestId = (text: string): boolean => REQUEST_ID.test(text);

/** The smallest id that could have been made at that moment: a bound for pages. */
export function firstIdAt(moment: Date, kind: 'apr' | 'exe' = 'apr'): string {
  const time = Math.max(0, moment.getTime()).toString(16).padStart(12, '0');
  return `${kind}_${time.slice(0, 8)}-${time.slice(8)}`;
}

/** An error in one line: one of several addresses has no message of its own. */
export function told(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(told).join(', ');
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? (error.message.split('\n')[0] ?? '') : told(error.cause);
}

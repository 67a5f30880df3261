/** A year: the longest that a request or a caller of a gate waits, and that a run of an agent may take. */
export const LONGEST_WAIT_MS = 31_536_000_000;

/** Simulates a machine that slept: only the wall clock moves ahead, not the monotonic clock. */
export async function withClockAhead<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const { now } = Date;
  Date.now = () => now() + ms;
  try {
    return await work();
  } finally {
    Date.now = now;
  }
}

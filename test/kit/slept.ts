/** What a process sees that wakes up on a machine that slept for so long: its monotonic clock stood still meanwhile. */
export async function slept<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const { now } = Date;
  Date.now = () => now() + ms;
  try {
    return await work();
  } finally {
    Date.now = now;
  }
}

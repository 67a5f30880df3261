/** The number of cores of the test machine. */
const CONCURRENCY = 2;

/** Runs `work` for all items, a few at a time. The first error stops it. `items` is read lazily. */
export async function mapConcurrently<T, R>(items: Iterable<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const remaining = items[Symbol.iterator]();
  let failed = false;
  const worker = async (): Promise<void> => {
    for (let item = remaining.next(); !item.done && !failed; item = remaining.next()) {
      try {
        results.push(await work(item.value));
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: CONCURRENCY }, worker));
  const broken = outcomes.find((outcome) => outcome.status === 'rejected');
  if (broken) throw broken.reason;
  return results;
}

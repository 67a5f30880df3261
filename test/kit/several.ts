/** As many as the machine that tests run on has cores. */
const AT_ONCE = 2;

/** Some of them at a time; the first failure ends it. What is endless ends when `items` does. */
export async function several<T, R>(items: Iterable<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = items[Symbol.iterator]();
  let failed = false;
  const worker = async (): Promise<void> => {
    for (let item = left.next(); !item.done && !failed; item = left.next()) {
      try {
        results.push(await work(item.value));
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
  const broken = outcomes.find((outcome) => outcome.status === 'rejected');
  if (broken) throw broken.reason;
  return results;
}

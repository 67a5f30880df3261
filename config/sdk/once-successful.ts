/** Starts `work` on the first call and returns its promise to every later one; after a failure the next call starts it again. */
export function onceSuccessful<T>(work: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined;
  return () => {
    if (started) return started;
    const attempt = work();
    started = attempt;
    attempt.catch(() => {
      started = undefined;
    });
    return attempt;
  };
}

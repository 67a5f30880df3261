/** Callbacks by signal. */
const listeners = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `work` when the signal aborts. Returns a function that removes the callback. All callbacks of a signal share one
 * event listener, because Node reports more than ten as a leak.
 */
export function onAbort(signal: AbortSignal, work: () => void): () => void {
  const works = listeners.get(signal) ?? listen(signal);
  const own = () => work();
  works.add(own);
  return () => void works.delete(own);
}

function listen(signal: AbortSignal): Set<() => void> {
  const works = new Set<() => void>();
  listeners.set(signal, works);
  signal.addEventListener(
    'abort',
    () => {
      for (const work of works) work();
    },
    { once: true },
  );
  return works;
}

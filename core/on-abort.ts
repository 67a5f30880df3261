/** Who is to be called when a signal aborts. */
const heard = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `work` when the signal aborts, until what it gives is called. However many share a signal, it has one
 * listener: Node takes more than ten for a leak.
 */
export function onAbort(signal: AbortSignal, work: () => void): () => void {
  const works = heard.get(signal) ?? listen(signal);
  const own = () => work();
  works.add(own);
  return () => void works.delete(own);
}

function listen(signal: AbortSignal): Set<() => void> {
  const works = new Set<() => void>();
  heard.set(signal, works);
  signal.addEventListener(
    'abort',
    () => {
      for (const work of works) work();
    },
    { once: true },
  );
  return works;
}

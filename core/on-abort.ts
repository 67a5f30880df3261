// per copy: two listeners are no leak.
const listeners = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` when the signal aborts. Returns a function that removes it. All callbacks of a signal share one event
 * listener, because Node reports more than ten as a leak. A signal that has already aborted never calls it: check
 * `signal.aborted` too.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = listeners.get(signal) ?? listen(signal);
  const entry = () => callback();
  callbacks.add(entry);
  return () => void callbacks.delete(entry);
}

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>();
  listeners.set(signal, callbacks);
  signal.addEventListener('abort', () => callbacks.forEach((callback) => void callback()), { once: true });
  return callbacks;
}

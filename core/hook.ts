import { AsyncSeriesHook } from 'tapable';

/** A hook whose `tap` waits for a promise that the tap returns: otherwise an async function would decide too late. */
export function createHook<T>(parameter: string): AsyncSeriesHook<[T]> {
  const hook = new AsyncSeriesHook<[T]>([parameter]);
  hook.tap = (options, tap) => hook.tapPromise(options, async (value) => tap(value));
  return hook;
}

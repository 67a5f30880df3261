import { processWide } from '../../../core/process-wide.ts';

/** Connections of this process that share one instance. */
interface SharedInstance {
  users: number;
  readonly ready: Promise<unknown>;
  /** Set while the instance closes: it can only be opened again afterwards. */
  closing?: Promise<void>;
}

/**
 * Opens an instance once per key in this process, for an engine that allows no second one. `close` is called when its last
 * user releases it. Two copies of this package share it too, so the instance must keep its shape between versions.
 */
export async function shareInstance<T>(
  key: string,
  open: () => Promise<T>,
  close: (instance: T) => Promise<void>,
): Promise<{ readonly instance: T; release(): Promise<void> }> {
  const instances = processWide('shared-instances', () => new Map<string, SharedInstance>());
  for (let closing = instances.get(key)?.closing; closing; closing = instances.get(key)?.closing) await closing;
  const shared: SharedInstance = instances.get(key) ?? { users: 0, ready: open() };
  instances.set(key, shared);
  shared.users += 1;
  const forget = () => {
    if (instances.get(key) === shared) instances.delete(key);
  };
  // All users of a key open the same type of instance.
  const ready = shared.ready as Promise<T>;
  let released: Promise<void> | undefined;
  const leave = async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    const closed = close(await ready);
    shared.closing = closed.catch(() => undefined).then(forget);
    await closed;
    await shared.closing;
  };
  try {
    return {
      instance: await ready,
      release() {
        released ??= leave();
        return released;
      },
    };
  } catch (error) {
    shared.users -= 1;
    if (shared.users === 0) forget();
    throw error;
  }
}

import { AsyncLocalStorage, createHook } from 'node:async_hooks';

/** Runs `work`, and returns a function that lists the timers which it started and which have not ended. */
export async function timersOf(work: () => Promise<void>): Promise<() => readonly NodeJS.Timeout[]> {
  const started = new Map<number, NodeJS.Timeout>();
  const context = new AsyncLocalStorage<typeof started>();
  const hook = createHook({
    init(id, type, _trigger, resource) {
      if (type === 'Timeout' && context.getStore() === started) started.set(id, resource as NodeJS.Timeout);
    },
    destroy: (id) => void started.delete(id),
  }).enable();
  await context.run(started, work).finally(() => setTimeout(() => hook.disable(), HOOK_MS).unref());
  return () => [...started.values()];
}

/** How long the ends of timers are still noted. */
const HOOK_MS = 10_000;

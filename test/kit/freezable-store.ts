import type { StorageBackend } from '../../core/approval/backend.ts';

export interface FreezableStore {
  readonly backend: StorageBackend;
  isFrozen(): boolean;
  /** Rejects when the simulated process is killed. */
  hang(): Promise<unknown>;
  /** Ends the simulated process: no further call reaches the store. */
  kill(): void;
}

/** Simulates a process that freezes: from the call `freezeAt` on, its calls do not reach the store and never settle. */
export function freezableStore(store: StorageBackend, freezeAt = Number.POSITIVE_INFINITY): FreezableStore {
  let calls = 0;
  const pending: ((error: Error) => void)[] = [];
  let isKilled = false;
  const hang = () =>
    new Promise((_, reject) => {
      if (isKilled) reject(new Error('killed'));
      else pending.push(reject);
    });
  const intercept = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const member = Reflect.get(object, name, object);
        if (typeof member !== 'function') return member;
        if (name === 'records') return (...args: unknown[]) => intercept(member.apply(object, args));
        return (...args: unknown[]) => {
          calls += 1;
          return isKilled || calls >= freezeAt ? hang() : member.apply(object, args);
        };
      },
    });
  return {
    backend: intercept(store),
    isFrozen: () => calls >= freezeAt,
    hang,
    kill() {
      isKilled = true;
      for (const reject of pending.splice(0)) reject(new Error('killed'));
    },
  };
}

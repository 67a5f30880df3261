import type { StorageBackend } from '../../core/approval/backend.ts';

export interface Freezable {
  readonly home: StorageBackend;
  isFrozen(): boolean;
  /** Settles when the process is buried. */
  hang(): Promise<unknown>;
  /** Lets it come to an end: none of its calls reaches the store any more. */
  bury(): void;
}

/** A process as the store sees it: frozen, it says nothing more and hears nothing more. */
export function freezable(store: StorageBackend, freezeAt = Number.POSITIVE_INFINITY): Freezable {
  let calls = 0;
  const hanging: ((error: Error) => void)[] = [];
  let isBuried = false;
  const hang = () =>
    new Promise((_, reject) => {
      if (isBuried) reject(new Error('buried'));
      else hanging.push(reject);
    });
  const through = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const member = Reflect.get(object, name, object);
        if (typeof member !== 'function') return member;
        if (name === 'records') return (...args: unknown[]) => through(member.apply(object, args));
        return (...args: unknown[]) => {
          calls += 1;
          return isBuried || calls >= freezeAt ? hang() : member.apply(object, args);
        };
      },
    });
  return {
    home: through(store),
    isFrozen: () => calls >= freezeAt,
    hang,
    bury() {
      isBuried = true;
      for (const reject of hanging.splice(0)) reject(new Error('buried'));
    },
  };
}

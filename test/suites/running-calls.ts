import type { Connection, Segment } from '../../core/dialect.ts';

const MAX_LENGTH = 200;

/** The calls of connections that have not ended, for the message of a case that takes too long. */
export class RunningCalls {
  readonly #calls = new Map<object, { readonly text: string; readonly startedAt: number }>();
  #ended = 0;

  /** The connection, whose calls are listed. */
  track(connection: Connection): Connection {
    return new Proxy(connection, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...args: readonly unknown[]) => {
          const result: unknown = Reflect.apply(member, target, args);
          if (!(result instanceof Promise)) return result;
          const call = {};
          this.#calls.set(call, { text: describeCall(String(name), args), startedAt: performance.now() });
          return result.finally(() => {
            this.#calls.delete(call);
            this.#ended += 1;
          });
        };
      },
    });
  }

  describe(): string {
    const running = [...this.#calls.values()].map(
      ({ text, startedAt }) => `${text}, for ${Math.round(performance.now() - startedAt)} ms`,
    );
    return `${this.#ended} calls have ended; running: ${running.join('; ') || 'none'}`;
  }
}

function describeCall(name: string, [first]: readonly unknown[]): string {
  const text =
    name === 'run'
      ? (first as readonly Segment[]).flatMap(({ statements }) => statements.map((one) => one.text)).join('; ')
      : typeof first === 'string'
        ? first
        : '';
  return `${name}(${text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text})`;
}

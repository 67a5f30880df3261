/** Kills this process with SIGKILL at a point, such as `claimed` or `store:3` (before the third call of the store). */
export function killSwitch(argument = '') {
  const [killPoint, count] = argument.split(':');
  let timesReached = 0;

  /** Kills the process without any cleanup. */
  function killAt(at: string): void {
    if (at !== killPoint) return;
    timesReached += 1;
    if (timesReached === Number(count ?? 1)) process.kill(process.pid, 'SIGKILL');
  }

  /** Kills the process after its n-th write to the store (`written`), or before its n-th call of it (`store`). */
  function killable<T extends object>(target: T): T {
    return new Proxy(target, {
      get(object, name) {
        const member = Reflect.get(object, name, object);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]) => {
          if (name === 'records') return killable(member.apply(object, args));
          killAt('store');
          const result = member.apply(object, args);
          if (name !== 'insert' && name !== 'replace') return result;
          return result.then((answer: unknown) => {
            killAt('written');
            return answer;
          });
        };
      },
    });
  }

  return { killAt, killable };
}

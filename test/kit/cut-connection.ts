import type { Connection, RunOutcome } from '../../core/dialect.ts';
import { SvcError } from '../../core/errors.ts';

/**
 * A connection that is lost at a statement outside a transaction: before the first, behind the first, before the second
 * and so on, from 1. How many segments are sent at once depends on how quickly they are done; these statements do not.
 */
export function cutConnection(connection: Connection, at: number): Connection {
  let left = Math.ceil(at / 2);
  let isLost = false;
  const lost = (outcome: RunOutcome): RunOutcome => ({
    ...outcome,
    failure: { statement: undefined, error: new SvcError('connection_lost', 'It was cut off.') },
  });
  const run: Connection['run'] = async (segments, ...rest) => {
    if (isLost) return lost({ committed: 0, written: [] });
    const end = segments.findIndex(({ transactional }) => {
      if (!transactional) left -= 1;
      return left === 0;
    });
    if (end < 0) return connection.run(segments, ...rest);
    isLost = true;
    const outcome = await connection.run(segments.slice(0, at % 2 === 0 ? end + 1 : end), ...rest);
    return outcome.failure ? outcome : lost(outcome);
  };
  return new Proxy(connection, {
    get(target, name) {
      if (name === 'run') return run;
      const member = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

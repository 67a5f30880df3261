import type { Connection, RunOutcome } from '../../core/dialect.ts';
import { SvcError } from '../../core/errors.ts';

/**
 * A connection that is lost at a statement outside of a transaction: 1 is before the first, 2 after the first, 3 before
 * the second and so on. Unlike the segments that are sent together, these points do not depend on timing.
 */
export function cutConnection(connection: Connection, cutPoint: number): Connection {
  let remaining = Math.ceil(cutPoint / 2);
  let isLost = false;
  const lost = (outcome: RunOutcome): RunOutcome => ({
    ...outcome,
    failure: { statement: undefined, error: new SvcError('connection_lost', 'It was cut off.') },
  });
  const run: Connection['run'] = async (segments, ...rest) => {
    if (isLost) return lost({ committed: 0, written: [] });
    const end = segments.findIndex(({ transactional }) => {
      if (!transactional) remaining -= 1;
      return remaining === 0;
    });
    if (end < 0) return connection.run(segments, ...rest);
    isLost = true;
    const outcome = await connection.run(segments.slice(0, cutPoint % 2 === 0 ? end + 1 : end), ...rest);
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

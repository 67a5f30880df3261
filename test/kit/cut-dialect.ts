import type { Dialect } from '../../core/dialect.ts';
import { mariadbVariant } from '../../plugins/dialects/mariadb/dialect.ts';
import { createDialect, mysqlVariant } from '../../plugins/dialects/mysql/dialect.ts';

/** Nothing in the database depends on it: ending before it is ending before the statement behind it. */
const HARMLESS = /^\s*(SET|DO|SELECT|BEGIN NOT ATOMIC|END)\b/;
/** A block goes to the server as a whole: cut off, it ends where the server ends. */
const ended = (text: string): string => (/(^|\n;)BEGIN NOT ATOMIC\b/.test(text) ? `${text}\n;END` : text);

/**
 * A dialect whose session ends in the middle of a packet: what stands before the n-th statement that matters is sent
 * and answered, the rest never is. `isCut` says whether it came that far.
 */
export function cutDialect(name: string, at: number): { readonly dialect: Dialect; readonly isCut: () => boolean } {
  const flavour = name === 'mysql' ? mysqlVariant : mariadbVariant;
  let count = 0;
  const isTheOne = (statement: string): boolean => {
    if (HARMLESS.test(statement)) return false;
    count += 1;
    return count === at;
  };
  const dialect = createDialect({
    ...flavour,
    async open(address, settings) {
      const wire = await flavour.open(address, settings);
      return {
        ...wire,
        async query(text) {
          const statements = text.split(/\n;/);
          const last = statements.findIndex(isTheOne);
          if (last < 0) return wire.query(text);
          if (last > 0) await wire.query(ended(statements.slice(0, last).join('\n;')));
          wire.close();
          throw Object.assign(new Error('The session was cut off.'), { fatal: true });
        },
      };
    },
  });
  return { dialect, isCut: () => count >= at };
}

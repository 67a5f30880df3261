import { isSvcError } from '../../../../core/errors.ts';
import type { EngineErrors } from '../engine-errors.ts';

const MAX_LENGTH = 400;
/** A string, a quoted name, or a number. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\b\d[\w.]*/g;

/** The errors of an engine, with the statement that it rejected. */
export interface RejectedStatements extends EngineErrors {
  /** Throws the error of `send` as it is: a driver may try again after some of its own. */
  remember<T>(text: string, send: () => Promise<T>): Promise<T>;
}

export function rejectedStatements(errors: EngineErrors): RejectedStatements {
  const texts = new WeakMap<Error, string>();
  return {
    ...errors,
    async remember(text, send) {
      try {
        return await send();
      } catch (error) {
        if (error instanceof Error) texts.set(error, statementForPeople(text));
        throw error;
      }
    },
    toSvcError(thrown) {
      const error = errors.toSvcError(thrown);
      const where = thrown instanceof Error ? texts.get(thrown) : undefined;
      if (where === undefined || !isSvcError(error) || error.where !== undefined) return error;
      return error.with({ where });
    },
  };
}

/** Without the values of rows, and not longer than a message should be. */
function statementForPeople(text: string): string {
  const isDefinition = /^\s*(CREATE|ALTER|DROP)\b/i.test(text);
  const shown = isDefinition ? text : text.replace(TOKENS, (token) => (token.startsWith('"') ? token : '?'));
  return shown.length > MAX_LENGTH ? `${shown.slice(0, MAX_LENGTH)}…` : shown;
}

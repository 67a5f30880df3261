import { codes, type ErrorCode, isSvcError, SvcError } from '../../../core/errors.ts';
import type { SqlDriver } from './text-catalog/driver.ts';

/** How an engine words its errors. */
export interface ErrorPatterns {
  /** The product's name, for people. */
  readonly engine: string;
  /**
   * Whether the driver threw the error. Default: any `Error`. `embeddedDialect` reports an error for which it is false as one
   * that the dialect threw.
   */
  isEngineError?(error: Error): boolean;
  /**
   * The messages of each code, of the error or of a `cause` of it. The first match counts; an error without a match is
   * `migration_failed`.
   */
  readonly messages: Readonly<Partial<Record<ErrorCode, RegExp>>>;
  /** The message for a primary key value that exists already. */
  readonly duplicate: RegExp;
}

export interface EngineErrors extends Pick<SqlDriver, 'toSvcError' | 'isMissing' | 'isDuplicate'> {
  /** Whether another process has the database. */
  isBusy(error: unknown): boolean;
}

/**
 * The error functions of a `SqlDriver`, from the messages of an engine.
 *
 * @example
 * const errors = engineErrors({
 *   engine: 'MyEngine',
 *   messages: { collection_unknown: /^no such table/, data_violates: /constraint failed/ },
 *   duplicate: /^UNIQUE constraint failed/,
 * });
 */
export function engineErrors({ duplicate, ...patterns }: ErrorPatterns): EngineErrors {
  const { messages } = patterns;
  const matches = (pattern: RegExp | undefined) => (error: unknown) =>
    pattern !== undefined && isFrom(patterns, error) && matchesAny(pattern, messagesOf(error));
  return {
    toSvcError: errorConverter(patterns),
    isMissing: matches(messages.collection_unknown),
    isDuplicate: matches(duplicate),
    isBusy: matches(messages.database_in_use),
  };
}

/** A chain of causes may be a circle. */
const MAX_CAUSES = 5;

type MessagePatterns = Omit<ErrorPatterns, 'duplicate'>;

const isFrom = ({ isEngineError }: MessagePatterns, error: unknown): error is Error =>
  error instanceof Error && !isSvcError(error) && (isEngineError?.(error) ?? true);

/** The messages of an error and of its causes. */
function messagesOf(error: Error): readonly string[] {
  const found = [error.message];
  let one: unknown = error.cause;
  for (let depth = 1; depth < MAX_CAUSES && one instanceof Error; depth++) {
    if (!found.includes(one.message)) found.push(one.message);
    one = one.cause;
  }
  return found;
}

const matchesAny = (pattern: RegExp, texts: readonly string[]): boolean => texts.some((text) => pattern.test(text));

/** The function `toSvcError` of a driver, from the messages of an engine. */
export const errorConverter =
  (patterns: MessagePatterns) =>
  (error: unknown): unknown => {
    if (!isFrom(patterns, error)) return error;
    const messages = Object.entries(patterns.messages) as [ErrorCode, RegExp][];
    const found = messagesOf(error);
    const [code] = messages.find(([, pattern]) => matchesAny(pattern, found)) ?? [];
    const why = found.join(': ');
    return code === undefined
      ? new SvcError('migration_failed', `${patterns.engine} rejected a statement.`, {
          why,
          cause: error,
        })
      : new SvcError(code, codes[code], { why, cause: error });
  };

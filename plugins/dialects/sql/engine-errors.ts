import { codes, type ErrorCode } from '../../../core/error-codes.ts';
import { isSvcError, SvcError } from '../../../core/errors.ts';
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
   * The messages of each code, of the error or of a `cause` of it, or what they have as their `code`. The first match counts;
   * an error without a match is `migration_failed`.
   */
  readonly messages: Readonly<Partial<Record<ErrorCode, RegExp>>>;
  /** The message for a primary key value that exists already. */
  readonly duplicate: RegExp;
}

/** `isMissing` and `isDuplicate` also recognize an error that `toSvcError` has converted, by its cause. */
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
    pattern !== undefined && isFrom(patterns, error) && matchesAny(pattern, error);
  const rawMatches = (pattern: RegExp | undefined) => (error: unknown) =>
    matches(pattern)(isSvcError(error) ? error.cause : error);
  return {
    toSvcError: errorConverter(patterns),
    isMissing: rawMatches(messages.collection_unknown),
    isDuplicate: rawMatches(duplicate),
    isBusy: matches(messages.database_in_use),
  };
}

/** A chain of causes may be a circle. */
const MAX_CAUSES = 5;

type MessagePatterns = Omit<ErrorPatterns, 'duplicate'>;

const isFrom = ({ isEngineError }: MessagePatterns, error: unknown): error is Error =>
  error instanceof Error && !isSvcError(error) && (isEngineError?.(error) ?? true);

/** An error and its causes. */
function chainOf(error: Error): readonly Error[] {
  const chain = [error];
  let one: unknown = error.cause;
  for (; chain.length < MAX_CAUSES && one instanceof Error; one = one.cause) chain.push(one);
  return chain;
}

const matchesAny = (pattern: RegExp, error: Error): boolean =>
  chainOf(error).some((one) => pattern.test(one.message) || ('code' in one && pattern.test(String(one.code))));

/** The function `toSvcError` of a driver, from the messages of an engine. */
export const errorConverter =
  (patterns: MessagePatterns) =>
  (error: unknown): unknown => {
    if (!isFrom(patterns, error)) return error;
    const messages = Object.entries(patterns.messages) as [ErrorCode, RegExp][];
    const [code] = messages.find(([, pattern]) => matchesAny(pattern, error)) ?? [];
    const why = [...new Set(chainOf(error).map(({ message }) => message))].join(': ');
    return code === undefined
      ? new SvcError('migration_failed', `${patterns.engine} rejected a statement.`, {
          why,
          cause: error,
        })
      : new SvcError(code, codes[code], { why, cause: error });
  };

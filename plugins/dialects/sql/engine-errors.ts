import { codes, type ErrorCode, isSvcError, SvcError } from '../../../core/errors.ts';
import type { SqlDriver } from './text-catalog/driver.ts';

/** How an engine words its errors. */
export interface ErrorPatterns {
  /** The product's name, for people. */
  readonly engine: string;
  /** Whether the driver threw the error. Default: any `Error`. */
  isEngineError?(error: Error): boolean;
  /** The messages of each code. The first match counts; a message without a match is `migration_failed`. */
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
export function engineErrors({ engine, isEngineError, messages, duplicate }: ErrorPatterns): EngineErrors {
  const isOwn = (error: unknown): error is Error =>
    error instanceof Error && !isSvcError(error) && (isEngineError?.(error) ?? true);
  const matches = (pattern: RegExp | undefined) => (error: unknown) =>
    pattern !== undefined && isOwn(error) && pattern.test(error.message);
  return {
    toSvcError(error) {
      if (!isOwn(error)) return error;
      const patterns = Object.entries(messages) as [ErrorCode, RegExp][];
      const [code] = patterns.find(([, pattern]) => pattern.test(error.message)) ?? [];
      return code === undefined
        ? new SvcError('migration_failed', `${engine} rejected a statement.`, { why: error.message, cause: error })
        : new SvcError(code, codes[code], { why: error.message, cause: error });
    },
    isMissing: matches(messages.collection_unknown),
    isDuplicate: matches(duplicate),
    isBusy: matches(messages.database_in_use),
  };
}

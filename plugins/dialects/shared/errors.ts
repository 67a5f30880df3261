import type { ErrorCode } from '../../../core/error-codes.ts';
import { type ErrorFacts, errorMessage, isSvcError, SvcError } from '../../../core/errors.ts';
import { withoutPassword } from '../../../core/url.ts';

/** How an engine's error is reported. */
export interface ErrorMapping {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next?: readonly string[];
}

export const mappedError = ({ code, message, next = [] }: ErrorMapping, facts: ErrorFacts): SvcError =>
  new SvcError(code, message, { next, ...facts });

/** Node's error codes for a request that was not sent. On an open connection, ETIMEDOUT is a lost response. */
export const UNREACHABLE_CODES: readonly string[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
];
/** Node's error codes for a connection that was lost: the last request may have arrived. */
export const LOST_CODES: readonly string[] = ['ECONNRESET', 'EPIPE'];

export const networkMappings = (
  unreachable: ErrorMapping,
  lost: ErrorMapping,
): Readonly<Record<string, ErrorMapping>> =>
  Object.fromEntries([
    ...UNREACHABLE_CODES.map((code) => [code, unreachable] as const),
    ...LOST_CODES.map((code) => [code, lost] as const),
  ]);

/** Adds to an `SvcError` that nothing was changed, for errors before the first change. */
export const withNothingChanged = (error: unknown): unknown =>
  isSvcError(error) && error.state === undefined ? error.with({ state: 'Nothing was changed.' }) : error;

/** Runs work and throws its errors as `convert` returns them. */
export const convertingErrors =
  (convert: (error: unknown) => unknown) =>
  async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw convert(error);
    }
  };

/** What a dialect threw and its `toSvcError` does not recognize. */
export function unrecognizedError(dialect: string, error: unknown): SvcError {
  const frame = error instanceof Error ? /^\s+at .*$/m.exec(error.stack ?? '')?.[0].trim() : undefined;
  return new SvcError('plugin_invalid', `The dialect "${dialect}" threw an error that it does not recognize.`, {
    why: errorMessage(error),
    ...(frame !== undefined && { where: frame }),
    next: [
      `If the engine threw it, "isEngineError" of the dialect must accept it. Otherwise it is a bug in the dialect.`,
    ],
    cause: error,
  });
}

/** Another process has taken the migration lock. */
export function lockLostError(
  cause?: unknown,
  why = 'A record has changed since it was read under the lock.',
): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost: another process has moved on.', {
    why,
    next: ['Run the command again.'],
    cause,
  });
}

export const invalidUrlError = (database: string, url: string, why: string, next: readonly string[]): SvcError =>
  new SvcError('url_invalid', `The URL of ${database} cannot be used.`, {
    why: `${why} (${withoutPassword(url)})`,
    next,
  });

/** Whether the TLS handshake failed: the certificate was rejected, or the server has no TLS. */
export function isTlsError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  const named = typeof code === 'string' && /CERT|SELF_SIGNED|UNABLE_TO_|_TLS_|_SSL_|EPROTO/.test(code);
  return named || /certificate|\b(?:ssl|tls)\b/i.test(error.message);
}

/** What to do if a table to be created exists. Keeping it comes first, because its rows may be the only copy. */
export const TABLE_EXISTS_REMEDIES: readonly string[] = [
  'Adopt the existing table: delete the pending migration file that creates it, if any, then: svc db schema pull, and: svc db migrate baseline',
  'If this migration was written by pull: svc db migrate baseline',
  'Or use another name, or drop the existing table.',
];

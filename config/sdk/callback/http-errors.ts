import { describeError, isSvcError } from '../../../core/errors.ts';
import { MAX_BODY_BYTES, type RateLimit } from './limits.ts';
import { type HttpError, httpErrorOf } from './response.ts';

export const NOT_FOUND: HttpError = { status: 404, error: 'approval_unknown', message: 'The request does not exist.' };
export const UNKNOWN_EXECUTION: HttpError = {
  status: 404,
  error: 'execution_unknown',
  message: 'The execution does not exist.',
};
export const UNAUTHORIZED: HttpError = {
  status: 401,
  error: 'token_invalid',
  message: 'The token is missing or not valid.',
};
export const TOO_LARGE: HttpError = {
  status: 413,
  error: 'body_too_large',
  message: `A decision has at most ${MAX_BODY_BYTES} bytes.`,
};
export const TOO_SLOW: HttpError = {
  status: 408,
  error: 'body_too_slow',
  message: 'The body did not arrive in time. Nothing was decided.',
};
export const NOT_ALLOWED: HttpError = {
  status: 405,
  error: 'method_not_allowed',
  message: 'Use GET to show the request and POST to decide it.',
  headers: { allow: 'GET, HEAD, POST' },
};
const CROSS_SITE: HttpError = {
  status: 403,
  error: 'decision_refused',
  message: 'The form was not sent from this site. Nothing was decided.',
};

export function notAllowed(...methods: readonly ('GET' | 'POST')[]): HttpError {
  const allow = methods.join(', ');
  return { status: 405, error: 'method_not_allowed', message: `Use ${methods.join(' or ')}.`, headers: { allow } };
}

/** Counts a call, unless it is to look only. Throws an `HttpError` beyond the limit. */
export function throttle(limit: RateLimit, key: string, look?: 'only look'): void {
  const seconds = limit.secondsToWait(key, look ? 0 : 1);
  if (seconds === 0) return;
  const tooMany: HttpError = {
    status: 429,
    error: 'too_many_requests',
    message: 'Too many requests within one minute.',
    headers: { 'retry-after': String(seconds) },
  };
  throw tooMany;
}

/**
 * Throws for a form of another site. Pages have no referrer, so browsers send `Origin: null`: only those that are too old for
 * Sec-Fetch-Site need it.
 */
export function assertSameSite({ headers }: Request, base: string): void {
  const site = headers.get('sec-fetch-site');
  const isSame = site === null ? headers.get('origin') === new URL(base).origin : site.toLowerCase() === 'same-origin';
  if (!isSame) throw CROSS_SITE;
}

/** Whether the body is one of a form. */
export function isForm({ headers }: Request): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(headers.get('content-type') ?? '');
}

export function invalidDecision(message: string): HttpError {
  return { status: 400, error: 'decision_invalid', message };
}

export function invalidQuery(message: string): HttpError {
  return { status: 400, error: 'value_invalid', message };
}

/** Throws what a query was refused with: an `HttpError` for its values. */
export function refuseQuery(error: unknown): never {
  throw isSvcError(error) && error.code === 'value_invalid' ? invalidQuery(describeError(error)) : error;
}

/** Throws what a delegation or a standing rule was refused with: an `HttpError` for its values and for an unknown id. */
export function refuseInput(error: unknown): never {
  if (!isSvcError(error) || (error.code !== 'delegation_unknown' && error.code !== 'standing_unknown'))
    return refuseQuery(error);
  const unknown: HttpError = { status: 404, error: error.code, message: error.message };
  throw unknown;
}

export function isHttpError(thrown: unknown): thrown is HttpError {
  return typeof thrown === 'object' && thrown !== null && !(thrown instanceof Error) && 'status' in thrown;
}

/** What is answered for anything that was thrown. */
export const toHttpError = (thrown: unknown): HttpError => (isHttpError(thrown) ? thrown : httpErrorOf(thrown));

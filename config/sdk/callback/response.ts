import { randomUUID } from 'node:crypto';
import { isRetryable } from '../../../core/approval/backend.ts';
import { type DecisionRefusal, isDecisionRefusal } from '../../../core/approval/decide.ts';
import { describeError, errorMessage, type SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';

/** An error response of the callback; `details` are merged into the JSON body. */
export interface HttpError {
  readonly status: number;
  readonly error: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, Json>>;
  readonly headers?: Readonly<Record<string, string>>;
}

const STATUS: Readonly<Record<DecisionRefusal, number>> = {
  decision_invalid: 400,
  decision_refused: 403,
  approval_unseen: 403,
  approval_unknown: 404,
  approval_decided: 409,
  approval_expired: 410,
  approval_stale: 422,
  approval_parameters_invalid: 422,
  parameters_too_large: 422,
  idempotency_key_reused: 422,
  token_invalid: 401,
};

export const STORE_UNAVAILABLE = 'store_unavailable';
export const NOT_AVAILABLE = 'The approval store, or what verifies people, is not available.';
const UNAVAILABLE: HttpError = {
  status: 503,
  error: STORE_UNAVAILABLE,
  message: `${NOT_AVAILABLE} The request may not have been decided.`,
  headers: { 'retry-after': '5' },
};
/** Of a token of a person, and of a JSON Web Token. */
const TOKEN = /\b(?:svcp_|ey[JK][\w-]+\.)[\w.-]+/g;

/** A 500 without details: those are in a warning of this process, found by its id. */
export function internalError(error: unknown, where = 'The callback'): HttpError {
  const errorId = randomUUID();
  const logged = (text: string) => text.replaceAll(TOKEN, '<token>');
  const detail = error instanceof Error ? logged(error.stack ?? '') : '';
  process.emitWarning(logged(`${where}: internal error ${errorId}: ${errorMessage(error)}`), {
    type: 'SvcWarning',
    detail,
  });
  return {
    status: 500,
    error: 'internal',
    message: `An internal error occurred. The request may not have been decided. The server has logged the error as ${errorId}.`,
    details: { errorId },
  };
}

/** Exposes only decision errors; everything else becomes a 503 or a 500 without details. */
export function httpErrorOf(error: unknown): HttpError {
  if (isDecisionRefusal(error)) {
    return {
      status: STATUS[error.code],
      error: error.code,
      message: describeError(error),
      details: publicDetails(error),
    };
  }
  return isRetryable(error) ? UNAVAILABLE : internalError(error);
}

/** The existing decision, or the invalid parameters with reasons. */
function publicDetails({ code, details }: SvcError): Readonly<Record<string, Json>> {
  const keys =
    code === 'approval_decided' || code === 'approval_expired'
      ? ['status', 'decidedAt']
      : code === 'approval_parameters_invalid' || code === 'decision_invalid'
        ? ['problems']
        : [];
  return Object.fromEntries(keys.flatMap((key) => (key in details ? [[key, details[key] as Json]] : [])));
}

/** Responses are not cached, and links do not leak the token as a referrer. */
const PRIVATE_HEADERS = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export function jsonResponse(
  status: number,
  body: Json | object,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: { 'content-type': 'application/json', ...PRIVATE_HEADERS, ...headers },
  });
}

/** Server-sent events. */
export function streamResponse(body: ReadableStream<Uint8Array>): Response {
  const headers = { 'content-type': 'text/event-stream', ...PRIVATE_HEADERS, 'x-accel-buffering': 'no' };
  return new Response(body, { headers });
}

/** Sends a browser elsewhere with GET. */
export function redirectResponse(location: string, cookies: readonly string[] = []): Response {
  const response = new Response(null, { status: 303, headers: { location, ...PRIVATE_HEADERS } });
  for (const cookie of cookies) response.headers.append('set-cookie', cookie);
  return response;
}

export function htmlResponse(status: number, page: string, headers: Readonly<Record<string, string>>): Response {
  return new Response(page, {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', ...PRIVATE_HEADERS, ...headers },
  });
}

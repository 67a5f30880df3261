import { DeliveryFailed } from '../../core/approval/channel.ts';
import { shortenText } from '../../core/display/text.ts';
import { isPlainObject, tryParseJson } from '../../core/json.ts';
import { readBody } from '../../core/read-body.ts';

/** Client errors that a later attempt may avoid; any other 4xx status is final. */
const RETRYABLE_STATUS = new Set([408, 425, 429]);
/** Upper limit for a requested pause, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const REASON_LENGTH = 200;

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** That of `deliver` or `onDecided`. */
  readonly signal: AbortSignal;
  /** Default `POST`. */
  readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The property of the JSON that answers too many requests with a pause, in seconds, for a service without `Retry-After`. */
  readonly retryAfter?: readonly string[];
  /**
   * The property of the JSON that says why the service refused: `['description']`. Errors, and so the audit, then contain at most 200
   * characters of it: name none that repeats a secret.
   */
  readonly reason?: readonly string[];
}

/**
 * Posts a body. Throws `DeliveryFailed` without a response or with a status other than 2xx, with the pause that the
 * service requests. Of the URL, which may contain a secret, an error has only the host. Redirects are not followed.
 */
export async function post(url: string, body: string, options: PostOptions): Promise<Response> {
  const { retryAfter, reason, headers, ...rest } = options;
  const response = await send(url, body, { ...rest, headers: { 'user-agent': 'svc', ...headers } });
  if (response.ok) return response;
  const answer = retryAfter || reason ? await answerOf(response) : undefined;
  // What was not read to its end may be endless.
  void response.body?.cancel().catch(() => undefined);
  throw deliveryError(exchangeText(url, options), response, {
    pauseMs: requestedPause(valueAt(answer, retryAfter)),
    reason: valueAt(answer, reason),
  });
}

/** The JSON of an answer of at most MAX_ANSWER_BYTES. */
async function answerOf(response: Response): Promise<unknown> {
  const bytes = await readBody(response, MAX_ANSWER_BYTES).catch(() => undefined);
  return bytes instanceof Uint8Array ? tryParseJson(Buffer.from(bytes).toString()) : undefined;
}

function valueAt(answer: unknown, path: readonly string[] | undefined): unknown {
  let found = path && answer;
  for (const name of path ?? []) found = isPlainObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

/** In milliseconds. */
const requestedPause = (seconds: unknown): number | undefined =>
  typeof seconds === 'number' && seconds >= 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined;

/**
 * Sends JSON and returns the JSON of the response; undefined if it is not JSON. Throws `DeliveryFailed` as the webhook
 * does: without a response or with a status other than 2xx. It is retried after the pause in `Retry-After` or in the property `retryAfter`, and not
 * retried after a redirect or a 4xx status other than 408, 425 and 429. An error contains the host, and nothing else of the URL, a
 * header or the body; of the answer, the property `reason`. A service that reports errors with status 200 needs a check of the result.
 * @experimental
 */
export async function postJson<Result = unknown>(
  url: string,
  body: object,
  { headers, ...options }: PostOptions,
): Promise<Result | undefined> {
  const json = { 'content-type': 'application/json; charset=utf-8', ...headers };
  const response = await post(url, JSON.stringify(body), { ...options, headers: json });
  const text = await response.text().catch((error: unknown) => {
    throw new DeliveryFailed(`${exchangeText(url, options)}: ${causeOf(error, options.signal)}`);
  });
  try {
    return JSON.parse(text) as Result;
  } catch {
    return undefined;
  }
}

async function send(url: string, body: string, options: PostOptions): Promise<Response> {
  try {
    return await fetch(url, { method: 'POST', body, redirect: 'manual', ...options });
  } catch (error) {
    throw new DeliveryFailed(`${exchangeText(url, options)}: ${causeOf(error, options.signal)}`);
  }
}

/** `POST to hooks.example`. The path and the query string of the URL may contain a secret. */
function exchangeText(url: string, { method = 'POST' }: Pick<PostOptions, 'method'>): string {
  return URL.canParse(url) ? `${method} to ${new URL(url).host}` : method;
}

/** The message of fetch is only "fetch failed"; that of an invalid URL or header contains it. */
function causeOf(error: unknown, { aborted }: AbortSignal): string {
  const { cause, message } = error as Error & {
    readonly cause?: { readonly code?: string; readonly message?: string };
  };
  return cause?.code ?? cause?.message ?? (aborted ? message : 'the URL or a header is invalid');
}

function deliveryError(
  exchange: string,
  { status, headers }: Response,
  { pauseMs, reason }: { readonly pauseMs: number | undefined; readonly reason: unknown },
): DeliveryFailed {
  if (status >= 300 && status < 400) {
    return new DeliveryFailed(`${exchange} was answered with ${status}: redirects are not followed`, {
      retry: false,
      status,
    });
  }
  const retry = status >= 500 || RETRYABLE_STATUS.has(status);
  const why = typeof reason === 'string' && reason !== '' ? `: ${shortenText(reason, REASON_LENGTH).text}` : '';
  return new DeliveryFailed(`${exchange} was answered with ${status}${why}`, {
    status,
    retry,
    afterMs: retry ? (pauseMs ?? retryAfterMs(headers.get('retry-after'))) : 0,
  });
}

/** Milliseconds from seconds or a date (RFC 9110, section 10.2.3); 0 for any other value. */
function retryAfterMs(value: string | null): number {
  if (value === null) return 0;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), MAX_RETRY_AFTER_MS);
}

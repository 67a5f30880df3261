import { mayPass } from '../../core/approval/home.ts';
import { type DecisionRefusal, isDecisionRefusal } from '../../core/approval/signal.ts';
import { type SvcError, sentences } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';

/** What a request to the callback is answered: a status, a code and words, and facts beside them. */
export interface Refusal {
  readonly status: number;
  readonly error: string;
  readonly message: string;
  readonly facts?: Readonly<Record<string, Json>>;
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
};

const UNAVAILABLE: Refusal = {
  status: 503,
  error: 'store_unavailable',
  message: 'The store of the approvals cannot be used. Nothing is known to be decided.',
  headers: { 'retry-after': '5' },
};
const INTERNAL: Refusal = {
  status: 500,
  error: 'internal',
  message: 'Something failed. Nothing is known to be decided.',
};

/** Never says more of an error than its code is made to say. */
export function refusalOf(error: unknown): Refusal {
  if (isDecisionRefusal(error)) {
    return { status: STATUS[error.code], error: error.code, message: sentences(error), facts: factsOf(error) };
  }
  return mayPass(error) ? UNAVAILABLE : INTERNAL;
}

/** The decision that stands; the parameters that are wrong, and why. */
function factsOf({ code, details }: SvcError): Readonly<Record<string, Json>> {
  const keys =
    code === 'approval_decided' || code === 'approval_expired'
      ? ['status', 'decidedAt']
      : code === 'approval_parameters_invalid' || code === 'decision_invalid'
        ? ['problems']
        : [];
  return Object.fromEntries(keys.flatMap((key) => (key in details ? [[key, details[key] as Json]] : [])));
}

/** Nobody keeps it, and nobody hears where it came from. */
const PRIVATE = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export function jsonAnswer(
  status: number,
  body: Json | object,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: { 'content-type': 'application/json', ...PRIVATE, ...headers },
  });
}

export function htmlAnswer(status: number, page: string, headers: Readonly<Record<string, string>>): Response {
  return new Response(page, {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', ...PRIVATE, ...headers },
  });
}

import { createHmac } from 'node:crypto';
import { SvcError } from '../../core/errors.ts';
import { addressProblem } from '../../core/url.ts';

/*
 * Signatures of Standard Webhooks 1.0.0.
 */

const SECRET_PREFIX = 'whsec_';
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;

/** Where signed requests go. */
export interface SignedEndpoint {
  readonly url: string;
  readonly keys: readonly Buffer[];
}

/**
 * The options `url` and `secrets` of something of the type "webhook", such as `A channel`. Throws `config_invalid`; the message
 * contains no value.
 */
export function signedEndpoint(
  { url, secrets }: Readonly<Record<string, unknown>>,
  what: string,
  setting: string,
): SignedEndpoint {
  const why = typeof url === 'string' ? addressProblem(url) : 'is not a URL';
  if (why !== undefined || typeof url !== 'string') throw invalidEndpoint(what, `Its url ${why}.`);
  if (!Array.isArray(secrets) || secrets.length === 0 || secrets.some((one) => typeof one !== 'string'))
    throw invalidEndpoint(what, 'Its secrets are not an array of texts.');
  return { url, keys: decodeSecrets(secrets, setting) };
}

export const invalidEndpoint = (what: string, why: string): SvcError =>
  new SvcError('config_invalid', `${what} of the type "webhook" cannot be used.`, {
    why,
    next: ["Set url, and secrets: ['whsec_…']; echo whsec_$(openssl rand -base64 32) creates one."],
  });

/** Decodes the `whsec_` secrets of a setting. Throws `config_invalid`; the message never contains a secret. */
function decodeSecrets(secrets: readonly string[], setting: string): readonly Buffer[] {
  return secrets.map((secret, index) => {
    const text = secret.slice(SECRET_PREFIX.length);
    const key = Buffer.from(text, 'base64');
    const isBase64 = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
    if (
      secret.startsWith(SECRET_PREFIX) &&
      isBase64 &&
      key.length >= MIN_SECRET_BYTES &&
      key.length <= MAX_SECRET_BYTES
    )
      return key;
    throw new SvcError('config_invalid', `A secret in ${setting} is invalid.`, {
      why: `Secret ${index + 1} of its list is not ${SECRET_PREFIX} followed by ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes in base64.`,
      next: [`echo ${SECRET_PREFIX}$(openssl rand -base64 32)    creates one`],
    });
  });
}

/**
 * The headers for one attempt: `id` is the same for all attempts, `seconds` is the time of this one. Every key signs, so
 * that keys can be rotated.
 */
export function signatureHeaders(
  keys: readonly Buffer[],
  id: string,
  seconds: number,
  body: string,
): Record<string, string> {
  const text = `${id}.${seconds}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`);
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signatures.join(' ') };
}

import { createHmac } from 'node:crypto';
import { SvcError } from '../../core/errors.ts';

/*
 * Signatures of Standard Webhooks 1.0.0.
 */

const SECRET_PREFIX = 'whsec_';
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;

/** Decodes the `whsec_` secrets of a setting. Throws `config_invalid`; the message never contains a secret. */
export function decodeSecrets(secrets: readonly string[], setting: string): readonly Buffer[] {
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

import { createHmac } from 'node:crypto';
import { SvcError } from '../../../core/errors.ts';

const PREFIX = 'whsec_';
const LEAST_BYTES = 24;
const MOST_BYTES = 64;

/** Keys of `whsec_` secrets. Throws `config_invalid`; never says what a secret is. */
export function keysOf(secrets: readonly string[]): readonly Buffer[] {
  return secrets.map((secret, index) => {
    const text = secret.slice(PREFIX.length);
    const key = Buffer.from(text, 'base64');
    const isBase64 = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
    if (secret.startsWith(PREFIX) && isBase64 && key.length >= LEAST_BYTES && key.length <= MOST_BYTES) return key;
    throw new SvcError('config_invalid', 'A secret in approvals.webhook.secrets cannot be used.', {
      why: `Number ${index + 1} of its list is not ${PREFIX} and the base64 of ${LEAST_BYTES} to ${MOST_BYTES} bytes.`,
      next: [`echo ${PREFIX}$(openssl rand -base64 32)    makes one`],
    });
  });
}

/**
 * The headers of Standard Webhooks 1.0.0 for one attempt: `id` is the same over all of them, `seconds` is the moment of
 * this one. Every key signs, so that receivers may hold any one of them while keys rotate.
 */
export function signed(keys: readonly Buffer[], id: string, seconds: number, body: string): Record<string, string> {
  const text = `${id}.${seconds}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`);
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signatures.join(' ') };
}

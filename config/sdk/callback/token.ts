import type { RequestRow } from '../../../core/approval/service.ts';
import { assertCallbackKey, type TokenClaims } from '../../../core/approval/token.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Config } from '../../define.ts';

/** Returns the key that signs tokens. Throws `config_invalid` for `what`, which needs it, if it is missing or too short. */
export function requireCallbackKey(what: string, { approvals }: Config): string {
  const key = approvals?.callbackKey;
  if (key === undefined) {
    throw new SvcError('config_invalid', `${what} needs approvals.callbackKey.`, {
      why: 'Without it tokens cannot be verified.',
      next: [
        'openssl rand -base64 32    generates one; keep it out of the repository',
        'Add to the configuration: approvals: { callbackKey: process.env.SVC_CALLBACK_KEY }',
      ],
    });
  }
  assertCallbackKey(key);
  return key;
}

/** `approvals.callbackBase`, so that a path can follow. */
export const withoutSlash = (base: string): string => base.replace(/\/+$/, '');

/** Where a request is decided. */
export function callbackUrl(base: string, requestId: string, token: string): string {
  return `${withoutSlash(base)}/approvals/${requestId}/respond?token=${token}`;
}

export function tokenClaims(
  { product, env }: { readonly product: string; readonly env: string },
  { record }: RequestRow,
): TokenClaims {
  const { requestId, expiresAt, body } = record;
  return { product, env, requestId, digest: body.digest, timeout: expiresAt.toISOString() };
}

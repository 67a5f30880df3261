import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson } from '../json.ts';

/** What a token is valid for. */
export interface TokenClaims {
  readonly product: string;
  readonly env: string;
  readonly requestId: string;
  /** Digest of the call, from `callDigest`. */
  readonly digest: string;
  /** ISO 8601, UTC. */
  readonly timeout: string;
}

const VERSION = 'v1';
/** The output size of HMAC-SHA256, which RFC 2104 recommends as the minimum key length. */
const MIN_KEY_BYTES = 32;

/** Throws `config_invalid` for a short key. The message never contains it. */
export function assertCallbackKey(key: string): void {
  if (Buffer.byteLength(key) >= MIN_KEY_BYTES) return;
  throw new SvcError('config_invalid', 'approvals.callbackKey is too short.', {
    why: `Anyone who guesses it can approve any request, so it needs at least ${MIN_KEY_BYTES} bytes.`,
    next: ['openssl rand -base64 32    creates one; keep it out of the repository'],
  });
}

/** Its bearer may decide the request. */
export function callbackToken(key: string, claims: TokenClaims): string {
  return mac(key, 'decide', claims);
}

/** Proves that a form was sent from the page that showed all parameters, including sensitive ones. */
export function viewToken(key: string, claims: TokenClaims): string {
  return mac(key, 'view', claims);
}

/** Compares in constant time. */
export function tokensEqual(one: string, other: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(one), hash(other));
}

function mac(key: string, purpose: string, { product, env, requestId, digest, timeout }: TokenClaims): string {
  const text = canonicalJson([VERSION, purpose, product, env, requestId, digest, timeout]);
  return `${VERSION}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}

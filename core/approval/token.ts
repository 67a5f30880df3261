import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson } from '../json.ts';

interface RequestName {
  readonly product: string;
  readonly env: string;
  readonly requestId: string;
}

/** What a token is valid for. */
export interface TokenClaims extends RequestName {
  /** Digest of the call, from `callDigest`. */
  readonly digest: string;
  /** ISO 8601, UTC. */
  readonly timeout: string;
}

const VERSION = 'v1';
/** The output size of HMAC-SHA256, which RFC 2104 recommends as the minimum key length. */
const MIN_KEY_BYTES = 32;
/** Characters of 256 and of 128 bits in base64url. */
const MAC_LENGTH = 43;
const REQUEST_MAC_LENGTH = 22;

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
  return `${issuedFor(key, claims)}.${mac(key, 'decide', callOf(claims))}`;
}

/**
 * Whether the token was issued for a request of that id. Costs no read of the store, so it comes before one; the token is
 * valid only if it equals `callbackToken` of the stored request.
 */
export function isIssuedFor(key: string, token: string, request: RequestName): boolean {
  const expected = issuedFor(key, request);
  return token.length === expected.length + 1 + MAC_LENGTH && tokensEqual(token.slice(0, expected.length), expected);
}

/** Proves that a form was sent from the page that showed all parameters, including sensitive ones. */
export function viewToken(key: string, claims: TokenClaims): string {
  return `${VERSION}.${mac(key, 'view', callOf(claims))}`;
}

/** The secret of a webhook that has none of its own, by Standard Webhooks. It does not reveal the key. */
export function webhookSecret(
  key: string,
  { product, env, url }: { readonly product: string; readonly env: string; readonly url: string },
): string {
  return `whsec_${hmac(key, 'webhook', [product, env, url]).toString('base64')}`;
}

/** The key of 32 bytes that seals what a browser keeps while a person signs in. It does not reveal the key of the callback. */
export function signInKey(key: string, { product, env }: { readonly product: string; readonly env: string }): Buffer {
  return hmac(key, 'sign-in', [product, env]);
}

/** Compares in constant time. */
export function tokensEqual(one: string, other: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(one), hash(other));
}

/** The beginning of every token of a request. */
function issuedFor(key: string, { product, env, requestId }: RequestName): string {
  return `${VERSION}.${mac(key, 'request', [product, env, requestId]).slice(0, REQUEST_MAC_LENGTH)}`;
}

const callOf = ({ product, env, requestId, digest, timeout }: TokenClaims) => [
  product,
  env,
  requestId,
  digest,
  timeout,
];

function mac(key: string, purpose: string, claims: readonly string[]): string {
  return hmac(key, purpose, claims).toString('base64url');
}

function hmac(key: string, purpose: string, claims: readonly string[]): Buffer {
  return createHmac('sha256', key)
    .update(canonicalJson([VERSION, purpose, ...claims]))
    .digest();
}

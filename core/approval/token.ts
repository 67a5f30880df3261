import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson } from '../json.ts';

/** What a callback token stands for: this request of this product and environment, with what was shown, until then. */
export interface TokenFacts {
  readonly product: string;
  readonly env: string;
  readonly requestId: string;
  /** Of the call, as `callDigest` gives it. */
  readonly digest: string;
  /** ISO 8601, UTC. */
  readonly timeout: string;
}

const VERSION = 'v1';
/** Bytes of a key that nobody guesses: what HMAC-SHA256 can use. */
const KEY_BYTES = 32;

/** Refuses a key that could be guessed; never says what it is. */
export function checkCallbackKey(key: string): void {
  if (Buffer.byteLength(key) >= KEY_BYTES) return;
  throw new SvcError('config_invalid', 'approvals.callbackKey is too short.', {
    why: `Whoever guesses it can approve anything: it needs ${KEY_BYTES} bytes.`,
    next: ['openssl rand -base64 32    makes one; keep it out of the repository'],
  });
}

/** Whoever has it may decide the request. */
export function callbackToken(key: string, facts: TokenFacts): string {
  return mac(key, 'decide', facts);
}

/** Stands in a page that showed all parameters, those called sensitive too. */
export function viewToken(key: string, facts: TokenFacts): string {
  return mac(key, 'shown', facts);
}

/** Compares in a time that does not tell how much of it is right. */
export function sameToken(given: string, right: string): boolean {
  const [one, other] = [given, right].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

function mac(key: string, purpose: string, { product, env, requestId, digest, timeout }: TokenFacts): string {
  const text = canonicalJson([VERSION, purpose, product, env, requestId, digest, timeout]);
  return `${VERSION}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}

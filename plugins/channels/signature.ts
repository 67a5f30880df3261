import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';

export interface SignedContent {
  /** The key of an HMAC-SHA256; in its place `publicKey` for an Ed25519 signature. */
  readonly secret?: string;
  /** The 32 bytes of an Ed25519 key in hexadecimal, as Discord shows it. */
  readonly publicKey?: string;
  /** What was signed, in order: `['v0:', time, ':', body]`. It must contain the time. */
  readonly content: readonly (string | Uint8Array)[];
  /** Without a prefix such as `v0=`. */
  readonly signature: string;
  /** Default `hex`. */
  readonly encoding?: 'hex' | 'base64';
  /** When it was signed, in milliseconds since 1970; NaN is rejected. */
  readonly signedAt: number;
  /** The longest difference from the clock of this process, in milliseconds. Default: five minutes. */
  readonly maxAgeMs?: number;
}

const MAX_AGE_MS = 300_000;
const ED25519_KEY_BYTES = 32;
/** Of a SubjectPublicKeyInfo (RFC 8410), before the bytes of the key. */
const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** Whether a moment, in milliseconds since 1970, differs from the clock of this process by at most `maxAgeMs`. @experimental */
export const isRecent = (signedAt: number, maxAgeMs = MAX_AGE_MS): boolean =>
  // False for NaN.
  Math.abs(Date.now() - signedAt) <= maxAgeMs;

/**
 * Whether a service signed this content recently, with `secret` or `publicKey`. An older request may be a replay. Compares in
 * constant time. False without a key, or with a public key of another length. @experimental
 */
export function isSignedBy(signed: SignedContent): boolean {
  const { secret, publicKey, content, signature, encoding = 'hex', signedAt, maxAgeMs } = signed;
  // Anybody can sign with an empty key, such as that of an unset environment variable.
  if (!isRecent(signedAt, maxAgeMs) || (secret === undefined) === (publicKey === undefined)) return false;
  if (publicKey !== undefined) {
    const key = Buffer.concat([ED25519_PREFIX, Buffer.from(publicKey, 'hex')]);
    if (key.length !== ED25519_PREFIX.length + ED25519_KEY_BYTES) return false;
    const parts = Buffer.concat(content.map((part) => Buffer.from(part)));
    return verify(null, parts, createPublicKey({ key, format: 'der', type: 'spki' }), Buffer.from(signature, encoding));
  }
  if (secret === undefined || secret === '') return false;
  const hmac = createHmac('sha256', secret);
  for (const part of content) hmac.update(part);
  return isEqualSecret(signature, hmac.digest(encoding));
}

/** Compares two texts in constant time, such as the header with the secret of a service that does not sign. @experimental */
export function isEqualSecret(given: string | null | undefined, expected: string): boolean {
  const [one, other] = [Buffer.from(given ?? ''), Buffer.from(expected)];
  return other.length > 0 && one.length === other.length && timingSafeEqual(one, other);
}

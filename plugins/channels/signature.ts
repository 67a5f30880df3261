import { createHmac, timingSafeEqual } from 'node:crypto';

export interface SignedContent {
  readonly secret: string;
  /** What was signed, in order: `['v0:', time, ':', body]`. It must contain the time. */
  readonly content: readonly (string | Uint8Array)[];
  /** HMAC-SHA256, without a prefix such as `v0=`. */
  readonly signature: string;
  /** Default `hex`. */
  readonly encoding?: 'hex' | 'base64';
  /** When it was signed, in milliseconds since 1970; NaN is rejected. */
  readonly signedAt: number;
  /** The longest difference from the clock of this process, in milliseconds. Default: five minutes. */
  readonly maxAgeMs?: number;
}

const MAX_AGE_MS = 300_000;

/** Whether a moment, in milliseconds since 1970, differs from the clock of this process by at most `maxAgeMs`. @experimental */
export const isRecent = (signedAt: number, maxAgeMs = MAX_AGE_MS): boolean =>
  // False for NaN.
  Math.abs(Date.now() - signedAt) <= maxAgeMs;

/** Whether a service signed this content recently. An older request may be a replay. Compares in constant time. @experimental */
export function isSignedBy({
  secret,
  content,
  signature,
  encoding = 'hex',
  signedAt,
  maxAgeMs,
}: SignedContent): boolean {
  // Anybody can sign with an empty key, such as that of an unset environment variable.
  if (secret === '' || !isRecent(signedAt, maxAgeMs)) return false;
  const hmac = createHmac('sha256', secret);
  for (const part of content) hmac.update(part);
  return isEqualSecret(signature, hmac.digest(encoding));
}

/** Compares two texts in constant time, such as the header with the secret of a service that does not sign. @experimental */
export function isEqualSecret(given: string | null | undefined, expected: string): boolean {
  const [one, other] = [Buffer.from(given ?? ''), Buffer.from(expected)];
  return other.length > 0 && one.length === other.length && timingSafeEqual(one, other);
}

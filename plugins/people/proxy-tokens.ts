import type { JWTVerifyGetKey } from 'jose';
import { errorMessage, isSvcError, SvcError } from '../../core/errors.ts';
import { type Driver, loadDriver } from '../shared/driver.ts';

type Jose = typeof import('jose');

const driver: Driver<Jose> = { name: 'jose', package: 'jose', load: () => import('jose') };

/** Between the clock of the proxy and that of this process. */
const CLOCK_TOLERANCE_S = 10;
/** A token of an unknown key asks for the keys again, at most once in this time. */
const COOLDOWN_MS = 5_000;
const TIMEOUT_MS = 5_000;

interface Expected {
  /** The URL of the keys. */
  readonly jwks: string;
  readonly issuer: string;
  readonly audience: string | readonly string[];
  readonly algorithms: readonly string[];
}

type Claims = Readonly<Record<string, unknown>>;

/**
 * Verifies the JSON Web Token with which a proxy says who is logged in (RFC 7519): its signature by a key of `jwks`, issuer,
 * audience and expiry. Throws `driver_missing`. The function throws `token_invalid`, and `connection_failed` if the keys
 * cannot be read.
 */
export async function openProxyTokens(
  { jwks, issuer, audience, algorithms }: Expected,
  root: string,
): Promise<(token: string) => Promise<Claims>> {
  const jose = await loadDriver(driver, root);
  const keyOf = keySource(jose, jwks);
  const options = {
    issuer,
    audience: typeof audience === 'string' ? audience : [...audience],
    algorithms: [...algorithms],
    requiredClaims: ['exp'],
    clockTolerance: CLOCK_TOLERANCE_S,
  };
  return async (token) => {
    const { payload } = await jose.jwtVerify(token, keyOf, options).catch((error: unknown) => {
      throw isSvcError(error) ? error : invalid('It is forged, expired, or for another audience.');
    });
    return payload;
  };
}

/** Throws `connection_failed` if the keys cannot be read: that says nothing about the token. */
function keySource({ createRemoteJWKSet }: Jose, url: string): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(url), { cooldownDuration: COOLDOWN_MS, timeoutDuration: TIMEOUT_MS });
  return (header, token) =>
    keys(header, token).catch((error: unknown) => {
      if (isUnknownKey(error)) throw error;
      throw new SvcError('connection_failed', 'The keys of the proxy cannot be read.', {
        why: `${url}: ${errorMessage(error)}`,
        state: 'Nothing was decided.',
        next: ['Check approvals.proxy.jwks.'],
        cause: error,
      });
    });
}

/** The keys were read, and none of them, or more than one, is that of the token. */
function isUnknownKey(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ERR_JWKS_NO_MATCHING_KEY' || code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS';
}

function invalid(why: string): SvcError {
  return new SvcError('token_invalid', 'The token of the proxy is not valid.', { why, state: 'Nothing was decided.' });
}

import type { JWTVerifyGetKey } from 'jose';
import { errorMessage, isSvcError, SvcError } from '../../core/errors.ts';
import { type Driver, loadDriver } from '../shared/driver.ts';

type Jose = typeof import('jose');

const driver: Driver<Jose> = { name: 'jose', package: 'jose', load: () => import('jose') };

/** Between the clock of the issuer and that of this process. */
export const CLOCK_TOLERANCE_S = 10;
/** A token of an unknown key asks for the keys again, at most once in this time. */
const COOLDOWN_MS = 5_000;
const TIMEOUT_MS = 5_000;

/** What a token must be. */
export interface Expected {
  /** The URL of the keys. */
  readonly jwks: string;
  readonly issuer: string;
  readonly audience: string | readonly string[];
  readonly algorithms: readonly string[];
}

/** How errors name who issues the tokens, and the setting that says where its keys are. */
interface Issuer {
  readonly name: string;
  readonly setting: string;
}

export type Claims = Readonly<Record<string, unknown>>;

interface VerifiedToken {
  readonly claims: Claims;
  /** `typ` of its header. */
  readonly type: string | undefined;
}

/** Throws `token_invalid`, and `connection_failed` if the keys cannot be read. */
type Verify = (token: string) => Promise<VerifiedToken>;

/**
 * Verifies JSON Web Tokens (RFC 7519): their signature by a key of `jwks`, issuer, audience and expiry. Throws
 * `driver_missing`.
 */
export async function loadTokenVerifier(root: string): Promise<(expected: Expected, of: Issuer) => Verify> {
  const jose = await loadDriver(driver, root);
  return (expected, of) => tokenVerifier(jose, expected, of);
}

function tokenVerifier(jose: Jose, { jwks, issuer, audience, algorithms }: Expected, of: Issuer): Verify {
  const keyOf = keySource(jose, jwks, of);
  const options = {
    issuer,
    audience: typeof audience === 'string' ? audience : [...audience],
    algorithms: [...algorithms],
    requiredClaims: ['exp'],
    clockTolerance: CLOCK_TOLERANCE_S,
  };
  return async (token) => {
    const { payload, protectedHeader } = await jose.jwtVerify(token, keyOf, options).catch((error: unknown) => {
      throw isSvcError(error) ? error : invalidToken(of, 'It is forged, expired, or for another audience.');
    });
    return { claims: payload, type: protectedHeader.typ };
  };
}

/** Throws `connection_failed` if the keys cannot be read: that says nothing about the token. */
function keySource({ createRemoteJWKSet }: Jose, url: string, { name, setting }: Issuer): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(new URL(url), { cooldownDuration: COOLDOWN_MS, timeoutDuration: TIMEOUT_MS });
  return (header, token) =>
    keys(header, token).catch((error: unknown) => {
      if (isUnknownKey(error)) throw error;
      throw new SvcError('connection_failed', `The keys of ${name} cannot be read.`, {
        why: `${url}: ${errorMessage(error)}`,
        state: 'Nothing was decided.',
        next: [`Check ${setting}.`],
        cause: error,
      });
    });
}

/** The keys were read, and none of them, or more than one, is that of the token. */
function isUnknownKey(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ERR_JWKS_NO_MATCHING_KEY' || code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS';
}

export function invalidToken({ name }: Issuer, why: string): SvcError {
  return new SvcError('token_invalid', `The token of ${name} is not valid.`, { why, state: 'Nothing was decided.' });
}

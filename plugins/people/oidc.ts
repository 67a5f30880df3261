import type { ClientAuth, Configuration } from 'openid-client';
import { errorMessage, isSvcError, SvcError } from '../../core/errors.ts';
import { addressProblem } from '../../core/url.ts';
import { type Driver, loadDriver } from '../shared/driver.ts';
import { CLOCK_TOLERANCE_S, type Claims, invalidToken, loadTokenVerifier } from './json-web-token.ts';

type OpenidClient = typeof import('openid-client');

const driver: Driver<OpenidClient> = {
  name: 'openid-client',
  package: 'openid-client',
  load: () => import('openid-client'),
};

const TIMEOUT_S = 5;
const PROVIDER = { name: 'the provider', setting: 'approvals.oidc.issuer' };
/** Those to which a browser or this process sends secrets. */
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;
const DEFAULT_ALGORITHMS = ['RS256'];
const DEFAULT_SCOPES = ['openid', 'email'];

interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly algorithms?: readonly string[] | undefined;
  readonly scopes?: readonly string[] | undefined;
  /** Other clients whose ID tokens are accepted. */
  readonly audience?: readonly string[] | undefined;
}

/** What the browser's answer is compared with. Keep it secret, for this browser only. */
export interface PendingSignIn {
  readonly codeVerifier: string;
  readonly state: string;
  readonly nonce: string;
}

export interface SignedIn {
  readonly idToken: string;
  readonly expiresAt: Date;
}

/** A provider of OpenID Connect whose metadata were read. */
export interface OidcProvider {
  /** The claims of an ID token. Throws `token_invalid`, and `connection_failed` if the keys cannot be read. */
  verify(idToken: string): Promise<Claims>;
  /** The URL at which a person signs in, with PKCE; the browser comes back to `redirectUri`. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly pending: PendingSignIn }>;
  /**
   * The ID token for the URL at which the browser came back. Throws `sign_in_failed`, `token_invalid` and
   * `connection_failed`.
   */
  finish(currentUrl: string, pending: PendingSignIn): Promise<SignedIn>;
}

/** Throws `driver_missing`. The function reads the metadata of the issuer, and throws `connection_failed`. */
export async function openOidc(settings: OidcSettings, root: string): Promise<() => Promise<OidcProvider>> {
  const [client, verifierOf] = await Promise.all([loadDriver(driver, root), loadTokenVerifier(root)]);
  return async () => {
    const config = await discover(client, settings);
    const { issuer, jwks_uri: jwks = '' } = config.serverMetadata();
    const { clientId, audience = [], algorithms = DEFAULT_ALGORITHMS } = settings;
    const clients = [clientId, ...audience];
    const verified = verifierOf({ jwks, issuer, audience: clients, algorithms }, PROVIDER);
    const verify = async (idToken: string) => {
      const { claims, type } = await verified(idToken);
      const why = idTokenProblem(claims, type, clients);
      if (why) throw invalidToken(PROVIDER, why);
      return claims;
    };
    return {
      verify,
      begin: (redirectUri) => begin(client, config, redirectUri, scopesOf(settings)),
      async finish(currentUrl, { codeVerifier, state, nonce }) {
        const checks = { pkceCodeVerifier: codeVerifier, expectedState: state, expectedNonce: nonce };
        const { id_token: idToken = '' } = await client
          .authorizationCodeGrant(config, new URL(currentUrl), checks)
          .catch((error: unknown) => {
            throw signInError(error);
          });
        const { exp } = await verify(idToken);
        return { idToken, expiresAt: new Date(Number(exp) * 1_000) };
      },
    };
  };
}

function scopesOf({ scopes = DEFAULT_SCOPES }: OidcSettings): string {
  return [...new Set(['openid', ...scopes])].join(' ');
}

async function discover(
  client: OpenidClient,
  { issuer, clientId, clientSecret }: OidcSettings,
): Promise<Configuration> {
  const metadata = { [client.clockTolerance]: CLOCK_TOLERANCE_S };
  const isPlainHttp = issuer.startsWith('http:');
  const config = await client
    .discovery(new URL(issuer), clientId, metadata, authentication(client, clientSecret), {
      timeout: TIMEOUT_S,
      ...(isPlainHttp && { execute: [client.allowInsecureRequests] }),
    })
    .catch((error: unknown) => {
      throw unavailable(`${issuer}: ${reasonOf(error)}`, error);
    });
  const found = config.serverMetadata();
  // The library makes an exception for issuers of many tenants, whose tokens would name another one.
  if (new URL(found.issuer).href !== new URL(issuer).href) throw unavailable(`${issuer} names another issuer.`);
  for (const name of ENDPOINTS) {
    const why = found[name] === undefined ? 'is missing' : addressProblem(found[name]);
    if (why) throw unavailable(`Its ${name} ${why}.`);
  }
  return config;
}

/** In the body if the provider says that it accepts that, otherwise by the default of the standard: a header. */
function authentication(client: OpenidClient, secret: string | undefined): ClientAuth {
  if (secret === undefined) return client.None();
  const [post, basic] = [client.ClientSecretPost(secret), client.ClientSecretBasic(secret)];
  return (server, ...request) => {
    const accepted = server.token_endpoint_auth_methods_supported;
    return (accepted?.includes('client_secret_post') ? post : basic)(server, ...request);
  };
}

async function begin(client: OpenidClient, config: Configuration, redirectUri: string, scope: string) {
  const pending = {
    codeVerifier: client.randomPKCECodeVerifier(),
    state: client.randomState(),
    nonce: client.randomNonce(),
  };
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope,
    code_challenge: await client.calculatePKCECodeChallenge(pending.codeVerifier),
    code_challenge_method: 'S256',
    state: pending.state,
    nonce: pending.nonce,
  });
  return { url: url.href, pending };
}

/** Why a token that this issuer has signed for one of the clients is not an ID token for them (OpenID Connect Core, 3.1.3.7). */
function idTokenProblem(
  { aud, azp, sub, iat, events, typ }: Claims,
  type: string | undefined,
  clients: readonly string[],
): string | undefined {
  // Access tokens are `at+jwt` (RFC 9068), and of Keycloak have a claim. The token of a logout has `events`, and may have no type.
  const isOther = (type !== undefined && type.toUpperCase() !== 'JWT') || (typ !== undefined && typ !== 'ID');
  if (isOther || events !== undefined || sub === undefined || iat === undefined) return 'It is not an ID token.';
  const isForMany = Array.isArray(aud) && aud.length > 1;
  if (azp === undefined ? isForMany : !clients.includes(String(azp))) return 'It was issued to another client.';
  return undefined;
}

function signInError(error: unknown): SvcError {
  if (isSvcError(error)) return error;
  if (isRefusal(error)) {
    return signInFailed(`The provider answers: ${/^\w+$/.exec(error.error)?.[0] ?? 'an error'}.`, error);
  }
  if (isOutage(error)) return unavailable(reasonOf(error), error);
  return signInFailed('The answer of the provider is not the one to this sign-in.', error);
}

/** An error response of the provider (RFC 6749, 4.1.2.1 and 5.2), to the browser or to this process. */
function isRefusal(error: unknown): error is { readonly error: string } {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' || code === 'OAUTH_RESPONSE_BODY_ERROR';
}

/** Whether the provider was not reached, or answered with an error of its own. */
function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // `fetch` throws a TypeError with the reason as its cause.
  if (error instanceof TypeError) return error.cause !== undefined;
  const status = error.cause instanceof Response ? error.cause.status : 0;
  return status >= 500 || ('code' in error && error.code === 'OAUTH_TIMEOUT');
}

function reasonOf(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? errorMessage(error.cause) : errorMessage(error);
}

function signInFailed(why: string, cause: unknown): SvcError {
  return new SvcError('sign_in_failed', 'Nobody was signed in.', { why, next: ['Sign in again.'], cause });
}

function unavailable(why: string, cause?: unknown): SvcError {
  return new SvcError('connection_failed', 'The provider that people sign in with is not available.', {
    why,
    state: 'Nothing was decided.',
    next: [`Check ${PROVIDER.setting}.`],
    cause,
  });
}

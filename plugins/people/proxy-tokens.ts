import { type Claims, type Expected, loadTokenVerifier } from './json-web-token.ts';

const PROXY = { name: 'the proxy', setting: 'approvals.proxy.jwks' };

/**
 * Verifies the JSON Web Token with which a proxy says who is logged in. Throws `driver_missing`. The function throws
 * `token_invalid`, and `connection_failed` if the keys cannot be read.
 */
export async function openProxyTokens(expected: Expected, root: string): Promise<(token: string) => Promise<Claims>> {
  const verify = (await loadTokenVerifier(root))(expected, PROXY);
  return async (token) => (await verify(token)).claims;
}

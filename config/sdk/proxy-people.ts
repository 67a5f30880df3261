import { createHmac, randomBytes } from 'node:crypto';
import { BlockList, isIPv6 } from 'node:net';
import {
  createPrincipal,
  type Principal,
  principalProblems,
  type SignalPrincipal,
} from '../../core/approval/principal.ts';
import { tokensEqual } from '../../core/approval/token.ts';
import { SvcError } from '../../core/errors.ts';
import { problemText } from '../../core/validate-shape.ts';
import type { ApprovalsConfig, PlainProxyConfig, ProxyConfig } from '../define.ts';
import { loadProxyTokens } from '../load/builtin.ts';
import { onceSuccessful } from './once-successful.ts';

/** People whom the proxy of `approvals.proxy` has authenticated. */
export interface ProxyPeople {
  /** Throws `driver_missing` without the library that verifies signed headers. */
  open(): Promise<unknown>;
  /**
   * The token with which a request of the proxy says who decides; undefined if it says nothing. `peer`: the address that the
   * request comes from. Throws `token_invalid`.
   */
  tokenOf(headers: Headers, peer: string | undefined): string | undefined;
  /** The person whom a token names. Throws `token_invalid`, `driver_missing` and `connection_failed`. */
  verify(token: string): Promise<Principal>;
}

export function proxyPeople(config: NonNullable<ApprovalsConfig['proxy']>, root: string): ProxyPeople {
  return 'peers' in config ? plainPeople(config) : signedPeople(config, root);
}

function signedPeople(config: ProxyConfig, root: string): ProxyPeople {
  const open = onceSuccessful(async () => (await loadProxyTokens()).openProxyTokens(config, root));
  const { header, id: idClaim = 'email', groups: groupsClaim } = config;
  return {
    open,
    tokenOf: (headers) => headers.get(header) ?? undefined,
    async verify(token) {
      const claims = await (await open())(token);
      if (idClaim === 'email' && claims.email_verified === false) throw invalid('Its address is not verified.');
      const groups = groupsClaim === undefined ? [] : (claims[groupsClaim] ?? []);
      return personOf({ id: claims[idClaim], groups: typeof groups === 'string' ? [groups] : groups });
    },
  };
}

/** The headers of a request become a token of this process: every decision is made with one that can be verified again. */
function plainPeople({ header, groupsHeader, secret, peers }: PlainProxyConfig): ProxyPeople {
  const key = randomBytes(32);
  const macOf = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const known = new BlockList();
  for (const peer of peers) {
    const [address = '', prefix] = peer.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) known.addAddress(address, family);
    else known.addSubnet(address, Number(prefix), family);
  }
  return {
    open: async () => undefined,
    tokenOf(headers, peer) {
      const id = headers.get(header);
      if (id === null) return undefined;
      // A server that listens on IPv6 has IPv4 addresses as ::ffff:10.0.0.7.
      const address = peer?.replace(/^::ffff:(?=\d+\.)/i, '') ?? '';
      const isKnown = known.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
      const isProven = secret.value !== undefined && tokensEqual(headers.get(secret.header) ?? '', secret.value);
      if (!isKnown || !isProven) throw invalid('It does not come from the proxy.');
      const listed = groupsHeader === undefined ? '' : (headers.get(groupsHeader) ?? '');
      const groups = listed.split(',').flatMap((group) => group.trim() || []);
      const text = Buffer.from(JSON.stringify({ id, groups })).toString('base64url');
      return `${text}.${macOf(text)}`;
    },
    async verify(token) {
      const [text = '', mac = ''] = token.split('.');
      if (!tokensEqual(mac, macOf(text))) throw invalid('It is not one of this process.');
      return personOf(JSON.parse(Buffer.from(text, 'base64url').toString()));
    },
  };
}

function personOf(person: { readonly id: unknown; readonly groups: unknown }): Principal {
  const problems = principalProblems(person, []);
  if (problems.length > 0) throw invalid(`It names no person: ${problems.map(problemText).join(' ')}`);
  return createPrincipal(person as SignalPrincipal, 'proxy');
}

function invalid(why: string): SvcError {
  return new SvcError('token_invalid', 'What the proxy says is not valid.', { why, state: 'Nothing was decided.' });
}

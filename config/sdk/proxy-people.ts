import { createHmac, randomBytes } from 'node:crypto';
import { BlockList, isIPv6 } from 'node:net';
import { tokensEqual } from '../../core/approval/token.ts';
import type { ApprovalsConfig, PlainProxyConfig, ProxyConfig } from '../define.ts';
import { loadProxyTokens } from '../load/builtin.ts';
import { onceSuccessful } from './once-successful.ts';
import { invalidPerson, type PeopleSource, personOf, personOfClaims } from './people-source.ts';

/** People whom the proxy of `approvals.proxy` has authenticated. */
export function proxyPeople(config: NonNullable<ApprovalsConfig['proxy']>, root: string): PeopleSource {
  return 'peers' in config ? plainPeople(config) : signedPeople(config, root);
}

function signedPeople(config: ProxyConfig, root: string): PeopleSource {
  const open = onceSuccessful(async () => (await loadProxyTokens()).openProxyTokens(config, root));
  return {
    open,
    tokenOf: (headers) => headers.get(config.header) ?? undefined,
    verify: async (token) => personOfClaims(await (await open())(token), config, 'proxy'),
  };
}

/** The headers of a request become a token of this process: every decision is made with one that can be verified again. */
function plainPeople({ header, groupsHeader, secret, peers }: PlainProxyConfig): PeopleSource {
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
      if (!isKnown || !isProven) throw invalidPerson('It does not come from the proxy.');
      const listed = groupsHeader === undefined ? '' : (headers.get(groupsHeader) ?? '');
      const groups = listed.split(',').flatMap((group) => group.trim() || []);
      const text = Buffer.from(JSON.stringify({ id, groups })).toString('base64url');
      return `${text}.${macOf(text)}`;
    },
    async verify(token) {
      const [text = '', mac = ''] = token.split('.');
      if (!tokensEqual(mac, macOf(text))) throw invalidPerson('It is not one of this process.');
      return personOf(JSON.parse(Buffer.from(text, 'base64url').toString()), 'proxy');
    },
  };
}

import type { SvcError } from '../../../../core/errors.ts';
import { invalidUrlError } from '../../shared/errors.ts';

export interface Address {
  /** `host:port`, in the order of the URL. */
  readonly contactPoints: readonly string[];
  readonly keyspace: string;
  readonly datacenter: string;
  readonly user?: string;
  readonly password?: string;
  readonly tls: boolean;
  /** Seconds, if the URL has the parameter. */
  readonly lease?: number;
}

const URL_PATTERN = /^cassandra:\/\/(?:([^/]*)@)?([^/@?#]+)(?:\/([^/?#]*))?(?:\?([^#]*))?$/i;
const CONTACT_POINT = /^(\[[0-9a-f:.]+\]|[^:\s[\]]+)(?::(\d{1,5}))?$/i;
const KEYSPACE = /^\w{1,48}$/;
const PARAMETERS = ['dc', 'tls', 'lease'];

/** Throws `url_invalid`. The class URL cannot parse several contact points. */
export function parseUrl(url: string): Address {
  const parts = URL_PATTERN.exec(url);
  if (!parts) throw invalidUrl(url, 'It does not begin with cassandra:// and a host.');
  const [, credentials, hosts = '', path = '', query = ''] = parts;
  const contactPoints = hosts.split(',').map((host) => {
    const [, name, port = '9042'] = CONTACT_POINT.exec(host) ?? [];
    if (name === undefined || Number(port) > 65_535) throw invalidUrl(url, `"${host}" is not a host with a port.`);
    return `${name.toLowerCase()}:${port}`;
  });
  const parameters = new URLSearchParams(query);
  const unknown = [...parameters.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    throw invalidUrl(url, `It has a parameter "${unknown}"; allowed are ${PARAMETERS.join(', ')}.`);
  const keyspace = decode(url, path);
  if (keyspace === '') throw invalidUrl(url, 'It names no keyspace.');
  if (!KEYSPACE.test(keyspace)) throw invalidUrl(url, `"${keyspace}" cannot be the name of a keyspace.`);
  const datacenter = parameters.get('dc') ?? '';
  if (datacenter === '') {
    throw invalidUrl(url, 'It does not name the local data center: dc=…', [
      'Ask the cluster: SELECT data_center FROM system.local',
    ]);
  }
  const lease = parameters.get('lease');
  const [user, ...password] = credentials?.split(':') ?? [];
  return {
    contactPoints,
    keyspace,
    datacenter,
    tls: /^(1|true)$/.test(parameters.get('tls') ?? ''),
    ...(user !== undefined && { user: decode(url, user), password: decode(url, password.join(':')) }),
    ...(lease !== null && { lease: Number(lease) }),
  };
}

/** The contact points and the keyspace. Throws `url_invalid`. */
export function identify(url: string): string {
  const { contactPoints, keyspace } = parseUrl(url);
  return `cassandra:${[...contactPoints].sort().join(',')}/${keyspace}`;
}

function decode(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidUrl(url, 'It contains a % that does not begin an escape sequence: write a literal % as %25.');
  }
}

const invalidUrl = (url: string, why: string, next: readonly string[] = []): SvcError =>
  invalidUrlError('a Cassandra database', url, why, [
    ...next,
    'Write cassandra://user:password@host:9042,host:9042/keyspace?dc=datacenter1',
  ]);

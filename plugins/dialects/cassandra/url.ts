import { SvcError } from '../../../core/errors.ts';
import { withoutPassword } from '../../../core/url.ts';

/** What a URL of a Cassandra database says. */
export interface Place {
  /** `host:port`, in the order of the URL. */
  readonly contactPoints: readonly string[];
  readonly keyspace: string;
  readonly datacenter: string;
  readonly user?: string;
  readonly password?: string;
  readonly tls: boolean;
  /** Seconds, where the URL says them. */
  readonly lease?: number;
}

const URL_PARTS = /^cassandra:\/\/(?:([^/]*)@)?([^/@?#]+)(?:\/([^/?#]*))?(?:\?([^#]*))?$/i;
const POINT = /^(\[[0-9a-f:.]+\]|[^:\s[\]]+)(?::(\d{1,5}))?$/i;
const KEYSPACE = /^\w{1,48}$/;
const PARAMETERS = ['dc', 'tls', 'lease'];

/** Several contact points make no URL that `URL` reads. Throws `url_invalid`. */
export function parseUrl(url: string): Place {
  const parts = URL_PARTS.exec(url);
  if (!parts) throw invalid(url, 'It does not begin with cassandra:// and a host.');
  const [, credentials, hosts = '', path = '', query = ''] = parts;
  const contactPoints = hosts.split(',').map((host) => {
    const [, name, port = '9042'] = POINT.exec(host) ?? [];
    if (name === undefined || Number(port) > 65_535) throw invalid(url, `"${host}" is no host with a port.`);
    return `${name.toLowerCase()}:${port}`;
  });
  const parameters = new URLSearchParams(query);
  const strange = [...parameters.keys()].find((name) => !PARAMETERS.includes(name));
  if (strange !== undefined) throw invalid(url, `It has a parameter "${strange}"; there are ${PARAMETERS.join(', ')}.`);
  const keyspace = decoded(url, path);
  if (keyspace === '') throw invalid(url, 'It names no keyspace.');
  if (!KEYSPACE.test(keyspace)) throw invalid(url, `"${keyspace}" cannot be the name of a keyspace.`);
  const datacenter = parameters.get('dc') ?? '';
  if (datacenter === '') {
    throw invalid(url, 'It does not say which data center is near: dc=…', [
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
    ...(user !== undefined && { user: decoded(url, user), password: decoded(url, password.join(':')) }),
    ...(lease !== null && { lease: Number(lease) }),
  };
}

/** Contact points and keyspace. Throws `url_invalid`. */
export function identify(url: string): string {
  const { contactPoints, keyspace } = parseUrl(url);
  return `cassandra:${[...contactPoints].sort().join(',')}/${keyspace}`;
}

function decoded(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(url, 'A percent sign in it does not begin an escape.');
  }
}

function invalid(url: string, why: string, next: readonly string[] = []): SvcError {
  return new SvcError('url_invalid', 'The URL of a Cassandra database cannot be used.', {
    why: `${why} (${withoutPassword(url)})`,
    next: [...next, 'Write cassandra://user:password@host:9042,host:9042/keyspace?dc=datacenter1'],
  });
}

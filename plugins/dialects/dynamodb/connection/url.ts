import type { SvcError } from '../../../../core/errors.ts';
import { invalidUrlError } from '../../shared/errors.ts';

/** A parsed URL: a region or an endpoint, and the prefix that separates databases within it. */
export interface Address {
  readonly region: string;
  /** Absent for AWS itself. */
  readonly endpoint?: string;
  /** Precedes every table name, followed by a dot; empty if the whole region is one database. */
  readonly prefix: string;
  /** Only for a local endpoint, which does not check them; for AWS the SDK's credential chain applies. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

const REGION = /^[a-z]{2,}(-[a-z]+)+-\d+$/;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** Without dots: otherwise `shop` would see the tables of `shop.dev`. */
const PREFIX = /^[a-zA-Z0-9_-]{1,60}$/;

/** Throws `url_invalid`. */
export function parseUrl(url: string): Address {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalidUrl(url, 'It is not a URL.');
  }
  if (parsed.protocol !== 'dynamodb:') throw invalidUrl(url, `It begins with ${parsed.protocol}//.`);
  const host = parsed.hostname.toLowerCase();
  if (host === '') throw invalidUrl(url, 'It names neither a region nor a host.');
  const prefix = decodeURIComponent(parsed.pathname.replace(/^\/|\/$/g, ''));
  if (prefix !== '' && !PREFIX.test(prefix)) {
    throw invalidUrl(url, `The prefix "${prefix}" must have 1 to 60 letters, digits, _ and -.`);
  }
  for (const name of parsed.searchParams.keys()) {
    if (name !== 'region') throw invalidUrl(url, `It has the parameter "${name}"; only "region" is allowed.`);
  }
  const region = parsed.searchParams.get('region');
  if (region !== null && !/^[a-z0-9-]+$/.test(region)) throw invalidUrl(url, `"${region}" is not a region.`);
  const local = LOOPBACK.test(host);
  if (parsed.username !== '' && !local) {
    throw invalidUrl(url, 'It contains credentials; for AWS they come from the environment, a profile or a role.');
  }
  if (REGION.test(host) && parsed.port === '') {
    if (region !== null) throw invalidUrl(url, 'It names the region twice.');
    return { region: host, prefix };
  }
  if (local) {
    return {
      region: region ?? 'us-east-1',
      endpoint: `http://${parsed.host}`,
      prefix,
      credentials: {
        accessKeyId: decodeURIComponent(parsed.username) || 'local',
        secretAccessKey: decodeURIComponent(parsed.password) || 'local',
      },
    };
  }
  if (region === null) throw invalidUrl(url, 'An endpoint needs its region: ?region=eu-west-1.');
  return { region, endpoint: `https://${parsed.host}`, prefix };
}

/** The region or host, and the prefix. Throws `url_invalid`. */
export function identify(url: string): string {
  const { region, endpoint, prefix } = parseUrl(url);
  const where = endpoint === undefined ? region : `${endpoint.replace(/^https?:\/\//, '')}:${region}`;
  return `dynamodb:${where}/${prefix}`;
}

const invalidUrl = (url: string, why: string): SvcError =>
  invalidUrlError('a DynamoDB database', url, why, [
    'Write dynamodb://eu-west-1/prefix, or dynamodb://127.0.0.1:8000/prefix for a local endpoint.',
  ]);

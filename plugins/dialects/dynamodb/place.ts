import { SvcError } from '../../../core/errors.ts';
import { withoutPassword } from '../../../core/url.ts';

/** Where a URL points: an account's region or an endpoint, and the prefix that keeps databases in it apart. */
export interface Place {
  readonly region: string;
  /** Absent for AWS itself. */
  readonly endpoint?: string;
  /** Begins every table's name, with a dot behind it; empty where the whole region is one database. */
  readonly prefix: string;
  /** For an endpoint on this machine, which checks none; AWS gets those of the SDK's own chain. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

const REGION = /^[a-z]{2,}(-[a-z]+)+-\d+$/;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** A dot ends the prefix: in it, `shop` would see the tables of `shop.dev`. */
const PREFIX = /^[a-zA-Z0-9_-]{1,60}$/;

/** Throws `url_invalid`. */
export function placeOf(url: string): Place {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalid(url, 'It is not a URL.');
  }
  if (parsed.protocol !== 'dynamodb:') throw invalid(url, `It begins with ${parsed.protocol}//.`);
  const host = parsed.hostname.toLowerCase();
  if (host === '') throw invalid(url, 'It names neither a region nor a host.');
  const prefix = decodeURIComponent(parsed.pathname.replace(/^\/|\/$/g, ''));
  if (prefix !== '' && !PREFIX.test(prefix)) {
    throw invalid(url, `The prefix "${prefix}" is not made of 1 to 60 letters, digits, _ and -.`);
  }
  for (const name of parsed.searchParams.keys()) {
    if (name !== 'region') throw invalid(url, `It has the parameter "${name}"; only "region" is known.`);
  }
  const region = parsed.searchParams.get('region');
  if (region !== null && !/^[a-z0-9-]+$/.test(region)) throw invalid(url, `"${region}" is no region.`);
  const local = LOOPBACK.test(host);
  if (parsed.username !== '' && !local) {
    throw invalid(url, 'It holds credentials: for AWS they come from the environment, a profile or a role.');
  }
  if (REGION.test(host) && parsed.port === '') {
    if (region !== null) throw invalid(url, 'It names the region twice.');
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
  if (region === null) throw invalid(url, 'An endpoint needs its region: ?region=eu-west-1.');
  return { region, endpoint: `https://${parsed.host}`, prefix };
}

/** Region or host, and prefix. */
export function identify(url: string): string {
  const { region, endpoint, prefix } = placeOf(url);
  const where = endpoint === undefined ? region : `${endpoint.replace(/^https?:\/\//, '')}:${region}`;
  return `dynamodb:${where}/${prefix}`;
}

function invalid(url: string, why: string): SvcError {
  return new SvcError('url_invalid', 'The URL of a DynamoDB database cannot be used.', {
    why: `${why} (${withoutPassword(url)})`,
    next: ['Write dynamodb://eu-west-1/prefix, or dynamodb://127.0.0.1:8000/prefix for an endpoint on this machine.'],
  });
}

import { resolve } from 'node:path';
import type { SvcError } from '../../../../core/errors.ts';
import { nearest } from '../../../../core/nearest.ts';
import { invalidUrlError } from '../../shared/errors.ts';

const EMBEDDED = 'pglite://';

/** Parameters that the driver applies, with the values it knows; undefined for any value. */
const PARAMETERS: Readonly<Record<string, readonly string[] | undefined>> = {
  host: undefined,
  port: undefined,
  user: undefined,
  password: undefined,
  sslmode: ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'],
  sslrootcert: undefined,
  sslcert: undefined,
  sslkey: undefined,
  ssl: ['true', '1', '0', 'no-verify'],
  sslnegotiation: ['postgres', 'direct'],
  uselibpqcompat: ['true'],
  application_name: undefined,
  fallback_application_name: undefined,
  options: undefined,
};

const OPTION_FOR_SCHEMA = "Write it next to the URL: schema: '…'";
/** What takes the place of a parameter that other programs know. */
const REPLACEMENTS: Readonly<Record<string, string>> = {
  schema: OPTION_FOR_SCHEMA,
  search_path: OPTION_FOR_SCHEMA,
  currentSchema: OPTION_FOR_SCHEMA,
  connect_timeout: 'Set it in the options of the database: options: { connectTimeoutMs: 10_000 }',
  lock_timeout: 'Set it in the options of the database: options: { lockTimeoutMs: 500 }',
  channel_binding: 'Remove it; to verify the server, use sslmode=verify-full.',
};

export const isEmbedded = (url: string): boolean => url.startsWith(EMBEDDED);

/** The folder of an embedded database; undefined for one in memory. */
export function folderOf(url: string): string | undefined {
  const [path = '', ...parameters] = url.slice(EMBEDDED.length).split(/[?#]/);
  if (parameters.length > 0) {
    throw invalidUrl(url, 'It has parameters, which an embedded database does not have.', [
      "Remove them. Options are written next to the URL: schema: '…', options: { … }",
      'For a folder whose name contains ? or #, write %3F or %23.',
    ]);
  }
  if (path === '') throw invalidUrl(url, 'It names neither a folder nor memory.');
  return path === 'memory' ? undefined : resolve(decode(url, path));
}

/** Host, port and database, or the folder. Throws `url_invalid`. */
export function identify(url: string): string {
  if (isEmbedded(url)) return `pglite:${folderOf(url) ?? 'memory'}`;
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalidUrl(url, 'It is not a URL.');
  }
  if (parsed.protocol !== 'postgres:' && parsed.protocol !== 'postgresql:') {
    throw invalidUrl(url, `It begins with ${parsed.protocol}//.`);
  }
  const parameters = parsed.searchParams;
  assertParameters(url, parameters);
  const database = decode(url, parsed.pathname.slice(1)) || (parameters.get('user') ?? parsed.username);
  const host = parameters.get('host') ?? parsed.hostname;
  const port = parameters.get('port') ?? parsed.port;
  return `postgresql:${(host || 'localhost').toLowerCase()}:${port || '5432'}/${database}`;
}

/** The driver ignores what it does not know, so a mistyped sslmode would connect without TLS. */
function assertParameters(url: string, parameters: URLSearchParams): void {
  for (const [name, value] of parameters) {
    if (!Object.hasOwn(PARAMETERS, name)) {
      const closest = nearest(name, Object.keys(PARAMETERS));
      throw invalidUrl(url, `It has the parameter ${name}, which svc does not support.`, [
        (Object.hasOwn(REPLACEMENTS, name) ? REPLACEMENTS[name] : undefined) ??
          (closest === undefined
            ? `Remove it, or for a setting of the server write ?options=-c%20<setting>%3D<value>. Parameters are ${Object.keys(PARAMETERS).join(', ')}.`
            : `Did you mean ${closest}?`),
      ]);
    }
    if (parameters.getAll(name).length > 1 && name !== 'options') {
      throw invalidUrl(url, `It has the parameter ${name} more than once.`, ['Write it once.']);
    }
    const known = PARAMETERS[name];
    if (known && !known.includes(value)) {
      throw invalidUrl(url, `Its parameter ${name} has an unknown value.`, [`Use one of ${known.join(', ')}.`]);
    }
  }
}

function decode(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidUrl(url, 'It contains a % that does not begin an escape sequence: write a literal % as %25.');
  }
}

const FORMS: readonly string[] = [
  'Write postgresql://user:password@host:5432/database, pglite://./folder or pglite://memory.',
];

const invalidUrl = (url: string, why: string, next = FORMS): SvcError =>
  invalidUrlError('a PostgreSQL database', url, why, next);

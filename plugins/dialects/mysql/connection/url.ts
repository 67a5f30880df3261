import type { SvcError } from '../../../../core/errors.ts';
import { invalidUrlError } from '../../shared/errors.ts';

/** A parsed database URL, in the form of both drivers' options. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** A local socket, in place of host and port. */
  readonly socketPath?: string;
  /** `verify` checks the server's certificate, `encrypt` does not. */
  readonly tls: 'off' | 'encrypt' | 'verify';
}

const TLS: Readonly<Record<string, Address['tls']>> = {
  false: 'off',
  off: 'off',
  encrypt: 'encrypt',
  true: 'verify',
  verify: 'verify',
};
const PARAMETERS = new Set(['socketPath', 'tls']);

/** Throws `url_invalid`. */
export function parseAddress(url: string, schemes: readonly string[]): Address {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalidUrl(url, schemes, 'It is not a URL.');
  }
  if (!schemes.includes(parsed.protocol)) throw invalidUrl(url, schemes, `It begins with ${parsed.protocol}//.`);
  const database = decodePart(url, schemes, parsed.pathname.slice(1));
  if (database === '') throw invalidUrl(url, schemes, 'It has no database.');
  const unknown = [...parsed.searchParams.keys()].find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined) throw invalidUrl(url, schemes, `It has the parameter ${unknown}, which does not exist.`);
  const tls = TLS[parsed.searchParams.get('tls') ?? 'off'];
  if (tls === undefined) throw invalidUrl(url, schemes, 'Its parameter tls must be verify, encrypt or off.');
  const socketPath = parsed.searchParams.get('socketPath');
  return {
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase() || 'localhost',
    port: Number(parsed.port || 3306),
    user: decodePart(url, schemes, parsed.username),
    password: decodePart(url, schemes, parsed.password),
    database,
    tls,
    ...(socketPath && { socketPath }),
  };
}

/** The same for both dialects, which can connect to the same server. */
export function identify(url: string, schemes: readonly string[]): string {
  const { host, port, socketPath, database } = parseAddress(url, schemes);
  return `mysql:${socketPath ?? `${host}:${port}`}/${database}`;
}

function decodePart(url: string, schemes: readonly string[], text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidUrl(url, schemes, 'It contains a % that does not begin an escape sequence: write a literal % as %25.');
  }
}

const invalidUrl = (url: string, schemes: readonly string[], why: string): SvcError =>
  invalidUrlError('the database', url, why, [`Use the form ${schemes[0]}//user:password@host:3306/database`]);

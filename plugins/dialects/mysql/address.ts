import { SvcError } from '../../../core/errors.ts';
import { withoutPassword } from '../../../core/url.ts';

/** What a URL says, as both drivers want it. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Of a server on this machine, in place of host and port. */
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
export function addressOf(url: string, schemes: readonly string[]): Address {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalid(url, schemes, 'It is not a URL.');
  }
  if (!schemes.includes(parsed.protocol)) throw invalid(url, schemes, `It begins with ${parsed.protocol}//.`);
  const database = decoded(url, schemes, parsed.pathname.slice(1));
  if (database === '') throw invalid(url, schemes, 'It names no database.');
  const unknown = [...parsed.searchParams.keys()].find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined) throw invalid(url, schemes, `It has the parameter ${unknown}, which is not known.`);
  const tls = TLS[parsed.searchParams.get('tls') ?? 'off'];
  if (tls === undefined) throw invalid(url, schemes, 'Its parameter tls is none of: verify, encrypt, off.');
  const socketPath = parsed.searchParams.get('socketPath');
  return {
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase() || 'localhost',
    port: Number(parsed.port || 3306),
    user: decoded(url, schemes, parsed.username),
    password: decoded(url, schemes, parsed.password),
    database,
    tls,
    ...(socketPath && { socketPath }),
  };
}

/** The same for both dialects: they may reach the same server. */
export function identify(url: string, schemes: readonly string[]): string {
  const { host, port, socketPath, database } = addressOf(url, schemes);
  return `mysql:${socketPath ?? `${host}:${port}`}/${database}`;
}

function decoded(url: string, schemes: readonly string[], text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid(url, schemes, 'It has a % that is no escape: a literal one is written %25.');
  }
}

function invalid(url: string, schemes: readonly string[], why: string): SvcError {
  return new SvcError('url_invalid', 'The URL of the database cannot be used.', {
    why: `${why} (${withoutPassword(url)})`,
    next: [`Write ${schemes[0]}//user:password@host:3306/database.`],
  });
}

import { resolve } from 'node:path';
import { SvcError } from '../../../../core/errors.ts';
import { invalidUrlError } from '../../shared/errors.ts';

const EMBEDDED = 'pglite://';

export const isEmbedded = (url: string): boolean => url.startsWith(EMBEDDED);

/** The folder of an embedded database; undefined for one in memory. */
export function folderOf(url: string): string | undefined {
  const path = url.slice(EMBEDDED.length).replace(/[?#].*$/, '');
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
  const database = decode(url, parsed.pathname.slice(1)) || parsed.username;
  if (parsed.searchParams.has('schema')) {
    throw new SvcError('url_invalid', 'The URL of a PostgreSQL database cannot be used.', {
      why: 'It has the parameter schema, which PostgreSQL does not support.',
      next: ["Write it next to the URL: schema: '…'"],
    });
  }
  const host = parsed.searchParams.get('host') ?? parsed.hostname;
  return `postgresql:${(host || 'localhost').toLowerCase()}:${parsed.port || '5432'}/${database}`;
}

function decode(url: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidUrl(url, 'It contains a % that does not begin an escape sequence: write a literal % as %25.');
  }
}

const invalidUrl = (url: string, why: string): SvcError =>
  invalidUrlError('a PostgreSQL database', url, why, [
    'Write postgresql://user:password@host:5432/database, pglite://./folder or pglite://memory.',
  ]);

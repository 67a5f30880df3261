import type { SvcError } from '../../../../core/errors.ts';
import { invalidUrlError } from '../../shared/errors.ts';

const SCHEME = /^mongodb(\+srv)?:\/\//;

/** Hosts and database; the hosts in one order, because a replica set is one database. Throws `url_invalid`. */
export function identify(url: string): string {
  const { hosts, database } = parseUrl(url);
  return `mongodb:${hosts.join(',')}/${database}`;
}

/** The database that the path of a URL names. */
export function databaseOf(url: string): string {
  return parseUrl(url).database;
}

function parseUrl(url: string): { hosts: string[]; database: string } {
  const [scheme] = SCHEME.exec(url) ?? [];
  if (scheme === undefined) throw invalidUrl(url, 'It begins neither with mongodb:// nor with mongodb+srv://.');
  const [authority = '', path = ''] = url
    .slice(scheme.length)
    .replace(/[?#].*$/, '')
    .split('/');
  const list = authority.slice(authority.lastIndexOf('@') + 1);
  if (list === '') throw invalidUrl(url, 'It names no host.');
  const database = decode(path);
  if (database === undefined || database === '') throw invalidUrl(url, 'It names no database.');
  const port = scheme.includes('srv') ? '' : ':27017';
  const hosts = list.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}${port}`).toLowerCase());
  return { hosts: hosts.sort(), database };
}

function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

const invalidUrl = (url: string, why: string): SvcError =>
  invalidUrlError('a MongoDB database', url, why, [
    'Write mongodb://user:password@host:27017/database or mongodb+srv://user:password@host/database.',
  ]);

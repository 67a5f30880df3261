import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { SvcError } from '../../core/errors.ts';
import { isPlainObject, tryParseJson } from '../../core/json.ts';

/** The token of a person for one server. */
export interface Login {
  readonly server: string;
  readonly token: string;
}

const PERMISSION_BITS = 0o777;
const OTHERS = 0o077;

/** The token that `svc login` has stored for a server. Throws `file_invalid` for a file that others can read. */
export function readLogin(server: string): Login | undefined {
  const path = fileOf(server);
  const mode = statSync(path, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) return undefined;
  if (process.platform !== 'win32' && (mode & OTHERS) !== 0) {
    throw unusable(path, `Its mode is ${(mode & PERMISSION_BITS).toString(8)}: others may have read the token.`);
  }
  const login = tryParseJson(readFileSync(path, 'utf8'));
  if (isPlainObject(login) && login.server === server && typeof login.token === 'string') {
    return { server, token: login.token };
  }
  throw unusable(path, 'It is not a file of `svc login`.');
}

/** Stores a token, readable for this user only. Returns the path. */
export function saveLogin(login: Login): string {
  const path = fileOf(login.server);
  mkdirSync(folder(), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomUUID()}`;
  try {
    writeFileSync(temporary, `${JSON.stringify(login)}\n`, { flag: 'wx', mode: 0o600 });
    chmodSync(temporary, 0o600); // Also with an umask that would take the owner's rights.
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  return path;
}

/** Removes a token. Returns whether there was one. */
export function removeLogin(server: string): boolean {
  const path = fileOf(server);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  rmSync(path);
  return true;
}

function folder(): string {
  const { XDG_CONFIG_HOME, APPDATA } = process.env;
  // A relative one is to be ignored (XDG Base Directory Specification).
  const given = XDG_CONFIG_HOME !== undefined && isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : undefined;
  const base = given || (process.platform === 'win32' && APPDATA) || join(homedir(), '.config');
  return join(base, 'svc', 'logins');
}

/** One file for each server, so that two logins at once lose none. */
const fileOf = (server: string): string =>
  join(folder(), `${createHash('sha256').update(server).digest('hex').slice(0, 16)}.json`);

function unusable(path: string, why: string): SvcError {
  return new SvcError('file_invalid', 'The stored login cannot be used.', {
    why,
    next: ['Revoke its token if others may have it, then run `svc login` again.'],
    where: path,
  });
}

import { hostname, userInfo } from 'node:os';

/** Who runs a migration, for the history: account and machine. */
export function actor(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // A container may run under a uid that has no account.
    return `uid ${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
}

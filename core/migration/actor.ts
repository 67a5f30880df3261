import { hostname, userInfo } from 'node:os';

let known: string | undefined;

/** Who runs a migration, for the history: account and machine. */
export function actor(): string {
  known ??= look();
  return known;
}

function look(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // A container may run under a uid that has no account.
    return `uid ${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
}

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/* Caches are in the nearest node_modules. A cache that cannot be read or written only costs time. */

/** Path of a named cache; undefined if there is no node_modules. */
export function cacheFile(folder: string, name: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const modules = join(at, 'node_modules');
    if (existsSync(modules)) return join(modules, '.cache', 'svc', name);
    if (dirname(at) === at) return undefined;
  }
}

export function readCache(file: string | undefined): Buffer | undefined {
  try {
    return file === undefined ? undefined : readFileSync(file);
  } catch {
    return undefined;
  }
}

export function writeCache(file: string | undefined, content: string | Uint8Array): void {
  if (file === undefined) return;
  try {
    mkdirSync(dirname(file), { recursive: true });
    const temporary = `${file}.${process.pid}`;
    writeFileSync(temporary, content);
    renameSync(temporary, file);
  } catch {
    // A read-only folder or a full disk: the next run tries again.
  }
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}

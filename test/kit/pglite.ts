import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite } from '@electric-sql/pglite';
import type { Fresh } from './fresh.ts';

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/svc-test/', import.meta.url));

/** A folder with an empty database: a copy of a template, because making one takes seconds and copying it does not. */
export async function freshFolder(): Promise<Fresh> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pglite-'));
  const data = join(folder, 'data');
  await cp(await template(), data, { recursive: true });
  return { url: `pglite://${data}`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
}

async function template(): Promise<string> {
  const manifest = new URL('../package.json', import.meta.resolve('@electric-sql/pglite'));
  const finished = join(CACHE, `pglite-${JSON.parse(readFileSync(manifest, 'utf8')).version}`);
  if (existsSync(finished)) return finished;
  mkdirSync(CACHE, { recursive: true });
  const making = mkdtempSync(join(CACHE, 'making-'));
  const database = new PGlite(making);
  await database.waitReady;
  await database.close();
  try {
    renameSync(making, finished);
  } catch (error) {
    // Another test file was quicker.
    rmSync(making, { recursive: true, force: true });
    if (!existsSync(finished)) throw error;
  }
  return finished;
}

import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import type { Fresh } from './fresh.ts';

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/svc-test/', import.meta.url));

/** A third of the work that PGlite starts with goes into memory for the hundred connections that it never has. */
const SMALL = '\nshared_buffers = 8MB\nmax_connections = 16\n';

const run = promisify(execFile);

/**
 * A folder with an empty database: a copy of a template, because making one takes seconds and copying it does not. The
 * system copies and removes a thousand files with a tenth of the work that Node has with them.
 */
export async function freshFolder(): Promise<Fresh> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pglite-'));
  const data = join(folder, 'data');
  await run('cp', ['-R', await template(), data]);
  return { url: `pglite://${data}`, drop: async () => void (await run('rm', ['-rf', folder])) };
}

async function template(): Promise<string> {
  const manifest = new URL('../package.json', import.meta.resolve('@electric-sql/pglite'));
  const finished = join(CACHE, `pglite-${JSON.parse(readFileSync(manifest, 'utf8')).version}-small`);
  if (existsSync(finished)) return finished;
  mkdirSync(CACHE, { recursive: true });
  const making = mkdtempSync(join(CACHE, 'making-'));
  const database = new PGlite(making);
  await database.waitReady;
  await database.close();
  appendFileSync(join(making, 'postgresql.conf'), SMALL);
  try {
    renameSync(making, finished);
  } catch (error) {
    // Another test file was quicker.
    rmSync(making, { recursive: true, force: true });
    if (!existsSync(finished)) throw error;
  }
  return finished;
}

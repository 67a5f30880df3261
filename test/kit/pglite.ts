import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import type { TestDatabase } from '../suites/test-database.ts';

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/svc-test/', import.meta.url));

/** PGlite spends a third of its start on memory for a hundred connections that it never has. */
const SMALL = '\nshared_buffers = 8MB\nmax_connections = 16\n';

const run = promisify(execFile);

/**
 * A folder with an empty database, copied from a template: creating one takes seconds. `cp` and `rm` copy and remove a
 * thousand files with a tenth of the work of Node.
 */
export async function freshFolder(): Promise<TestDatabase> {
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
    // Another test file created it first.
    rmSync(making, { recursive: true, force: true });
    if (!existsSync(finished)) throw error;
  }
  return finished;
}
